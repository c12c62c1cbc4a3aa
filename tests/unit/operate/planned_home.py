"""A home whose catalog and metadata files a test of the planner writes itself."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from lean_ops.lake.catalog_file import CatalogFile
from lean_ops.model.batch import Batch, Intent, Zone, pipeline_id
from lean_ops.model.registry import Gate
from lean_ops.model.tables import Names
from lean_ops.operate.intent import last_batch_property
from lean_ops.operate.plan import HopPlan, Planner, RunPlan, TopicPlan
from lean_ops.state.port import Checkpoint

OPEN = Gate(open=True, reason="schema 1.0.0", schema_version="1.0.0")
CURATED_TOO = replace(OPEN, curated=True)
SHUT = Gate(open=False, reason="paused: night")
NAMES = Names("dev_")
RAW, STANDARDIZED, CURATED = NAMES.raw_database, NAMES.standardized_database, NAMES.curated_database
IDLE = HopPlan(Zone.STANDARDIZED)
IDLE_CURATED = HopPlan(Zone.CURATED)


def metadata(*snapshots: dict[str, Any]) -> dict[str, Any]:
    """Table metadata of a chain: each snapshot is its id, rows added, and more of its summary."""
    total, entries = 0, []
    for one in snapshots:
        added = one.get("rows", 0)
        total += added
        counts = {"added-records": str(added), "total-records": str(total)}
        summary = {"operation": "append", **counts, **one.get("summary", {})}
        entries.append({"snapshot-id": one["id"], "timestamp-ms": 0, "summary": summary})
    for parent, child in pairwise(entries):
        child["parent-snapshot-id"] = parent["snapshot-id"]
    return {"snapshots": entries, "current-snapshot-id": entries[-1]["snapshot-id"] if entries else -1}


def published(*ends: int, last: Intent | None = None, rows: int = 0) -> dict[str, Any]:
    """A zone table whose batches ended at the given source snapshots, and then `last`, with its counts.

    Its own snapshots are 900, with nothing in it, then 901 and so on, each of so many rows.
    """
    batches = [{"lean-ops.batch-id": f"batch-{end}", "lean-ops.to-snapshot": str(end)} for end in ends]
    properties: dict[str, str] = {}
    if last is not None:
        ids = {"lean-ops.batch-id": last.batch.batch_id, "lean-ops.to-snapshot": str(last.batch.to_snapshot)}
        batches.append(ids)
        properties = last_batch_property(last)
    snapshots = ({"id": 901 + number, "rows": rows, "summary": batch} for number, batch in enumerate(batches))
    return {**metadata({"id": 900}, *snapshots), "properties": properties}


THREE = metadata({"id": 1, "rows": 5}, {"id": 2, "rows": 7}, {"id": 3, "rows": 11})


class Home:
    """A catalog file with metadata files, gates and checkpoints, written by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        self.gates: dict[str, Gate] = {}
        self.stored: dict[str, Checkpoint] = {}

    def add(self, database: str, table: str, content: Any, location: str | None = None) -> Path:
        file = self.folder / f"{database}.{table}.metadata.json"
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        with closing(sqlite3.connect(self.folder / "catalog.db")) as db, db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute(
                "CREATE TABLE IF NOT EXISTS iceberg_tables"
                " (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT, iceberg_type TEXT)"
            )
            row = ("lean_ops", database, table, location or f"file://{file}", "TABLE")
            db.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?)", row)
        return file

    def topic(
        self,
        name: str,
        raw: Any = THREE,
        standardized: Any = None,
        curated: Any = None,
        gate: Gate | None = OPEN,
        **stored: Any,
    ) -> None:
        """A topic's tables, its gate, and what the store has of its Standardized hop."""
        tables = ((RAW, f"{name}_staging", raw), (STANDARDIZED, name, standardized), (CURATED, name, curated))
        for database, table, content in tables:
            if content is not None:
                self.add(database, table, content)
        if gate is not None:
            self.gates[name] = gate
        if stored:
            self.store(Zone.STANDARDIZED, name, **stored)

    def store(self, zone: Zone, topic: str = "events", **stored: Any) -> None:
        key = pipeline_id(zone, topic)
        self.stored[key] = Checkpoint(key, **stored)

    def checkpoint(self, pipeline: str) -> Checkpoint:
        return self.stored.get(pipeline, Checkpoint(pipeline))

    def checkpoints(self) -> dict[str, Checkpoint]:
        return self.stored

    @property
    def planner(self) -> Planner:
        return Planner(CatalogFile(self.folder / "catalog.db", "lean_ops"), NAMES, self, lambda: self.gates)

    def plan(self, *topics: str) -> RunPlan:
        return self.planner.plan(topics)

    def plan_one(self, topic: str = "events") -> TopicPlan:
        [plan] = self.plan(topic).topics
        assert plan.topic == topic
        return plan

    def hop(self) -> HopPlan:
        """The one hop of a topic that ends in Standardized."""
        return only_hop(self.plan_one())

    def both_hops(self) -> tuple[HopPlan, HopPlan]:
        """The hops of a topic that goes on to Curated."""
        first, second = self.plan_one().hops
        assert (first.zone, second.zone) == (Zone.STANDARDIZED, Zone.CURATED)
        return first, second


def only_hop(plan: TopicPlan) -> HopPlan:
    [hop] = plan.hops
    assert hop.zone is Zone.STANDARDIZED
    return hop


def batch(start: int | None, end: int, version: str = "1.0.0", zone: Zone = Zone.STANDARDIZED) -> Batch:
    return Batch("events", zone, start, end, version)


def curated(start: int | None, end: int, version: str = "1.0.0") -> Batch:
    return batch(start, end, version, Zone.CURATED)


DAMAGED_ZONE = {
    "not JSON": b"{",
    "no object": b"7",
    "a checkpoint without its end": metadata({"id": 1, "summary": {"lean-ops.batch-id": "b"}}),
    "a checkpoint whose end is no number": metadata(
        {"id": 1, "summary": {"lean-ops.batch-id": "b", "lean-ops.to-snapshot": "x"}}
    ),
}
