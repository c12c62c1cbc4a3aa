"""What must become of every body of a plan: told from the plan alone, never by asking the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lean_ops.ledger.oracle import ExpectedFate
from lean_ops.operate.generate.kinds import CODES, COPIES, Kind

if TYPE_CHECKING:
    from lean_ops.operate.generate.family import Family
    from lean_ops.operate.generate.plan import Numbers, Rows

FATES: Final = tuple(ExpectedFate)
_NUMBERS: Final = {fate: number for number, fate in enumerate(FATES)}


@dataclass(frozen=True, slots=True)
class Foretold:
    """The fate of each row by its number in FATES, and the row that Curated shows for its key (-1: none)."""

    fate: Numbers
    winner: Numbers

    def count(self, fate: ExpectedFate, rows: slice = slice(None)) -> int:
        """How many of some rows have a fate."""
        return int(np.count_nonzero(self.fate[rows] == _NUMBERS[fate]))

    def counts(self) -> dict[str, int]:
        """How many rows have each fate that any has."""
        return {str(fate): count for fate in FATES if (count := self.count(fate))}


def foretell(rows: Rows, family: Family, processed: int | None = None) -> Foretold:
    """The fates once the first `processed` rows (all when None) went through every hop; the others wait in RAW.

    Files are taken in, and rows are processed, in the order of the rows.
    """
    done = len(rows) if processed is None else processed
    fate = _endings(rows, family)
    is_copy = np.isin(rows.kind, [CODES[kind] for kind in COPIES])
    fate[is_copy] = fate[rows.origin[is_copy]]
    lands = fate != _NUMBERS[ExpectedFate.DEAD_LETTER]
    fate[is_copy & lands] = _NUMBERS[ExpectedFate.DUPLICATE]
    winner = _winners(rows, family, fate, done)
    compared = fate == _NUMBERS[ExpectedFate.CURATED]
    fate[compared & (winner != np.arange(len(rows)))] = _NUMBERS[ExpectedFate.SUPERSEDED]
    waiting = lands & (np.arange(len(rows)) >= done)
    fate[waiting] = _NUMBERS[ExpectedFate.PENDING]
    winner[~np.isin(fate, [_NUMBERS[ExpectedFate.CURATED], _NUMBERS[ExpectedFate.SUPERSEDED]])] = -1
    return Foretold(fate, winner)


def _endings(rows: Rows, family: Family) -> Numbers:
    """Where each row's way ends by its own fault; CURATED if it has none."""
    fate = np.full(len(rows), _NUMBERS[ExpectedFate.CURATED], np.uint8)
    for kind in Kind:
        variants = family.variants_of(kind)
        if variants:
            ends = np.array([_NUMBERS[it.ending.fate if it.ending else ExpectedFate.CURATED] for it in variants])
            chosen = np.flatnonzero(rows.kind == CODES[kind])
            fate[chosen] = ends[rows.variant[chosen] % len(ends)]
    return fate


def _winners(rows: Rows, family: Family, fate: Numbers, done: int) -> Numbers:
    """For each row the newest of all right versions of its key; of two that are equally new the later arrival."""
    number = np.arange(len(rows))
    chosen = np.flatnonzero((fate == _NUMBERS[ExpectedFate.CURATED]) & (number < done))
    version = rows.at if family.by_event_time else rows.published
    order = chosen[np.lexsort((chosen, rows.published[chosen], version[chosen], rows.key[chosen]))]
    newest = np.full(len(rows), -1, np.int64)
    newest[rows.key[order]] = order  # of several assignments to one key the last stays
    return newest[rows.key]
