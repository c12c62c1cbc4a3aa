"""What Curated shows of some Standardized rows: their keys' rows now and before, their errors, their batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from lean_ops.lake.snapshots import BATCH_ID_PROPERTY, TO_SNAPSHOT_PROPERTY
from lean_ops.ledger.curated_fates import (
    BatchEnd,
    CuratedError,
    CuratedRow,
    CuratedState,
    Evidence,
    RowFate,
    batch_that_read,
    curated_fates,
)
from lean_ops.ledger.finding import OneOf, both, matching, matching_each, published_like, snapshot_order
from lean_ops.ledger.reading import equal
from lean_ops.model.tables import BATCH_ID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lean_ops.lake.snapshots import History
    from lean_ops.ledger.curated_fates import CuratedStanding, Message
    from lean_ops.ledger.fates import StandardizedRow
    from lean_ops.ledger.finding import Row, TableAt

_KEY: Final = "idempotency_key"
_ARRIVAL: Final = ("message_id", "publish_time", _KEY, "ingestion_ts")
_AUDIT: Final = (BATCH_ID, "_schema_version", "first_seen_ts", "last_updated_ts")
_ERROR: Final = ("error_type", "error_message", "schema_version", "batch_id", "replay_status")


@dataclass(frozen=True, slots=True)
class CuratedStory:
    """One topic's part of a trace, from Standardized on."""

    fates: list[RowFate]
    errors: list[CuratedError]


@dataclass(frozen=True, slots=True)
class CuratedSide:
    """One topic's tables behind RAW; Curated's was looked up before Standardized's, so what it has read is there."""

    topic: str
    curated: TableAt | None
    standardized: TableAt

    @property
    def checkpoint(self) -> int | None:
        """The Standardized snapshot that Curated has read up to."""
        published = self.curated.history.checkpoint() if self.curated else None
        return published.to_snapshot if published else None

    def story(
        self, rows: Sequence[StandardizedRow], standing: CuratedStanding, errors_table: TableAt | None
    ) -> CuratedStory:
        """What became of the rows. `errors_table` is looked up last: a batch writes there before it publishes."""
        errors = self._errors(errors_table, rows) if errors_table else []
        return CuratedStory(curated_fates(rows, self._evidence(rows, errors), standing), errors)

    def _evidence(self, rows: Sequence[StandardizedRow], errors: Sequence[CuratedError]) -> Evidence:
        refused = {error.message: error for error in errors}
        if self.curated is None or not rows:
            return Evidence(refused=refused)
        head = self.curated.history.head
        current = self._states(self.curated, [head], rows)[0] if head is not None else CuratedState()
        evidence = Evidence(current, refused, self._read(rows, current, errors))
        asked = [row for row in rows if evidence.depends_on_the_past(row)]
        batches = self._batches(self.curated.history, asked) if asked else {}
        return replace(evidence, batches=batches, past=self._past(self.curated, asked, batches))

    def _read(
        self, rows: Sequence[StandardizedRow], current: CuratedState, errors: Sequence[CuratedError]
    ) -> frozenset[Message]:
        """The messages that Standardized held at the checkpoint, whatever maintenance has rewritten since."""
        history, checkpoint = self.standardized.history, self.checkpoint
        if checkpoint is None or checkpoint == history.head:
            return frozenset(row.message for row in rows if checkpoint is not None)
        if checkpoint not in history.snapshots:  # then only witnesses can say it
            return frozenset(witness.message for witness in (*current.rows.values(), *errors))
        wanted = OneOf("message_id", {row.message_id for row in rows})
        near = both(wanted.filter, published_like(row.publish_time for row in rows))
        [files] = self.standardized.files_as_of([checkpoint], near)
        found = matching(files, wanted, ("message_id", "publish_time"))
        return frozenset((self.topic, row["message_id"], row["publish_time"]) for row in found)

    def _batches(self, history: History, rows: Sequence[StandardizedRow]) -> dict[Message, BatchEnd]:
        """The Curated batch that read each row, as far as the histories of both tables still show it."""
        ends, whole = batch_ends(history), _began_empty(history)
        order, begins = snapshot_order(self.standardized.history), _batch_begins(self.standardized.history)
        places = ((row, _place(row, self.standardized.history, order, begins)) for row in rows)
        found = ((row.message, batch_that_read(place, ends, order, whole)) for row, place in places)
        return {message: batch for message, batch in found if batch is not None}

    def _past(
        self, curated: TableAt, rows: Sequence[StandardizedRow], batches: dict[Message, BatchEnd]
    ) -> list[CuratedState]:
        """Curated after each of the batches, oldest first; its state now is known already."""
        order, head = snapshot_order(curated.history), curated.history.head
        snapshots = {batch.snapshot_id for batch in batches.values()} - {head}
        return self._states(curated, sorted(snapshots, key=lambda snapshot_id: order[snapshot_id]), rows)

    def _states(
        self, curated: TableAt, snapshots: Sequence[int], rows: Sequence[StandardizedRow]
    ) -> list[CuratedState]:
        """The rows of these rows' keys as of each snapshot."""
        wanted = OneOf(_KEY, {row.idempotency_key for row in rows if row.idempotency_key is not None})
        found = matching_each(curated.files_as_of(snapshots, wanted.filter), wanted, (*_ARRIVAL, *_AUDIT))
        begins = _batch_begins(curated.history)
        states = zip(snapshots, found, strict=True)
        return [
            CuratedState(snapshot_id, {row[_KEY]: self._row(row, curated.history, begins) for row in rows_then})
            for snapshot_id, rows_then in states
        ]

    def _row(self, row: Row, curated: History, begins: dict[str, int]) -> CuratedRow:
        batch_id, schema_version, first_seen, last_updated = (row[name] for name in _AUDIT)
        written = {**row, "snapshot_id": _writer(row["snapshot_id"], batch_id, curated, begins)}
        return CuratedRow(
            **self._arrival(written),
            batch_id=batch_id,
            schema_version=schema_version,
            first_seen_ts=first_seen,
            last_updated_ts=last_updated,
        )

    def _errors(self, table: TableAt, rows: Sequence[StandardizedRow]) -> list[CuratedError]:
        """The rows' errors, the newest of a message last."""
        wanted = OneOf("message_id", {row.message_id for row in rows})
        if not rows:
            return []
        files = table.files(both(equal("topic_name", self.topic), wanted.filter))
        columns = (*_ARRIVAL, *_ERROR, "error_fields", "processed_ts", "topic_name")
        found = [row for row in matching(files, wanted, columns) if row["topic_name"] == self.topic]
        known = {row.message for row in rows}
        errors = [self._error(row) for row in sorted(found, key=_processed)]
        return [error for error in errors if error.message in known]

    def _error(self, row: Row) -> CuratedError:
        fields = tuple(row["error_fields"] or ())
        return CuratedError(**self._arrival(row), error_fields=fields, **{name: row[name] for name in _ERROR})

    def _arrival(self, row: Row) -> Row:
        return {"topic": self.topic, "snapshot_id": row["snapshot_id"], **{name: row[name] for name in _ARRIVAL}}


def batch_ends(history: History) -> list[BatchEnd]:
    """A table's batches, oldest first, each with its newest snapshot.

    A batch may take several commits, and maintenance that carries its id on changes no rows.
    """
    ends: dict[str, BatchEnd] = {}
    for snapshot in history.ancestors(history.head):
        batch_id = snapshot.summary.get(BATCH_ID_PROPERTY)
        if batch_id is not None and batch_id not in ends:
            ends[batch_id] = BatchEnd(batch_id, snapshot.snapshot_id, int(snapshot.summary[TO_SNAPSHOT_PROPERTY]))
    return list(reversed(ends.values()))


def all_ends(history: History) -> frozenset[int]:
    """Where batches of a table ended, whether main still shows them or a rebuild has taken their place."""
    words = (snapshot.summary.get(TO_SNAPSHOT_PROPERTY) for snapshot in history.snapshots.values())
    return frozenset(int(word) for word in words if word is not None)


def _processed(error: Row) -> tuple[bool, datetime | None]:
    return (error["processed_ts"] is not None, error["processed_ts"])


def _began_empty(history: History) -> bool:
    """Whether the table had no rows before the oldest snapshot kept, so that no batch before that wrote any.

    A missing parent does not say it: expiry may take the link away with the snapshot.
    """
    *_, oldest = history.ancestors(history.head)
    before = oldest.count("total-records") - oldest.count("added-records") + oldest.count("deleted-records")
    return "total-records" in oldest.summary and before == 0


def _batch_begins(history: History) -> dict[str, int]:
    """The snapshot with which each batch came; later ones that have its id carry it on."""
    return {
        snapshot.summary[BATCH_ID_PROPERTY]: snapshot.snapshot_id
        for snapshot in history.ancestors(history.head)
        if BATCH_ID_PROPERTY in snapshot.summary and not snapshot.is_maintenance
    }


def _place(row: StandardizedRow, standardized: History, order: dict[int, int], begins: dict[str, int]) -> int:
    """The place in the history of the snapshot that brought a row; -1 if it is older than what is kept.

    Its batch says it; the file of a row that has none in the history says it too, unless maintenance wrote it.
    """
    if row.batch_id in begins:
        return order[begins[row.batch_id]]
    writer = standardized.snapshots.get(row.snapshot_id or -1)
    return order.get(writer.snapshot_id, -1) if writer is not None and writer.operation == "append" else -1


def _writer(file_writer: int | None, batch_id: str | None, curated: History, begins: dict[str, int]) -> int | None:
    """The snapshot that wrote a row: its file's, unless that one only took the row over from an older file."""
    writer = curated.snapshots.get(file_writer or -1)
    if writer is not None and not writer.is_maintenance and writer.summary.get(BATCH_ID_PROPERTY) == batch_id:
        return file_writer
    return begins.get(batch_id or "", file_writer)
