"""What is gathered for one commit, and what the commit made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lean_ops.ingest.archive import Refused
from lean_ops.ingest.archive_file import HEAD_BYTES
from lean_ops.ingest.body import decide, oversized
from lean_ops.ingest.lines import Brought, Line, Spool
from lean_ops.ingest.rows import GatheredRows
from lean_ops.model.batch import Counts, Zone
from lean_ops.model.envelope import RawRow
from lean_ops.model.ledger import ledger_row

if TYPE_CHECKING:
    from datetime import datetime

    from lean_ops.lake.snapshots import Snapshot
    from lean_ops.model.envelope import DeadLetter

FLUSH_ID_PROPERTY: Final = "lean-ops.flush-id"
RECORDS_IN_PROPERTY: Final = "lean-ops.records-in"
ERRORS_PROPERTY: Final = "lean-ops.errors"
OWNER_PROPERTY: Final = "lean-ops.owner"
# Every flush up to this snapshot is in the ledger; recovery need not look further back.
SETTLED_PROPERTY: Final = "lean-ops.settled-snapshot"
# The replay whose messages the flush brought again.
REPLAY_ID_PROPERTY: Final = "lean-ops.replay-id"
REPLAY: Final = "REPLAY"

# Small lines weigh more in memory than on disk, and every spooled line holds a file open.
_MAX_RECORDS: Final = 250_000
_MAX_SPOOLED: Final = 64


class Place(NamedTuple):
    """A line of a source."""

    file: str
    line: int


@dataclass(slots=True)
class OpenFlush:
    """The records since the last commit. `is_full` bounds the memory."""

    flush_id: str
    topic: str
    began: datetime
    first: Place
    rows: GatheredRows = field(default_factory=GatheredRows)
    refused: list[Refused] = field(default_factory=list)
    records: int = 0
    size: int = 0
    replay_id: str | None = None
    _spooled: int = 0
    _last: tuple[str, int] | None = None

    def add(self, file: str, line: Line, now: datetime, max_body_bytes: int) -> None:
        """Decide what becomes of a line that is not blank, and keep it for the commit."""
        number, body = line
        if isinstance(body, bytes):
            outcome = decide(body, self.topic, int(now.timestamp()), max_body_bytes)
            self.size += len(body)
        elif isinstance(body, Spool):
            outcome = oversized(body.head(HEAD_BYTES), body.size, max_body_bytes)
            self.size += HEAD_BYTES
            self._spooled += 1
        elif isinstance(body, Brought):
            outcome = body.outcome
            self.size += body.size
            self._spooled += isinstance(body.body, Spool)
        else:
            return
        if isinstance(outcome, RawRow):
            self.rows.add(outcome)
        else:
            self.refused.append(_refused(outcome, body, Place(file, number), now))
        self.records += 1
        self._last = (file, number)

    @property
    def last(self) -> Place:
        """Its newest line."""
        return Place(*self._last) if self._last else self.first

    def is_full(self, flush_bytes: int) -> bool:
        """Whether the commit must not wait for more."""
        return self.size >= flush_bytes or self.records >= _MAX_RECORDS or self._spooled >= _MAX_SPOOLED


def _refused(letter: DeadLetter, body: bytes | Spool | Brought, place: Place, now: datetime) -> Refused:
    if isinstance(body, Brought):
        return Refused(letter, body.body, *place, now, body.source, body.attributes)
    return Refused(letter, body, *place, now)


@dataclass(frozen=True, slots=True)
class Flush:
    """A committed flush, as its snapshot tells it."""

    topic: str
    flush_id: str
    snapshot_id: int
    parent_id: int | None
    records_in: int
    errors: int
    replay_id: str | None = None

    @classmethod
    def of_snapshot(cls, topic: str, snapshot: Snapshot) -> Flush:
        """The flush behind a snapshot that carries a flush id."""
        return cls(
            topic,
            snapshot.summary[FLUSH_ID_PROPERTY],
            snapshot.snapshot_id,
            snapshot.parent_id,
            snapshot.count(RECORDS_IN_PROPERTY),
            snapshot.count(ERRORS_PROPERTY),
            snapshot.summary.get(REPLAY_ID_PROPERTY),
        )

    @property
    def raw(self) -> int:
        """Rows that RAW took."""
        return self.records_in - self.errors

    def ledger_row(self, now: datetime) -> dict[str, Any]:
        """The flush's line in the ledger."""
        counts = Counts(records_in=self.records_in, inserted=self.raw, errors=self.errors)
        snapshots = (self.parent_id, self.snapshot_id)
        row = ledger_row(self.topic, Zone.RAW, self.flush_id, snapshots, counts, now)
        return row if self.replay_id is None else {**row, "kind": REPLAY}
