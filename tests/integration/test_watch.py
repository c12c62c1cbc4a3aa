"""What a person is told although no batch failed, on real tables: once when it begins, once when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.reconcile_home import append

from lean_ops.ledger.books import Alert
from lean_ops.ledger.standing import Settled
from lean_ops.model.batch import Batch, Counts, Intent, Zone
from lean_ops.model.ledger import ledger_row
from lean_ops.model.registry import Status
from lean_ops.operate.health import reconcile_in_time
from lean_ops.operate.intent import last_batch_property
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

LONG_AGO = "2026-01-01T00:00:00+00:00"


@dataclass
class Scene:
    """A home whose clock is moved by hand, and what was published."""

    services: Services
    now: datetime
    published: list[Alert] = field(default_factory=list)

    def topic(self, topic: str, *, curated: bool = False, status: Status = Status.READY) -> None:
        """A topic with a gate that has long been as it is."""
        self.services.state.update_item(
            topic, lambda item: replace(item, status=status, curated=curated, updated_at=LONG_AGO)
        )

    def land(self, topic: str, ids: str) -> int:
        """Messages in RAW; the snapshot."""
        rows = [{"topic_name": topic, "message_id": each, "publish_time": self.now, "ingestion_ts": 1} for each in ids]
        return append(self.services.lake.ensure_raw(topic), rows)

    def standardize(self, topic: str, up_to: int, ids: str) -> None:
        """A batch that has read RAW up to a snapshot."""
        batch = Batch(topic, Zone.STANDARDIZED, None, up_to, "1.0.0")
        rows = [{"topic_name": topic, "message_id": each, "publish_time": self.now, "ingestion_ts": 1} for each in ids]
        table = self.services.lake.ensure_standardized(topic)
        append(table, rows, batch_id=batch.batch_id, to_snapshot=str(up_to))
        counts = Counts(len(ids), inserted=len(ids))
        with table.transaction() as transaction:
            transaction.set_properties(**last_batch_property(Intent(batch, (), LONG_AGO, counts)))
        line = ledger_row(topic, Zone.STANDARDIZED, batch.batch_id, (None, up_to), counts, self.now)
        self.services.books.append("reconciliation_log", line)

    def drift(self, topic: str, batch: str, kind: str, column: str, new: str, ago: timedelta = timedelta()) -> None:
        """A line of the drift log."""
        row = {"topic_name": topic, "batch_id": batch, "kind": kind, "column_name": column}
        more = {"json_pointer": f"/{column}", "new_value": new, "records": 1, "detected_at": self.now - ago}
        self.services.books.append("drift_log", {**row, **more})

    def alerts(self) -> list[dict[str, Any]]:
        """The rows of the alerts' table, oldest first."""
        table = self.services.lake.load(self.services.settings.names.ops("alerts"))
        return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: (row["opened_at"], row["alert_id"]))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    services = Services(load_settings({"home": tmp_path / "home"}, environ={}))
    # The snapshots' own times are the machine's.
    scene = Scene(services, datetime.now(UTC).replace(microsecond=0))
    services.clock = lambda: scene.now
    services.lake.ensure_shared()
    services.books._publish = scene.published.append
    yield scene
    services.close()


def test_data_that_wait_for_an_hour_behind_an_open_gate_are_told_once_and_when_it_is_over(scene: Scene) -> None:
    for topic, status in (("events", Status.READY), ("orders", Status.NO_SCHEMA)):
        scene.topic(topic, status=status)
        scene.land(topic, "ab")
    topics, watch = ["events", "orders"], scene.services.watch()
    scene.now += timedelta(minutes=50)
    assert watch.waiting(topics) == Settled()
    scene.now += timedelta(minutes=20)
    assert watch.waiting(topics) == Settled(opened=1)
    scene.now += timedelta(minutes=15)
    assert watch.waiting(topics) == Settled()
    [row] = scene.alerts()
    assert (row["topic_name"], row["kind"], row["severity"], row["closed_at"]) == (
        "events",
        "DATA_WAITING",
        "warning",
        None,
    )
    assert (row["value"] >= 69, row["threshold"]) == (True, 60)
    assert "2 records wait for standardized" in row["message"]
    scene.standardize("events", scene.land("events", "c"), "abc")
    assert watch.waiting(topics) == Settled(closed=1)
    assert watch.waiting(topics) == Settled()
    [row] = scene.alerts()
    assert row["closed_at"] == scene.now
    told = [(alert.topic, alert.severity, alert.message.partition(":")[0]) for alert in scene.published]
    assert told[1] == ("events", "info", "over after 15 minutes")
    assert len(told) == 2


def test_the_same_trouble_again_is_another_alert(scene: Scene) -> None:
    scene.topic("events")
    scene.land("events", "a")
    watch = scene.services.watch()
    scene.now += timedelta(hours=2)
    watch.waiting(["events"])
    scene.services.state.update_item("events", lambda item: item.paused("a person", LONG_AGO))
    assert watch.waiting(["events"]) == Settled(closed=1)
    scene.services.state.update_item("events", lambda item: item.resumed(LONG_AGO))
    scene.now += timedelta(minutes=1)
    assert watch.waiting(["events"]) == Settled(opened=1)
    first, second = scene.alerts()
    assert first["alert_id"] != second["alert_id"]
    assert (first["closed_at"] is None, second["closed_at"] is None) == (False, True)


def test_a_gate_that_has_just_opened_makes_nobody_wait(scene: Scene) -> None:
    scene.topic("events")
    scene.land("events", "a")
    scene.now += timedelta(hours=3)
    opened = scene.now - timedelta(minutes=59)
    scene.services.state.update_item("events", lambda item: item.resumed(opened.isoformat()))
    assert scene.services.watch().waiting(["events"]) == Settled()
    scene.now += timedelta(minutes=2)
    assert scene.services.watch().waiting(["events"]) == Settled(opened=1)


def test_what_is_standardized_and_not_curated_waits_too(scene: Scene) -> None:
    scene.topic("events", curated=True)
    scene.standardize("events", scene.land("events", "ab"), "ab")
    scene.now += timedelta(hours=2)
    assert scene.services.watch().waiting(["events"]) == Settled(opened=1)
    [row] = scene.alerts()
    assert "wait for curated" in row["message"]


def test_a_look_at_some_topics_closes_nothing_of_others(scene: Scene) -> None:
    for topic in ("events", "orders"):
        scene.topic(topic)
        scene.land(topic, "a")
    scene.now += timedelta(hours=2)
    watch = scene.services.watch()
    assert watch.waiting(["events", "orders"]) == Settled(opened=2)
    scene.services.state.update_item("events", lambda item: item.paused("a person", LONG_AGO))
    assert watch.waiting(["orders"]) == Settled()
    assert watch.waiting(["events", "orders"], has_time=lambda: False) == Settled()
    assert watch.waiting(["events", "orders"]) == Settled(closed=1)


def test_after_a_run_only_what_it_left_can_wait(scene: Scene) -> None:
    for topic in ("events", "orders"):
        scene.topic(topic)
        scene.land(topic, "a")
    scene.now += timedelta(hours=2)
    watch = scene.services.watch()
    watch.after_run(["events", "orders"], left={"orders"})
    assert [(row["topic_name"], row["closed_at"]) for row in scene.alerts()] == [("orders", None)]
    watch.after_run(["events", "orders"], left=set())
    assert [row["closed_at"] for row in scene.alerts()] == [scene.now]


def test_books_that_do_not_balance_are_told_until_they_do(scene: Scene) -> None:
    scene.topic("events")
    scene.standardize("events", scene.land("events", "ab"), "ab")
    reconciler, watch = scene.services.reconciler(scene.services.state), scene.services.watch()

    def looked() -> Settled:
        return watch.unbalanced(reconcile_in_time(replace(reconciler, delivered=True), ["events"], lambda: True))

    assert looked() == Settled()
    extra = scene.services.lake.load(scene.services.settings.names.standardized("events"))
    good = extra.metadata.current_snapshot_id
    append(extra, [{"topic_name": "events", "message_id": "x", "publish_time": scene.now, "ingestion_ts": 1}])
    assert looked() == Settled(opened=1)
    assert looked() == Settled()
    [row] = scene.alerts()
    assert (row["kind"], row["severity"], row["threshold"]) == ("BOOKS_UNBALANCED", "critical", 0.01)
    assert "lean-ops reconcile events" in row["message"]
    extra.manage_snapshots().rollback_to_snapshot(good).commit()
    assert looked() == Settled(closed=1)


def test_new_drift_is_told_once_as_information_that_is_over_at_once(scene: Scene) -> None:
    scene.drift("events", "b1", "NEW_COLUMN", "user", "user", ago=timedelta(hours=5))
    watch = scene.services.watch()
    assert watch.tell_drift() == 0, "the first batch shows what a topic is"
    scene.drift("events", "b2", "NEW_COLUMN", "colour", "colour", ago=timedelta(hours=4))
    scene.drift("events", "b2", "TYPE_CHANGE", "user", "number", ago=timedelta(hours=4))
    assert watch.tell_drift() == 1
    assert watch.tell_drift() == 0
    scene.drift("events", "b3", "TYPE_CHANGE", "user", "number")
    assert watch.tell_drift() == 0, "a type that goes on changing is no news"
    scene.drift("events", "b4", "TYPE_CHANGE", "user", "boolean")
    assert watch.tell_drift() == 1
    first, second = scene.alerts()
    assert (first["alert_id"], first["severity"], first["value"]) == ("DRIFT-events-b2", "info", 2)
    assert "NEW_COLUMN, TYPE_CHANGE: colour, user" in first["message"]
    assert second["alert_id"] == "DRIFT-events-b4"
    assert first["closed_at"] == first["opened_at"]
    assert [alert.kind for alert in scene.published] == ["DRIFT", "DRIFT"]


def test_old_drift_is_nobodys_news(scene: Scene) -> None:
    scene.drift("events", "b1", "NEW_COLUMN", "user", "user", ago=timedelta(days=9))
    scene.drift("events", "b2", "NEW_COLUMN", "colour", "colour", ago=timedelta(days=3))
    assert scene.services.watch().tell_drift() == 0


def test_a_home_without_tables_has_nothing_to_tell(tmp_path: Path) -> None:
    services = Services(load_settings({"home": tmp_path / "home"}, environ={}))
    watch = services.watch()
    assert watch.waiting(["events"]) == Settled()
    assert watch.tell_drift() == 0
    services.close()
