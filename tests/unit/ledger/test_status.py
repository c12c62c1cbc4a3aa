from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.registry import put

from lean_ops.lake.catalog_file import CatalogFile
from lean_ops.lake.snapshots import History, history_from_json
from lean_ops.ledger.status import (
    TopicStatus,
    ends_because,
    gate_words,
    lake_status,
    lease_holders,
    topic_status,
    topics_of,
    waiting_after,
    waits_because,
)
from lean_ops.ledger.zone_table import ZoneTable
from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.model.tables import Names
from lean_ops.state.port import Checkpoint
from lean_ops.state.sqlite import SqliteStateStore

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
READY = RegistryItem("events", Status.READY, schema_version="1.0.0")
CURATED = RegistryItem("events", Status.READY, schema_version="1.0.0", curated=True)


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
STANDARDIZED = history(
    {"id": 8, "total-records": 0},
    {"id": 9, "added-records": 13, "total-records": 13, **BATCH},
    {"id": 10, "added-records": 6, "total-records": 19, "lean-ops.batch-id": "b2", "lean-ops.to-snapshot": 4},
)


def status_of(
    standardized: History | None = None,
    curated: History | None = None,
    item: RegistryItem = READY,
    **stored: Checkpoint,
) -> TopicStatus:
    tables = (ZoneTable("a table", history=history) for history in (RAW, standardized, curated))
    return topic_status(item, *tables, stored, None)


def test_everything_waits_before_the_first_batch() -> None:
    found = status_of()
    assert (found.raw_rows, found.standardized_rows, found.pending, found.snapshots_waiting) == (22, 0, 22, 3)
    assert found.checkpoint_at is None
    assert found.problem is None


def test_the_tables_own_history_says_how_far_it_is_and_not_the_store() -> None:
    standardized = history(
        {"id": 8, "total-records": 0}, {"id": 9, "at": 1_770_000_000_000, "total-records": 13, **BATCH}
    )
    found = status_of(standardized, standardization_events=Checkpoint("p", last_snapshot_id=4))
    assert (found.standardized_rows, found.pending, found.snapshots_waiting) == (13, 7, 1)
    assert found.checkpoint_at == datetime(2026, 2, 2, 2, 40, tzinfo=UTC)


def test_maintenance_that_carries_a_checkpoint_on_does_not_make_it_newer() -> None:
    standardized = history(
        {"id": 8, "at": 1000, **BATCH, "lean-ops.batch-id": "b0"},
        {"id": 9, "at": 2000, **BATCH},
        {"id": 10, "at": 9000, "operation": "replace", **BATCH},
    )
    assert status_of(standardized).checkpoint_at == datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)


def test_curated_counts_live_rows_and_what_it_has_not_read_of_standardized() -> None:
    read = {"lean-ops.batch-id": "c1", "lean-ops.to-snapshot": 9}
    curated = history({"id": 20, "at": 1000, "total-records": 12, "total-position-deletes": 2, **read})
    found = status_of(STANDARDIZED, curated, CURATED, curated_events=Checkpoint("p", failures=2))
    assert (found.standardized_rows, found.curated_rows, found.pending, found.curated_pending) == (19, 10, 0, 6)
    assert found.curated_checkpoint_at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert (found.failures, found.curated_failures) == (0, 2)


def test_before_the_first_curated_batch_all_of_standardized_waits_for_it() -> None:
    found = status_of(STANDARDIZED, None, CURATED)
    assert (found.curated_rows, found.curated_pending, found.curated_checkpoint_at) == (0, 19, None)


def test_nothing_waits_for_curated_where_the_schema_ends_at_standardized() -> None:
    found = status_of(STANDARDIZED, None, READY)
    assert (found.curated_rows, found.curated_pending) == (None, None)


def test_a_range_that_curated_cant_read_is_shown_with_its_reason() -> None:
    curated = history({"id": 20, "total-records": 1, "lean-ops.batch-id": "c1", "lean-ops.to-snapshot": 77})
    found = status_of(STANDARDIZED, curated, CURATED)
    assert (found.curated_rows, found.pending, found.curated_pending) == (1, 0, None)
    assert "start snapshot 77 is no longer in the history" in (found.problem or "")


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


@pytest.mark.parametrize(
    ("item", "checkpoint", "zone", "words"),
    [
        (RegistryItem("t"), 5, Zone.CURATED, "gate shut: NO_SCHEMA"),
        (CURATED, None, Zone.STANDARDIZED, "no batch of this topic has run yet"),
        (CURATED, None, Zone.CURATED, "no Curated batch of this topic has run yet"),
        (CURATED, 5, Zone.STANDARDIZED, "newer than the checkpoint (RAW snapshot 5)"),
        (CURATED, 5, Zone.CURATED, "newer than the checkpoint (Standardized snapshot 5)"),
    ],
)
def test_what_waits_says_why(item: RegistryItem, checkpoint: int | None, zone: Zone, words: str) -> None:
    assert waits_because(item, zone, checkpoint, None) == words


def test_what_an_open_batch_will_read_waits_for_it() -> None:
    batch = Batch("events", Zone.CURATED, None, 9, "1.0.0")
    begun = Intent(batch, (), NOW.isoformat())
    words = f"batch {batch.batch_id} is open: the next run finishes it"
    assert waits_because(CURATED, Zone.CURATED, 5, begun) == words


@pytest.mark.parametrize(
    ("item", "has_table", "words"),
    [
        (CURATED, False, None),
        (READY, False, "schema 1.0.0 ends at Standardized"),
        (READY, True, "schema 1.0.0 ends at Standardized"),
        (RegistryItem("t"), False, "no schema is known that leads to Curated"),
        (RegistryItem("t"), True, None),
    ],
)
def test_a_topic_that_ends_at_standardized_says_why(item: RegistryItem, has_table: bool, words: str | None) -> None:
    assert ends_because(item, has_table) == words


# the files


class Home:
    """A catalog file, metadata files and a state store, made by the standard library."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = Names()
        self.catalog = CatalogFile(folder / "catalog.db", "lean_ops")
        self.state = SqliteStateStore(folder / "state.db", 300, lambda owner: owner == "gone")
        with sqlite3.connect(folder / "catalog.db") as db:
            columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type DEFAULT 'TABLE'"
            db.execute(f"CREATE TABLE iceberg_tables ({columns})")

    def table(self, database: str, table: str, content: str) -> None:
        file = self.folder / f"{database}.{table}.json"
        file.write_text(content)
        with sqlite3.connect(self.folder / "catalog.db") as db:
            db.execute(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
                " VALUES ('lean_ops', ?, ?, ?)",
                (database, table, f"file://{file}"),
            )


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


@pytest.mark.parametrize(("zone", "prefix"), [(Zone.STANDARDIZED, ""), (Zone.CURATED, "curated_")])
def test_an_open_batch_and_failures_are_shown_by_zone(home: Home, zone: Zone, prefix: str) -> None:
    home.table("iceberg_raw_db", "events_staging", json.dumps(metadata({"id": 1, "total-records": 3})))
    lease = home.state.acquire("events", "me", NOW)
    batch = Batch("events", zone, None, 1, "1.0.0")
    home.state.save_intent(Intent(batch, (), NOW.isoformat()), lease, NOW)  # type: ignore[arg-type]
    home.state.count_failure(batch.pipeline_id, lease, NOW)  # type: ignore[arg-type]
    [found] = map(asdict, lake_status(home.catalog, home.names, home.state, {}))
    assert (found[f"{prefix}open_batch"], found[f"{prefix}failures"]) == (batch.batch_id, 1)
    assert sum(found[name] for name in ("failures", "curated_failures")) == 1


def test_a_damaged_table_is_shown_and_hides_no_other(home: Home) -> None:
    home.table("iceberg_raw_db", "bad_staging", "{")
    home.table("iceberg_raw_db", "good_staging", json.dumps(metadata({"id": 1, "total-records": 3})))
    bad, good = lake_status(home.catalog, home.names, None, {})
    assert (bad.raw_rows, bad.pending) == (None, None)
    assert "iceberg_raw_db.bad_staging: its metadata file is damaged" in (bad.problem or "")
    assert (good.raw_rows, good.problem) == (3, None)


def test_a_damaged_curated_table_hides_nothing_of_the_zones_before_it(home: Home) -> None:
    home.table("iceberg_raw_db", "events_staging", json.dumps(metadata({"id": 1, "total-records": 3})))
    home.table("iceberg_standardized_db", "events", json.dumps(metadata({"id": 8, "total-records": 2})))
    home.table("iceberg_curated_db", "events", "{")
    put(home.state, CURATED)
    [found] = lake_status(home.catalog, home.names, home.state, {})
    assert (found.raw_rows, found.standardized_rows, found.pending) == (3, 2, 3)
    assert (found.curated_rows, found.curated_pending) == (None, None)
    assert "iceberg_curated_db.events: its metadata file is damaged" in (found.problem or "")


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
