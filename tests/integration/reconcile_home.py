"""A home for reconciling: each topic is the same story, written through pyiceberg, with one thing disturbed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lean_ops.model.batch import Batch, Counts, Intent, Zone
from lean_ops.model.ledger import ledger_row
from lean_ops.model.tables import BATCH_ID, CURATED_AUDIT, ENVELOPE, STANDARDIZED, Column, TableShape
from lean_ops.operate.intent import last_batch_property
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

if TYPE_CHECKING:
    from pyiceberg.table import Table

DAY = datetime(2026, 2, 3, 10, tzinfo=UTC)
CURATED = TableShape((*ENVELOPE, Column("amount"), *CURATED_AUDIT), STANDARDIZED.partitions)

Row = dict[str, Any]


def append(table: Table, rows: list[Row], **properties: str) -> int:
    """Append rows and return the snapshot; `batch_id="b"` becomes `lean-ops.batch-id`."""
    table.append(
        pa.Table.from_pylist(rows, schema=table.schema().as_arrow()),
        snapshot_properties={f"lean-ops.{name.replace('_', '-')}": value for name, value in properties.items()},
    )
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def message(message_id: str, key: str | None = None, batch: str | None = None) -> Row:
    """A row of any zone; `batch` is the name of the batch that wrote it."""
    return {"message_id": message_id, "publish_time": DAY, "ingestion_ts": 10, "idempotency_key": key, "batch": batch}


@dataclass
class Told:
    """A topic: rows by commit of each zone, and the counts that the ledger has of each commit.

    Two flushes bring three messages, a copy, a broken payload and a dead letter; m2 corrects m1, m4 has no key.
    `ends` overrides the snapshot that a batch says it has read up to, `starts` where it says it began.
    """

    topic: str
    raw: list[list[Row]] = field(
        default_factory=lambda: [
            [message("m1", "k1"), message("m1", "k1"), message("bad")],
            [message("m2", "k1"), message("m3", "k2"), message("m4")],
        ]
    )
    standardized: list[list[Row]] = field(
        default_factory=lambda: [
            [message("m1", "k1", "b1")],
            [message("m2", "k1", "b2"), message("m3", "k2", "b2"), message("m4", None, "b2")],
        ]
    )
    curated: list[list[Row]] = field(
        default_factory=lambda: [[], [message("m2", "k1", "c2"), message("m3", "k2", "c2")]]
    )
    parse_errors: list[Row] = field(default_factory=lambda: [message("bad", None, "b1")])
    errors: list[Row] = field(default_factory=lambda: [message("m4", None, "c2")])
    letters: list[Row] = field(default_factory=lambda: [{"message_id": "d1", "archive_path": "a/f1-1.json"}])
    counts: dict[str, Counts] = field(
        default_factory=lambda: {
            "f1": Counts(4, inserted=3, errors=1),
            "f2": Counts(3, inserted=3),
            "b1": Counts(3, inserted=1, duplicates=1, errors=1),
            "b2": Counts(3, inserted=3),
            "c1": Counts(1, inserted=1),
            "c2": Counts(3, inserted=1, updated=1, errors=1),
        }
    )
    starts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    lines: list[Row] = field(default_factory=list)
    unbooked: set[str] = field(default_factory=set)


class Home:
    """Services over a fresh folder, and the topics told in it."""

    curated_shape = CURATED

    def __init__(self, folder: Path) -> None:
        self.services = Services(load_settings({"home": folder}, environ={}), clock=lambda: DAY)
        self.lake = self.services.lake
        self.lake.ensure_shared()

    def tell(self, told: Told) -> Told:
        """Write a topic's tables; its shared rows are kept for `book`."""
        names = self.lake.names
        raw = self._write(told, self.lake.ensure_raw(told.topic), Zone.RAW, "f", [])
        standardized = self.lake.ensure_standardized(told.topic)
        read = self._write(told, standardized, Zone.STANDARDIZED, "b", raw)
        if told.curated:
            self._write(told, self.lake.ensure(names.curated(told.topic), self.curated_shape), Zone.CURATED, "c", read)
        return told

    def _write(self, told: Told, table: Table, zone: Zone, letter: str, source: list[int]) -> list[int]:
        """The zone's commits, each with what its writer would leave behind; their snapshots."""
        ends: list[int] = []
        before: int | None = None
        for number, rows in enumerate(getattr(told, zone)):
            name = f"{letter}{number + 1}"
            counts = told.counts.get(name)
            end = told.ends.get(name, source[number] if number < len(source) else 0)
            batch = Batch(told.topic, zone, told.starts.get(name, before), end, "1.0.0")
            told.ids[name] = f"{told.topic}-{name}" if zone is Zone.RAW else batch.batch_id
            ends.append(
                append(table, [self._row(told, row) for row in rows], **self._summary(told, name, batch, counts))
            )
            if zone is Zone.RAW:
                batch = Batch(told.topic, zone, before, ends[-1], "")
            if counts is not None:
                self._book(told, table, name, batch, counts)
            before = batch.to_snapshot
        return ends

    def _summary(self, told: Told, name: str, batch: Batch, counts: Counts | None) -> dict[str, str]:
        if counts is None:
            return {}
        if batch.zone is not Zone.RAW:
            return {"batch_id": batch.batch_id, "to_snapshot": str(batch.to_snapshot)}
        return {"flush_id": told.ids[name], "records_in": str(counts.records_in), "errors": str(counts.errors)}

    def _book(self, told: Told, table: Table, name: str, batch: Batch, counts: Counts) -> None:
        if batch.zone is not Zone.RAW:
            intent = Intent(batch, (), DAY.isoformat(), counts)
            with table.transaction() as transaction:
                transaction.set_properties(**last_batch_property(intent))
        if name not in told.unbooked:
            snapshots = (batch.from_snapshot, batch.to_snapshot)
            told.lines.append(ledger_row(told.topic, batch.zone, told.ids[name], snapshots, counts, DAY))

    def _row(self, told: Told, row: Row) -> Row:
        """A zone's row: topic and batch id instead of the batch's name."""
        plain = {name: value for name, value in row.items() if name != "batch"}
        own_id = {BATCH_ID: told.ids.get(row["batch"], row["batch"])} if row["batch"] else {}
        return {**plain, "topic_name": told.topic, **own_id}

    def book(self, topics: list[Told]) -> None:
        """Write what the topics have in shared tables."""
        names, shared = self.lake.names, self.services.shared
        shared.append_rows(names.ops("reconciliation_log"), [line for told in topics for line in told.lines])
        shared.append_rows(names.parse_errors, [self._error(told, row) for told in topics for row in told.parse_errors])
        shared.append_rows(names.curated_errors, [self._error(told, row) for told in topics for row in told.errors])
        letters = [{**row, "topic_name": told.topic, "source": "ingest"} for told in topics for row in told.letters]
        shared.append_rows(names.dlq_errors, letters)

    def _error(self, told: Told, row: Row) -> Row:
        plain = {name: value for name, value in row.items() if name != "batch"}
        return {
            "replay_status": "NEW",
            **plain,
            "topic_name": told.topic,
            "batch_id": told.ids.get(row["batch"], row["batch"]),
        }
