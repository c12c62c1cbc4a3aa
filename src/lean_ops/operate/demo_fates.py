"""What became of every body that ever came in, summed up over the books of all zones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.model.batch import Zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.ledger.account import TopicAccount, ZoneAccount


@dataclass(frozen=True, slots=True)
class Fates:
    """Bodies by where they are now; together they are all that came in.

    `curated` are the rows that Curated has, `replaced` versions that were such rows once, `superseded` versions that
    never were because a newer one was there; `not_curated` belong to topics whose schema ends at Standardized.
    """

    bodies: int
    curated: int
    replaced: int
    superseded: int
    curated_errors: int
    parse_errors: int
    duplicates: int
    dead_letters: int
    pending_in_standardized: int
    pending_in_raw: int
    not_curated: int


def fates_of(accounts: Sequence[TopicAccount]) -> Fates:
    """The fates that the books of some topics tell."""
    zones = {zone: [part for account in accounts for part in account.zones if part.zone is zone] for zone in Zone}
    raw, standardized, curated = ([part.counts for part in zones[zone]] for zone in Zone)
    return Fates(
        bodies=sum(counts.records_in for counts in raw),
        curated=sum(counts.inserted for counts in curated),
        replaced=sum(counts.updated for counts in curated),
        superseded=sum(counts.superseded for counts in curated),
        curated_errors=sum(counts.errors for counts in curated),
        parse_errors=sum(counts.errors for counts in standardized),
        duplicates=sum(counts.duplicates for counts in standardized),
        dead_letters=sum(counts.errors for counts in raw),
        pending_in_standardized=sum(part.waiting or 0 for part in zones[Zone.CURATED]),
        pending_in_raw=sum(part.waiting or 0 for part in zones[Zone.STANDARDIZED]),
        not_curated=sum(map(_end_in_standardized, zones[Zone.STANDARDIZED], zones[Zone.CURATED])),
    )


def _end_in_standardized(standardized: ZoneAccount, curated: ZoneAccount) -> int:
    """A topic's rows, if none of them waits for Curated because its schema does not go there."""
    return standardized.counts.inserted - curated.counts.records_in if curated.waiting is None else 0
