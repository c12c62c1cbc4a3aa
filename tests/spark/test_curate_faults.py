"""When something goes wrong with a Curated batch: nothing half-done is seen, and the next run is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, Reference
from pyiceberg.expressions.literals import literal
from tests.spark.driver import TopicDriver, at

from lean_ops.curate import hop as curate_hop
from lean_ops.lake.staging import staged_snapshots
from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Batch, Counts, Zone
from lean_ops.model.tables import TableName
from lean_ops.operate.run import TopicOutcome

pytestmark = pytest.mark.spark


def message(message_id: str, value: Any, key: str | None = None, day: float = 0) -> dict[str, Any]:
    payload = f'{{"v":"{value}"}}'
    return {
        "message_id": message_id,
        "json_payload": payload,
        "idempotency_key": key or message_id,
        "publish_time": at(day),
    }


def failed(topic: TopicDriver) -> TopicOutcome:
    outcome = topic.run()
    assert outcome is not None
    assert outcome.status is RunStatus.FAILED
    return outcome


def zones(outcome: TopicOutcome | None) -> list[str]:
    assert outcome is not None
    return [str(batch.zone) for batch in outcome.batches]


def books(topic: TopicDriver) -> list[dict[str, Any]]:
    return [row for row in topic.shared("reconciliation_log") if row["zone"] == "curated"]


@pytest.fixture
def curated(topic: TopicDriver) -> TopicDriver:
    """A topic with a Curated row and a new batch that brings a correction, a new key and an error."""
    topic.use_schema({"v": {"type": "INT"}})
    topic.put(message("m1", 1, "k"))
    assert zones(topic.run()) == ["standardized", "curated"]
    topic.put(message("m2", 2, "k", day=1), message("m3", 3), message("m4", "x"))
    return topic


EXPECTED = Counts(3, inserted=1, updated=1, errors=1)


def values(topic: TopicDriver) -> dict[str, int]:
    return {key: row["v"] for key, row in topic.curated().items()}


def test_a_batch_that_does_not_balance_is_not_published_and_alerts(
    curated: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, append = curated.services.shared, curated.services.shared.append

    def lose_errors(name: TableName, parts: Iterable[Any]) -> int:
        return append(name, parts) if name != curated.services.lake.names.curated_errors else 0

    monkeypatch.setattr(shared, "append", lose_errors)
    outcome = failed(curated)
    assert "zone curated" in str(outcome.reason)
    assert "does not balance and was not published; found 3 records in, 2 out" in str(outcome.reason)
    assert zones(outcome) == ["standardized"]
    assert (values(curated), len(books(curated))) == ({"k": 1}, 1)
    assert sorted(row["kind"] for row in curated.shared("alerts")) == ["UNBALANCED"]

    monkeypatch.undo()
    outcome = curated.run()
    assert outcome is not None
    assert [batch.counts for batch in outcome.batches] == [EXPECTED]
    assert values(curated) == {"k": 2, "m3": 3}
    assert [row["message_id"] for row in curated.shared("errors")] == ["m4"]


def test_a_merge_that_does_not_say_what_it_did_is_not_published(
    curated: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*arguments: Any) -> tuple[Any, ...]:
        return tuple(replace(snapshot, summary={}) for snapshot in staged_snapshots(*arguments))

    monkeypatch.setattr(curate_hop, "staged_snapshots", silent)
    assert "expected 'spark.merge-into.num-target-rows-inserted' in its summary" in str(failed(curated).reason)
    assert values(curated) == {"k": 1}
    monkeypatch.undo()
    assert zones(curated.run()) == ["curated"]
    assert values(curated) == {"k": 2, "m3": 3}


def test_a_standardized_table_that_somebody_deleted_from_stops_both_hops_until_main_is_moved_back(
    curated: TopicDriver,
) -> None:
    assert curated.run() is not None
    name = curated.services.lake.names.standardized(curated.name)
    standardized = curated.services.lake.load(name)
    head = standardized.current_snapshot()
    standardized.delete(EqualTo(term=Reference("message_id"), value=literal("m1")))
    curated.put(message("m5", 5))
    outcome = failed(curated)
    assert zones(outcome) == []
    assert f"Move main back to snapshot {head.snapshot_id}" in str(outcome.reason)
    assert values(curated) == {"k": 2, "m3": 3}
    failures = [row for row in curated.shared("job_run_history") if row["status"] == "FAILED"]
    assert sorted(row["zone"] for row in failures) == ["curated", "standardized"]

    curated.services.lake.load(name).manage_snapshots().rollback_to_snapshot(head.snapshot_id).commit()
    assert zones(curated.run()) == ["standardized", "curated"]
    assert values(curated) == {"k": 2, "m3": 3, "m5": 5}


def test_a_standardized_hop_that_fails_does_not_keep_curated_from_what_is_there(
    curated: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curate_hop, "staged_snapshots", lambda *_: 1 / 0)
    failed(curated)  # standardized, not curated
    monkeypatch.undo()
    raw = curated.services.lake.load(curated.services.lake.names.raw(curated.name))
    raw.delete(EqualTo(term=Reference("message_id"), value=literal("m1")))
    outcome = failed(curated)
    assert "append or replace only" in str(outcome.reason)
    assert [(batch.zone, batch.counts) for batch in outcome.batches] == [(Zone.CURATED, EXPECTED)]
    assert values(curated) == {"k": 2, "m3": 3}


def test_a_runner_that_lost_its_lease_publishes_nothing(curated: TopicDriver) -> None:
    def lose_the_lease(batch: Batch, step: str) -> None:
        if (batch.zone, step) == (Zone.CURATED, "rows merged"):
            db = curated.services.state._file.connection()
            db.execute("UPDATE locks SET owner = 'another', fence = fence + 1 WHERE topic_name = ?", (curated.name,))

    outcome = curated.run(lose_the_lease)
    assert outcome is not None
    assert "the lease was lost while working" in str(outcome.reason)
    assert values(curated) == {"k": 1}
    curated.services.state._file.connection().execute(
        "UPDATE locks SET owner = NULL WHERE topic_name = ?", (curated.name,)
    )
    outcome = curated.run()
    assert outcome is not None
    assert [batch.counts for batch in outcome.batches] == [EXPECTED]
    assert len(curated.shared("errors")) == 1


def test_a_lost_state_store_costs_nothing_and_repeats_nothing(curated: TopicDriver) -> None:
    assert curated.run() is not None
    curated.services.state._file.connection().execute(
        "DELETE FROM checkpoints WHERE pipeline_id LIKE ?", (f"%{curated.name}",)
    )
    curated.put(message("m5", 5))
    assert curated.run() is not None
    assert values(curated) == {"k": 2, "m3": 3, "m5": 5}
    assert sorted(row["records_in"] for row in books(curated)) == [1, 1, 3]
    assert len(curated.shared("errors")) == 1


def test_a_column_that_somebody_added_by_hand_stays_and_is_null_for_new_rows(curated: TopicDriver) -> None:
    from pyiceberg.types import StringType

    with curated.services.lake.load(curated.services.lake.names.curated(curated.name)).update_schema() as update:
        update.add_column("mine", StringType())
    assert curated.run() is not None
    assert values(curated) == {"k": 2, "m3": 3}
    assert {row["mine"] for row in curated.curated().values()} == {None}
