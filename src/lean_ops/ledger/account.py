"""What the books of a topic's zone come to: counts, what speaks against them, and how many records that concerns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.model.batch import Counts, Zone

SHOWN_IDS: Final = 20


class FindingKind(StrEnum):
    """What can be wrong with a zone, or must be known to read its numbers."""

    # in the ledger itself
    UNBALANCED = "UNBALANCED"
    BATCH_TWICE = "BATCH_TWICE"
    GAP = "GAP"
    OVERLAP = "OVERLAP"
    AHEAD = "AHEAD"
    NOT_IN_LEDGER = "NOT_IN_LEDGER"
    NOT_YET_BOOKED = "NOT_YET_BOOKED"
    DELIVERED = "DELIVERED"
    # between the ledger and the tables
    ROWS = "ROWS"
    SOURCE = "SOURCE"
    UNCOUNTABLE = "UNCOUNTABLE"
    BATCH_COUNT = "BATCH_COUNT"
    DEAD_LETTERS = "DEAD_LETTERS"
    # between the tables
    MISSING = "MISSING"
    DOUBLED = "DOUBLED"
    UNKNOWN = "UNKNOWN"
    IN_BOTH = "IN_BOTH"
    NOT_IN_CURATED = "NOT_IN_CURATED"
    KEY_TWICE = "KEY_TWICE"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    `count` is how many there are of what `ids` shows the first of: messages, keys or batches. `records` is how
    many records that puts in doubt, and `without_fate` how many of these have no fate that could be shown.
    """

    kind: FindingKind
    message: str
    count: int = 1
    records: int = 0
    without_fate: int = 0
    ids: tuple[str, ...] = ()

    @property
    def is_note(self) -> bool:
        """Whether it is told and nothing is wrong."""
        return self.kind in {FindingKind.NOT_YET_BOOKED, FindingKind.DELIVERED}

    def document(self) -> dict[str, Any]:
        """The finding for a machine."""
        return {
            "kind": str(self.kind),
            "note": self.is_note,
            "message": self.message,
            "count": self.count,
            "records": self.records,
            "ids": list(self.ids),
        }


def uncountable(problem: str) -> Finding:
    """What could not be looked at, and why."""
    return Finding(FindingKind.UNCOUNTABLE, f"can't be counted: {problem}")


def listed(ids: Sequence[str], count: int) -> str:
    """Ids in a sentence, with how many more there are."""
    more = count - len(ids)
    return ", ".join(ids) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class ZoneAccount:
    """One zone of a topic.

    `rows` is what its table holds, `source` what the zone before holds up to the checkpoint and `waiting` what it
    holds after it; None where there is nothing to count or it can't be counted.
    """

    topic: str
    zone: Zone
    counts: Counts
    rows: int | None
    source: int | None = None
    waiting: int | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that are no notes."""
        return tuple(finding for finding in self.findings if not finding.is_note)

    @property
    def balanced(self) -> bool:
        """Nothing speaks against the books."""
        return not self.faults

    @property
    def difference(self) -> int:
        """Records in doubt, by the finding that concerns most: several often tell of the same records."""
        return max((finding.records for finding in self.faults), default=0)

    @property
    def variance(self) -> float:
        """The difference as a share of what came in."""
        records_in = self.counts.records_in
        return self.difference / records_in if records_in else float(self.difference > 0)

    @property
    def accountability(self) -> float:
        """The share of what came in whose fate can be shown."""
        came = self.counts.records_in if self.source is None else self.source
        lost = max((finding.without_fate for finding in self.faults), default=0)
        return max(0, came - lost) / came if came else float(lost == 0)

    def document(self) -> dict[str, Any]:
        """The account for a machine."""
        counts = self.counts
        return {
            "zone": str(self.zone),
            "records_in": counts.records_in,
            "records_out": counts.records_out,
            "inserted": counts.inserted,
            "updated": counts.updated,
            "duplicates": counts.duplicates,
            "superseded": counts.superseded,
            "errors": counts.errors,
            "rows": self.rows,
            "waiting": self.waiting,
            "difference": self.difference,
            "variance": self.variance,
            "accountability": self.accountability,
            "balanced": self.balanced,
            "findings": [finding.document() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class TopicAccount:
    """All zones of a topic, in the order of a record's way."""

    topic: str
    zones: tuple[ZoneAccount, ...]

    @property
    def balanced(self) -> bool:
        """Every zone is."""
        return all(zone.balanced for zone in self.zones)

    def document(self) -> dict[str, Any]:
        """The topic for a machine."""
        return {"topic": self.topic, "balanced": self.balanced, "zones": [zone.document() for zone in self.zones]}
