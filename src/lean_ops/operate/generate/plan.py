"""What a topic is sent, decided before anything is written: a row of numbers for each body.

The same seed makes the same rows. A later segment may copy and correct what an earlier one sent.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from lean_ops.model.errors import WrongUseError
from lean_ops.operate.generate.family import DRAWS
from lean_ops.operate.generate.kinds import CODES, COPIES, PLAIN, VERSIONS, Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    Numbers: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SECOND: Final = 1_000
_DAY: Final = 24 * 3600 * _SECOND
_MONTH: Final = 31 * _DAY
_HOT_KEYS: Final = 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_RETRIED: Final = frozenset(Kind) - COPIES - {Kind.OVERSIZED}
# Kinds that the schema refuses for their values, so that their keys can be read and put right later.
_REFUSED_WITH_KEY: Final = frozenset({Kind.BAD_TYPE, Kind.BROKEN_RULE, Kind.COMBINED})


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which messages are published, and its share of a segment's messages."""

    start: datetime
    length: timedelta
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a topic's story: how many bodies of each kind, published when.

    Copies and versions refer to messages at random, or `in_turn` to the first ones: then the first message of a story
    has a copy, a correction and whatever else there is.
    """

    name: str
    counts: Mapping[Kind, int]
    windows: Sequence[Window]
    in_turn: bool = False

    @property
    def size(self) -> int:
        """How many bodies it has."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Rows:
    """Bodies as columns of numbers; times are milliseconds since 1970.

    `variant` counts the bodies of a kind, so that each way to go wrong has its turn. `origin` is the row that a copy
    repeats, else the row itself; `key` is the row that brought the key; `at` is the time that the payload speaks of.
    """

    kind: Numbers
    variant: Numbers
    key: Numbers
    origin: Numbers
    at: Numbers
    published: Numbers
    draws: Numbers

    def __len__(self) -> int:
        return len(self.kind)

    def followed_by(self, later: Rows) -> Rows:
        """These rows and later ones."""
        return Rows(*(np.concatenate([getattr(self, it.name), getattr(later, it.name)]) for it in fields(self)))


def no_rows() -> Rows:
    """A story that has not begun."""
    none = np.zeros(0, np.int64)
    return Rows(none.astype(np.uint8), none, none, none, none, none, np.zeros((0, DRAWS), np.int64))


class _Dice:
    """Random numbers that depend on a text alone: the raw stream of a bit generator never changes between releases."""

    def __init__(self, seed: str) -> None:
        digest = hashlib.sha256(seed.encode()).digest()
        self._bits = np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest[:16], "big")))

    def below(self, limit: int, count: int) -> Numbers:
        """So many numbers from 0 to below a limit."""
        return (self._bits.random_raw(count) >> np.uint64(11)).astype(np.int64) % max(1, limit)

    def order(self, count: int) -> Numbers:
        """The numbers from 0 to below a count, mixed."""
        return np.argsort(self._bits.random_raw(count), kind="stable")


def extended(before: Rows, segment: Segment, seed: str) -> Rows:
    """The rows of a story with a further segment."""
    return before.followed_by(_Planner(before, segment, _Dice(f"{seed}/{segment.name}")).rows())


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans one segment; row numbers count from the story's beginning."""

    before: Rows
    segment: Segment
    dice: _Dice

    def rows(self) -> Rows:
        kind = self._kinds()
        own = len(self.before) + np.arange(len(kind), dtype=np.int64)
        at = self._times(len(kind))
        rows = Rows(
            kind=kind,
            variant=_turns(kind),
            key=own.copy(),
            origin=own.copy(),
            at=at,
            published=at + self.dice.below(5 * _SECOND, len(kind)),
            draws=self.dice.below(2**31, len(kind) * DRAWS).reshape(-1, DRAWS),
        )
        self._skew(rows)
        self._date_versions(rows, own)
        self._repeat(rows, own)
        return rows

    def _kinds(self) -> Numbers:
        """The kinds in their order of sending; a story begins with a message that others may follow."""
        counts = self.segment.counts
        kinds = np.repeat(np.array([CODES[kind] for kind in counts], np.uint8), np.array([*counts.values()], np.int64))
        kinds = kinds[self.dice.order(len(kinds))]
        plain = np.flatnonzero(np.isin(kinds, [CODES[kind] for kind in PLAIN]))
        if len(plain) and not len(self.before):
            kinds[[0, plain[0]]] = kinds[[plain[0], 0]]
        return kinds

    def _times(self, count: int) -> Numbers:
        """When each message is written: evenly over its window, with some jitter."""
        windows = self.segment.windows
        shares = np.array([window.share for window in windows])
        edges = np.concatenate([[0], np.round(np.cumsum(shares) / shares.sum() * count).astype(np.int64)])
        times = np.zeros(count, np.int64)
        for window, first, last in zip(windows, edges, edges[1:], strict=False):
            start, length = _milliseconds(window.start), int(window.length.total_seconds() * 1000)
            steps = np.arange(last - first, dtype=np.int64) * length // max(1, last - first)
            times[first:last] = start + steps + self.dice.below(max(1, length // max(1, count)), last - first)
        return times

    # what refers to other messages

    def _skew(self, rows: Rows) -> None:
        """Clocks that are up to ten days off in either direction."""
        chosen = np.flatnonzero(rows.kind == CODES[Kind.SKEWED])
        rows.published[chosen] += self.dice.below(20 * _DAY, len(chosen)) - 10 * _DAY

    def _date_versions(self, rows: Rows, own: Numbers) -> None:
        """Versions take the key of a message and a time that stands to its time as their kind asks for."""
        for kind in sorted(VERSIONS, key=CODES.__getitem__):
            chosen = np.flatnonzero(rows.kind == CODES[kind])
            if not len(chosen):
                continue
            known = self._candidates(rows, own, _REFUSED_WITH_KEY if kind is Kind.REPAIR else {Kind.NEW}, kind)
            known = known[:_HOT_KEYS] if kind is Kind.HOT_KEY else known
            target = self._chosen_among(known, np.full(len(chosen), len(known)), rows.variant[chosen])
            later = self._later(kind, len(chosen))
            rows.key[chosen] = target
            rows.at[chosen] = self._value("at", rows, target) + later
            delay = 0 if kind is Kind.TIE else self.dice.below(5 * _SECOND, len(chosen))
            base = self._value("published", rows, target) if kind is Kind.TIE else rows.at[chosen]
            rows.published[chosen] = base + delay

    def _later(self, kind: Kind, count: int) -> Numbers | int:
        """How much younger than the message that it follows a version is; less than nothing for a late one."""
        below = self.dice.below
        match kind:
            case Kind.TIE:
                return 0
            case Kind.LATE:
                return -_DAY - below(20 * _DAY, count)
            case Kind.CROSS_MONTH:
                return _MONTH + below(2 * _MONTH, count)
            case Kind.HOT_KEY:
                return below(60 * _DAY, count)
            case _:
                return 60 * _SECOND + below(2 * _DAY, count)

    def _repeat(self, rows: Rows, own: Numbers) -> None:
        """Copies repeat a message that was sent before them; only right ones can be told apart from altered ones."""
        for kind in sorted(COPIES, key=CODES.__getitem__):
            chosen = np.flatnonzero(rows.kind == CODES[kind])
            if not len(chosen):
                continue
            known = self._candidates(rows, own, PLAIN if kind is Kind.ALTERED_RETRY else _RETRIED, kind)
            earlier = np.maximum(1, np.searchsorted(known, own[chosen]))
            target = self._chosen_among(known, earlier, rows.variant[chosen])
            rows.origin[chosen] = target
            for name in ("key", "at", "published"):
                getattr(rows, name)[chosen] = self._value(name, rows, target)

    def _chosen_among(self, known: Numbers, limits: Numbers, turns: Numbers) -> Numbers:
        """One of the first so many known rows for each of some rows."""
        numbers = turns if self.segment.in_turn else self.dice.below(2**40, len(turns))
        return np.asarray(known[numbers % limits])

    def _candidates(self, rows: Rows, own: Numbers, kinds: Collection[Kind], asking: Kind) -> Numbers:
        """The rows of some kinds up to now, in order; WrongUseError if there is none to refer to."""
        codes = [CODES[kind] for kind in kinds]
        found = np.concatenate([np.flatnonzero(np.isin(self.before.kind, codes)), own[np.isin(rows.kind, codes)]])
        if not len(found):
            needed = "messages with wrong types or broken rules" if asking is Kind.REPAIR else "new messages"
            raise WrongUseError(
                f"{asking} have nothing to refer to",
                found=f"no {needed}",
                remedy="Lower the rates, so that there is room for new messages; `repairs` need `bad_types` too.",
            )
        return found

    def _value(self, name: str, rows: Rows, targets: Numbers) -> Numbers:
        """A column's values of rows anywhere in the story."""
        first = len(self.before)
        whole = np.concatenate([getattr(self.before, name), getattr(rows, name)]) if first else getattr(rows, name)
        return np.asarray(whole[targets])


def _turns(kind: Numbers) -> Numbers:
    """For each row, how many rows of its kind came before it."""
    turns = np.zeros(len(kind), np.int64)
    for code in np.unique(kind):
        chosen = np.flatnonzero(kind == code)
        turns[chosen] = np.arange(len(chosen))
    return turns


def _milliseconds(moment: datetime) -> int:
    return int((moment - _EPOCH).total_seconds() * 1000)
