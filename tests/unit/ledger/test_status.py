from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.registry import put

from lean_ops.lake.catalog_file import CatalogFile
from lean_ops.lake.snapshots import History, history_from_json
from lean_ops.ledger.status import gate_words, lake_status, lease_holders, topic_status, topics_of, waiting_after
from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.model.tables import Names
from lean_ops.state.port import Checkpoint
from lean_ops.state.sqlite import SqliteStateStore

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
READY = RegistryItem("events", Status.READY, schema_version="1.0.0")


def metadata(*snapshots: dict[str, Any]) -> dict[str, Any]:
    """Table metadata of a chain of snapshots; each is the child of the one before."""
    entries = [
        {"snapshot-id": entry["id"], "timestamp-ms": entry.get("at", 0), "summary": {"operation": "append", **entry}}
        for entry in (
            {key: value if key in {"id", "at"} else str(value) for key, value in one.items()} for one in snapshots
        )
    ]
    for parent, child in pairwise(entries):
        child["parent-snapshot-id"] = parent["snapshot-id"]
    return {"snapshots": entries, "current-snapshot-id": entries[-1]["snapshot-id"] if entries else -1}


def history(*snapshots: dict[str, Any]) -> History:
    return history_from_json("t", metadata(*snapshots))


RAW = history(
    {"id": 1, "added-records": 10, "total-records": 10},
    {"id": 2, "added-records": 5, "total-records": 15},
    {"id": 3, "operation": "replace", "total-records": 15},
    {"id": 4, "added-records": 7, "total-records": 22},
)
BATCH = {"lean-ops.batch-id": "b1", "lean-ops.to-snapshot": 2}


def test_everything_waits_before_the_first_batch() -> None:
    found = topic_status(READY, RAW, None, Checkpoint("p"), None)
    assert (found.raw_rows, found.standardized_rows, found.pending, found.snapshots_waiting) == (22, 0, 22, 3)
    assert found.checkpoint_at is None
    assert found.problem is None


def test_the_tables_own_history_says_how_far_it_is_and_not_the_store() -> None:
    standardized = history(
        {"id": 8, "total-records": 0}, {"id": 9, "at": 1_770_000_000_000, "total-records": 13, **BATCH}
    )
    found = topic_status(READY, RAW, standardized, Checkpoint("p", last_snapshot_id=4), None)
    assert (found.standardized_rows, found.pending, found.snapshots_waiting) == (13, 7, 1)
    assert found.checkpoint_at == datetime(2026, 2, 2, 2, 40, tzinfo=UTC)


def test_maintenance_that_carries_a_checkpoint_on_does_not_make_it_newer() -> None:
    standardized = history(
        {"id": 8, "at": 1000, **BATCH, "lean-ops.batch-id": "b0"},
        {"id": 9, "at": 2000, **BATCH},
        {"id": 10, "at": 9000, "operation": "replace", **BATCH},
    )
    assert topic_status(READY, RAW, standardized, Checkpoint("p"), None).checkpoint_at == datetime(
        1970, 1, 1, 0, 0, 2, tzinfo=UTC
    )


def test_nothing_waits_at_the_head_or_without_data() -> None:
    assert waiting_after(RAW, 4).records == 0
    assert waiting_after(RAW, 4).snapshots == 0
    assert waiting_after(None, None).records == 0
    assert waiting_after(history(), None).records == 0


def test_a_range_that_cant_be_read_is_shown_with_its_reason() -> None:
    found = waiting_after(RAW, 99)
    assert (found.records, found.snapshots) == (None, None)
    assert "start snapshot 99 is no longer in the history" in (found.problem or "")
    rewritten = history({"id": 1, "total-records": 3}, {"id": 2, "operation": "overwrite", "total-records": 2})
    assert "snapshot 2 is a 'overwrite'" in (waiting_after(rewritten, 1).problem or "")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (READY, "open"),
        (RegistryItem("t", Status.REBUILDING), "open (REBUILDING)"),
        (RegistryItem("t"), "NO_SCHEMA"),
        (RegistryItem("t", Status.DISABLED), "DISABLED"),
        (RegistryItem("t", Status.ERROR, last_error="no type"), "ERROR: no type"),
        (RegistryItem("t", Status.READY, Flow.PAUSED, "3 failures"), "PAUSED: 3 failures"),
        (RegistryItem("t", Status.READY, Flow.PAUSED), "PAUSED: no reason given"),
        (RegistryItem("t", Status.NO_SCHEMA, Flow.PAUSED, "by hand"), "NO_SCHEMA, PAUSED: by hand"),
    ],
)
def test_the_gate_is_open_or_says_why_not(item: RegistryItem, words: str) -> None:
    assert gate_words(item) == words


# the files


class Home:
    """A catalog file, metadata files and a state store, made by the standard library."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = Names()
        self.catalog = CatalogFile(folder / "catalog.db", "lean_ops")
        self.state = SqliteStateStore(folder / "state.db", 300, lambda owner: owner == "gone")
        with sqlite3.connect(folder / "catalog.db") as db:
            db.execute("CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)")

    def table(self, database: str, table: str, content: str) -> None:
        file = self.folder / f"{database}.{table}.json"
        file.write_text(content)
        with sqlite3.connect(self.folder / "catalog.db") as db:
            db.execute("INSERT INTO iceberg_tables VALUES ('lean_ops', ?, ?, ?)", (database, table, f"file://{file}"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_topics_are_those_registered_and_those_with_a_raw_table(home: Home) -> None:
    home.table("iceberg_raw_db", "events_staging", json.dumps(metadata({"id": 1, "total-records": 3})))
    home.table("iceberg_raw_db", "dlq_errors", json.dumps(metadata()))
    put(home.state, RegistryItem("orders", Status.READY))
    assert topics_of(home.catalog, home.names, home.state) == ["events", "orders"]
    found = lake_status(home.catalog, home.names, home.state, {"events": "me"})
    assert [(one.topic, one.gate, one.raw_rows, one.pending, one.lease) for one in found] == [
        ("events", "NO_SCHEMA", 3, 3, "me"),
        ("orders", "open", 0, 0, None),
    ]


def test_an_open_batch_and_failures_are_shown(home: Home) -> None:
    home.table("iceberg_raw_db", "events_staging", json.dumps(metadata({"id": 1, "total-records": 3})))
    lease = home.state.acquire("events", "me", NOW)
    batch = Batch("events", Zone.STANDARDIZED, None, 1, "1.0.0")
    home.state.save_intent(Intent(batch, (), NOW.isoformat()), lease, NOW)  # type: ignore[arg-type]
    home.state.count_failure(batch.pipeline_id, lease, NOW)  # type: ignore[arg-type]
    [found] = lake_status(home.catalog, home.names, home.state, {})
    assert (found.open_batch, found.failures) == (batch.batch_id, 1)


def test_a_damaged_table_is_shown_and_hides_no_other(home: Home) -> None:
    home.table("iceberg_raw_db", "bad_staging", "{")
    home.table("iceberg_raw_db", "good_staging", json.dumps(metadata({"id": 1, "total-records": 3})))
    bad, good = lake_status(home.catalog, home.names, None, {})
    assert (bad.raw_rows, bad.pending) == (None, None)
    assert "iceberg_raw_db.bad_staging: its metadata file is damaged" in (bad.problem or "")
    assert (good.raw_rows, good.problem) == (3, None)


def test_a_lease_is_held_until_it_expires_is_given_back_or_its_process_ends(home: Home) -> None:
    for topic, owner in (("a", "me"), ("b", "gone"), ("c", "me"), ("d", "me")):
        lease = home.state.acquire(topic, owner, NOW - timedelta(minutes=10) if topic == "c" else NOW)
        if topic == "d":
            home.state.release(lease)  # type: ignore[arg-type]
    assert lease_holders(home.folder / "state.db", NOW, lambda owner: owner == "gone") == {"a": "me"}


def test_holders_of_a_missing_or_new_state_file_are_nobody_and_make_no_file(tmp_path: Path) -> None:
    assert lease_holders(tmp_path / "state.db", NOW, lambda _: False) == {}
    assert list(tmp_path.iterdir()) == []
    sqlite3.connect(tmp_path / "state.db").close()
    assert lease_holders(tmp_path / "state.db", NOW, lambda _: False) == {}
