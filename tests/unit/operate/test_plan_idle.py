"""A run with nothing new: what was looked at once is not read again, and what moved is."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.unit.operate.planned_home import (
    CURATED,
    CURATED_TOO,
    IDLE,
    NAMES,
    RAW,
    SHUT,
    STANDARDIZED,
    THREE,
    Home,
    metadata,
    published,
)

from lean_ops.lake import catalog_file, outline_reader
from lean_ops.lake.catalog_file import CatalogFile
from lean_ops.ledger.status import lake_status
from lean_ops.model.batch import Zone

if TYPE_CHECKING:
    from pathlib import Path

FOUR = metadata({"id": 1, "rows": 5}, {"id": 2, "rows": 7}, {"id": 3, "rows": 11}, {"id": 4, "rows": 1})


class Reads(list[str]):
    """The metadata files that were really read."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    reads, outline, history = Reads(), outline_reader.read_outline, catalog_file._read_metadata
    monkeypatch.setattr(
        outline_reader, "read_outline", lambda table, path: (reads.append(table), outline(table, path))[1]
    )
    monkeypatch.setattr(
        catalog_file, "_read_metadata", lambda table, location: (reads.append(table), history(table, location))[1]
    )
    return reads


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One topic that is done in both zones, and one that waits behind its gate without a record."""
    home = Home(tmp_path / "home")
    home.topic("events", THREE, published(3), published(901), gate=CURATED_TOO, last_snapshot_id=3)
    home.store(Zone.CURATED, last_snapshot_id=901)
    home.topic("orders", THREE, published(3), gate=SHUT)
    return home


def move(home: Home, database: str, table: str, content: object) -> None:
    """Commit: the catalog points to another metadata file."""
    file = home.folder / f"{database}.{table}.2.metadata.json"
    file.write_text(json.dumps(content))
    with closing(sqlite3.connect(home.folder / "catalog.db")) as db, db:
        db.execute(
            "UPDATE iceberg_tables SET metadata_location = ? WHERE table_namespace = ? AND table_name = ?",
            (f"file://{file}", database, table),
        )


def test_an_idle_plan_reads_each_metadata_file_once_and_then_none(home: Home, reads: Reads) -> None:
    first = home.plan()
    assert not first.work
    assert sorted(reads) == sorted(
        str(NAMES.of_zone(zone, topic)) for zone in (Zone.RAW, Zone.STANDARDIZED) for topic in ("events", "orders")
    )
    reads.clear()
    assert home.plan() == first
    assert not reads


def test_a_source_that_moved_is_looked_at_and_planned(home: Home) -> None:
    home.plan()
    move(home, RAW, "events_staging", FOUR)
    [work] = home.plan().work
    assert [(planned.batch.from_snapshot, planned.records) for planned in work.hops[0].batches] == [(3, 1)]


def test_what_was_done_to_a_table_by_hand_is_still_found(home: Home) -> None:
    home.plan()
    by_hand = published(3)
    by_hand["snapshots"].append({"snapshot-id": 7, "timestamp-ms": 0, "parent-snapshot-id": 901, "summary": {}})
    move(home, STANDARDIZED, "events", {**by_hand, "current-snapshot-id": 7})
    hop = home.both_hops()[1]
    assert "somebody else has written to it" in str(hop.problem)


def test_a_store_that_is_behind_makes_the_tables_be_read(home: Home, reads: Reads) -> None:
    home.plan()
    home.store(Zone.STANDARDIZED, last_snapshot_id=2)
    reads.clear()
    assert home.both_hops()[0] == IDLE
    assert reads == [str(NAMES.raw("events")), str(NAMES.standardized("events"))]


def test_a_table_that_is_gone_is_a_problem_whatever_was_seen_before(home: Home) -> None:
    home.plan()
    with closing(sqlite3.connect(home.folder / "catalog.db")) as db, db:
        db.execute("DELETE FROM iceberg_tables WHERE table_namespace = ?", (CURATED,))
    assert "gone from the catalog" in str(home.both_hops()[1].problem)


def test_status_uses_what_a_run_has_seen_and_writes_nothing(home: Home, reads: Reads) -> None:
    catalog = CatalogFile(home.folder / "catalog.db", "lean_ops")
    before = lake_status(catalog, NAMES, None, {})
    assert sorted(file.name for file in home.folder.glob("outlines*")) == []
    home.plan()
    kept, reads[:] = (home.folder / "outlines.db").read_bytes(), []
    assert lake_status(CatalogFile(home.folder / "catalog.db", "lean_ops"), NAMES, None, {}) == before
    assert reads == [str(NAMES.curated("events"))]  # no run asks for it
    assert (home.folder / "outlines.db").read_bytes() == kept
