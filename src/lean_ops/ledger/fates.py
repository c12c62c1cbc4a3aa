"""The fate of each RAW copy of a message, decided from what the zones hold. Pure: reading is in trace.py."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime


class Fate(StrEnum):
    """What became of a RAW row."""

    STANDARDIZED = "standardized"
    DUPLICATE = "duplicate"
    PARSE_ERROR = "parse_error"
    PENDING = "pending"
    MISSING = "missing"  # read by a batch, yet nowhere: the ledger's promise is broken and must be seen to be


@dataclass(frozen=True, slots=True)
class Arrival:
    """What all zones keep of a message: Pub/Sub assigns id and time once, and a retry carries both."""

    topic: str
    message_id: str
    publish_time: datetime
    idempotency_key: str | None
    ingestion_ts: int | None
    snapshot_id: int | None

    @property
    def message(self) -> tuple[str, str, datetime]:
        """The message that this is an arrival of."""
        return (self.topic, self.message_id, self.publish_time)


@dataclass(frozen=True, slots=True)
class RawCopy(Arrival):
    """One row of RAW; `processed` says whether a published batch has read it."""

    payload: str | None
    processed: bool


@dataclass(frozen=True, slots=True)
class StandardizedRow(Arrival):
    """The message's row in Standardized."""

    batch_id: str | None


@dataclass(frozen=True, slots=True)
class ParseError(Arrival):
    """The message's row in parse_errors."""

    payload: str | None
    error_type: str | None
    error_message: str | None
    batch_id: str | None
    replay_status: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a topic is: why a copy waits, the order of RAW's snapshots, and where each batch ended.

    `turns` has the ends of all batches that are known, also of those whose rows a rebuild has written anew.
    """

    waits_because: str
    raw_order: Mapping[int, int] = field(default_factory=dict)
    batch_ends: Mapping[str, int] = field(default_factory=dict)
    turns: Collection[int] = ()

    def order(self, copy: RawCopy) -> int:
        """The place of a copy's snapshot in RAW's history; what has left the history is older than the rest."""
        return -1 if copy.snapshot_id is None else self.raw_order.get(copy.snapshot_id, -1)

    def turn(self, copy: RawCopy) -> int:
        """How many batches had ended before the one that read the copy."""
        place = self.order(copy)
        return sum(self.raw_order.get(end, place) < place for end in self.turns)


@dataclass(frozen=True, slots=True)
class CopyFate:
    """A copy, its fate and the reason in words."""

    copy: RawCopy
    fate: Fate
    reason: str


def fates_of(
    copies: Sequence[RawCopy],
    standing: Standing,
    standardized: Sequence[StandardizedRow],
    parse_errors: Sequence[ParseError],
) -> list[CopyFate]:
    """Exactly one fate for each RAW copy of a topic, in the order in which they came."""
    rows = {row.message: row for row in reversed(standardized)}
    refused = {row.message: row for row in reversed(parse_errors)}
    messages: defaultdict[tuple[str, str, datetime], list[RawCopy]] = defaultdict(list)
    for copy in sorted(copies, key=lambda copy: _arrival_order(copy, standing)):
        messages[copy.message].append(copy)
    return [
        fate
        for message, group in messages.items()
        for fate in _fates(group, standing, rows.get(message), refused.get(message))
    ]


def _fates(
    group: list[RawCopy], standing: Standing, row: StandardizedRow | None, refused: ParseError | None
) -> Iterator[CopyFate]:
    """The fates of one message's copies. A replayed parse error has both rows: then Standardized counts."""
    processed = [copy for copy in group if copy.processed]
    first = _first_copy(processed, standing, row or refused) if processed else None
    for copy in group:
        if not copy.processed:
            yield CopyFate(copy, Fate.PENDING, standing.waits_because)
        elif row is None and refused is None:
            yield CopyFate(copy, Fate.MISSING, "read by a batch, but neither in Standardized nor in parse_errors")
        elif copy is not first:
            yield CopyFate(copy, Fate.DUPLICATE, _duplicate_of(first, row))
        elif row is not None:
            yield CopyFate(copy, Fate.STANDARDIZED, f"batch {row.batch_id}, snapshot {row.snapshot_id}")
        elif refused is not None:
            yield CopyFate(copy, Fate.PARSE_ERROR, f"{refused.error_type}: {refused.error_message}")


def _first_copy(
    processed: list[RawCopy], standing: Standing, witness: StandardizedRow | ParseError | None
) -> RawCopy | None:
    """The copy that became the witness's row: of the earliest batch, the lowest (ingestion_ts, payload text)."""
    if witness is None:
        return None
    candidates = [copy for copy in processed if copy.ingestion_ts == witness.ingestion_ts] or processed
    end = standing.raw_order.get(standing.batch_ends.get(witness.batch_id or "", -1))
    if end is not None:
        candidates = [copy for copy in candidates if standing.order(copy) <= end] or candidates
        return min(candidates, key=lambda copy: (standing.turn(copy), copy.ingestion_ts or 0, copy.payload or ""))
    return candidates[0]


def _duplicate_of(first: RawCopy | None, row: StandardizedRow | None) -> str:
    where = "the standardized one" if row is not None else "in parse_errors"
    if first is None:
        return f"another copy is {where}"
    return f"the copy of snapshot {first.snapshot_id} with ingestion_ts {first.ingestion_ts} is {where}"


def _arrival_order(copy: RawCopy, standing: Standing) -> tuple[datetime, str, int, int, str]:
    return (copy.publish_time, copy.message_id, standing.order(copy), copy.ingestion_ts or 0, copy.payload or "")
