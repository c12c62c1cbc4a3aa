"""The fate of each Standardized row, decided from what Curated and its errors hold. Pure: reading is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from lean_ops.ledger.fates import Arrival

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from lean_ops.ledger.fates import StandardizedRow

    Message: TypeAlias = tuple[str, str, datetime]
    VersionOrder: TypeAlias = tuple[datetime, int, str]


class CuratedFate(StrEnum):
    """What became of a Standardized row."""

    CURATED = "curated"  # the current row of its key
    REPLACED = "replaced"  # the key's row once its own batch was done, until a newer version came
    SUPERSEDED = "superseded"  # its own batch ended with a newer version of the key
    ERROR = "curated_error"
    PENDING = "pending"
    NOT_CURATED = "not_curated"
    MISSING = "missing"  # read by a batch, yet nowhere: the ledger's promise is broken and must be seen to be


_COMPARED: Final = frozenset({CuratedFate.CURATED, CuratedFate.REPLACED, CuratedFate.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class CuratedRow(Arrival):
    """A key's row in Curated."""

    batch_id: str | None
    schema_version: str | None
    first_seen_ts: datetime | None
    last_updated_ts: datetime | None

    @property
    def words(self) -> str:
        """What another row's reason calls this one."""
        return f"message {self.message_id} of batch {self.batch_id}"


@dataclass(frozen=True, slots=True)
class CuratedError(Arrival):
    """The message's row in the Curated errors."""

    error_type: str | None
    error_fields: tuple[str, ...]
    error_message: str | None
    schema_version: str | None
    batch_id: str | None
    replay_status: str | None


@dataclass(frozen=True, slots=True)
class CuratedStanding:
    """Why a row that no batch has read is not in Curated: it waits, or the topic does not go there."""

    waits_because: str
    ends_because: str | None = None


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """A published Curated batch: the snapshot that shows its end, and the Standardized snapshot it read up to."""

    batch_id: str
    snapshot_id: int
    to_snapshot: int


@dataclass(frozen=True, slots=True)
class CuratedState:
    """Curated as of a snapshot: the row of each key that was looked for."""

    snapshot_id: int | None = None
    rows: Mapping[str, CuratedRow] = field(default_factory=dict)

    def row(self, version: StandardizedRow) -> CuratedRow | None:
        """The row of a version's key."""
        return self.rows.get(version.idempotency_key) if version.idempotency_key is not None else None

    def holds(self, version: StandardizedRow) -> bool:
        """Whether the key's row is this very version."""
        row = self.row(version)
        return row is not None and row.message == version.message


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of some Standardized rows: Curated now and before, its errors, and which batch read which row.

    `batches` leaves out messages whose batch the history no longer shows; `past` has the states after the batches
    that are in it, oldest first.
    """

    current: CuratedState = field(default_factory=CuratedState)
    refused: Mapping[Message, CuratedError] = field(default_factory=dict)
    read: Collection[Message] = frozenset()
    batches: Mapping[Message, BatchEnd] = field(default_factory=dict)
    past: Sequence[CuratedState] = ()

    def depends_on_the_past(self, row: StandardizedRow) -> bool:
        """Whether only Curated as it was after the row's batch can say what became of it."""
        return row.message in self.read and row.message not in self.refused and not self.current.holds(row)


@dataclass(frozen=True, slots=True)
class RowFate:
    """A Standardized row, its fate, the reason in words, and the batch and snapshot that show it.

    `version` is the row in Curated that it is or was.
    """

    row: StandardizedRow
    fate: CuratedFate
    reason: str
    batch_id: str | None = None
    snapshot_id: int | None = None
    version: CuratedRow | None = None

    @property
    def is_current(self) -> bool:
        """Whether it is what a reader of Curated sees of its key."""
        return self.fate is CuratedFate.CURATED


def curated_fates(rows: Sequence[StandardizedRow], evidence: Evidence, standing: CuratedStanding) -> list[RowFate]:
    """Exactly one fate for each Standardized row; a key's versions stand together, the newest last."""
    return _in_version_order([_fate(row, evidence, standing) for row in rows])


def batch_that_read(place: int, batches: Sequence[BatchEnd], order: Mapping[int, int], whole: bool) -> BatchEnd | None:
    """The oldest of the batches (oldest first) that covers a Standardized snapshot; None if that can't be said.

    `order` has the places of Standardized's snapshots; one that has left the history has place -1. Unless the
    history is `whole`, a batch before the first one known may have read the row.
    """
    for number, batch in enumerate(batches):
        reached = order.get(batch.to_snapshot, -1)
        if reached >= place:
            return batch if reached >= 0 and (number > 0 or whole) else None
    return None


def _fate(row: StandardizedRow, evidence: Evidence, standing: CuratedStanding) -> RowFate:
    """One row's fate. A replayed error has a row in Curated too: then that counts."""
    current, refused = evidence.current.row(row), evidence.refused.get(row.message)
    if current is not None and evidence.current.holds(row):
        where = f"the key's current row: batch {current.batch_id}, snapshot {current.snapshot_id}"
        return RowFate(row, CuratedFate.CURATED, where, current.batch_id, current.snapshot_id, current)
    if row.message not in evidence.read:
        return _unread(row, standing)
    if refused is not None:
        words = f"{refused.error_type}: {refused.error_message}"
        return RowFate(row, CuratedFate.ERROR, words, refused.batch_id, refused.snapshot_id)
    batch = evidence.batches.get(row.message)
    return _passed_by(row, evidence, batch) if batch is not None else _no_longer_told(row, current)


def _unread(row: StandardizedRow, standing: CuratedStanding) -> RowFate:
    if standing.ends_because is not None:
        return RowFate(row, CuratedFate.NOT_CURATED, standing.ends_because)
    return RowFate(row, CuratedFate.PENDING, standing.waits_because)


def _passed_by(row: StandardizedRow, evidence: Evidence, batch: BatchEnd) -> RowFate:
    """The fate of a row that Curated does not have now, by what it had when the row's batch was done."""
    states = [*evidence.past, evidence.current]
    number = next(n for n, state in enumerate(states) if state.snapshot_id == batch.snapshot_id)
    shown = (batch.batch_id, batch.snapshot_id)
    then = states[number].row(row)
    if then is None:
        return RowFate(row, CuratedFate.MISSING, _nowhere(f"batch {batch.batch_id}"), *shown)
    if not states[number].holds(row):
        reason = f"batch {batch.batch_id} ended with a newer version of the key: {then.words}"
        return RowFate(row, CuratedFate.SUPERSEDED, reason, *shown)
    newer = next(
        (found for state in states[number:] if (found := state.row(row)) and found.message != row.message), None
    )
    if newer is None:
        reason = f"the key's row after batch {batch.batch_id}, but Curated has no row of the key any more"
        return RowFate(row, CuratedFate.MISSING, reason, *shown, then)
    reason = f"the key's row after batch {batch.batch_id}, until {newer.words} took its place"
    return RowFate(row, CuratedFate.REPLACED, reason, *shown, then)


def _no_longer_told(row: StandardizedRow, current: CuratedRow | None) -> RowFate:
    """A row whose batch has left Curated's history; "superseded" is the word for both of what it may have been."""
    if current is None:
        return RowFate(row, CuratedFate.MISSING, _nowhere("a batch"))
    reason = (
        f"replaced or superseded, which can't be told apart any more: {current.words} is the key's row,"
        " and the snapshot of the batch that read this one is gone from the history"
    )
    return RowFate(row, CuratedFate.SUPERSEDED, reason)


def _nowhere(reader: str) -> str:
    return f"read by {reader}, but neither in Curated nor in its errors"


def _in_version_order(fates: Sequence[RowFate]) -> list[RowFate]:
    """By key and publish_time; the current row after all that Curated compared it with, for it may go by a version."""
    newest: dict[str | None, VersionOrder] = {}
    for found in fates:
        if found.fate in _COMPARED:
            key, own = found.row.idempotency_key, _published(found.row)
            newest[key] = max(newest.get(key, own), own)

    def order(found: RowFate) -> tuple[str, VersionOrder, bool]:
        key = found.row.idempotency_key
        return (key or "", newest[key] if found.is_current else _published(found.row), found.is_current)

    return sorted(fates, key=order)


def _published(row: StandardizedRow) -> VersionOrder:
    return (row.publish_time, row.ingestion_ts or 0, row.message_id)
