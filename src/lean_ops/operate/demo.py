"""The demo's data: two days of queue bodies for three topics, and what the books must say of them.

Made from a start time alone: the same time makes the same bodies, another one makes other messages in the same numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final

import msgspec

from lean_ops.ledger.oracle import Expected, ExpectedFate
from lean_ops.model.batch import Counts, Zone
from lean_ops.operate.generate.families import FAMILIES
from lean_ops.operate.generate.kinds import Kind
from lean_ops.operate.generate.plan import Segment, Window
from lean_ops.operate.generate.story import Part, Story

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lean_ops.operate.generate.oracle import Foretold

TOPICS: Final = ("events", "orders", "readings")
# Runs are told apart by the seconds since then: their messages and keys have them in their names.
FIRST_SEED: Final = datetime(2020, 1, 1, tzinfo=UTC)
_SEEDS: Final = 10**9
_PUBLISHED_FOR: Final = timedelta(hours=23)

# How many of each kind, for events, orders and readings; the numbers differ so that no topic passes for another.
_DAY_ONE: Final = {Kind.NEW: (290, 280, 300), Kind.RETRY: (10, 8, 15)}
_DAY_TWO: Final = {
    Kind.NEW: (225, 210, 240),
    Kind.RETRY: (25, 18, 30),
    Kind.CORRECTION: (20, 45, 12),
    Kind.LATE: (8, 6, 9),
    Kind.DRIFT: (9, 7, 5),
    Kind.TYPE_CHANGE: (5, 4, 3),
    Kind.CDE_NULL: (6, 8, 4),
    Kind.BAD_TYPE: (5, 3, 7),
    Kind.BROKEN_RULE: (3, 5, 6),
    Kind.COMBINED: (2, 3, 1),
    Kind.MALFORMED: (6, 5, 9),
    Kind.EMPTY: (3, 4, 5),
    Kind.NOT_AN_OBJECT: (2, 1, 3),
    Kind.REFUSED: (3, 4, 5),
}
_CORRECTED_AGAIN: Final = {Kind.CORRECTION: (4, 9, 3)}  # in the same batch, so the newest of several has to win
_REFUSED_IN: Final = {
    Zone.RAW: ExpectedFate.DEAD_LETTER,
    Zone.STANDARDIZED: ExpectedFate.PARSE_ERROR,
    Zone.CURATED: ExpectedFate.ERROR,
}


def seed_of(started: datetime) -> int:
    """What tells a run from others that began in another second."""
    return int((started - FIRST_SEED).total_seconds()) % _SEEDS


def two_days(topic: str, started: datetime) -> tuple[Day, Day]:
    """What a topic is sent the day before yesterday and yesterday, seen from `started`."""
    midnight = started.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    one, two = (Window(midnight - timedelta(days=days), _PUBLISHED_FOR) for days in (2, 1))
    morning = Story.of(topic, FAMILIES[topic], seed_of(started)).with_segment(_segment("day1", topic, _DAY_ONE, one))
    evening = morning.with_segment(_segment("day2", topic, _DAY_TWO, two))
    evening = evening.with_segment(_segment("day2 again", topic, _CORRECTED_AGAIN, two))
    first, second = morning.part(0, f"day1/{topic}.jsonl"), evening.part(len(morning.rows), f"day2/{topic}.jsonl")
    return Day(morning, first), Day(evening, second, (first,))


def _segment(name: str, topic: str, counts: Mapping[Kind, tuple[int, ...]], window: Window) -> Segment:
    """In turn, so that the first key of day one has copies, corrections and a late older version."""
    place = TOPICS.index(topic)
    return Segment(name, {kind: of_topics[place] for kind, of_topics in counts.items()}, [window], in_turn=True)


@dataclass(frozen=True)
class Day:
    """What one topic is sent on one day, and what the books of every zone must say of it once it is processed.

    The story ends with this day; `part` are the day's own rows, `earlier` those of the days before it.
    """

    story: Story
    part: Part
    earlier: tuple[Part, ...] = ()

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.story.topic

    @property
    def content(self) -> bytes:
        """The bodies as a file that `ingest` takes."""
        return b"".join(chunk.bodies for chunk in self.story.chunks(self.part, self.story.foretold()))

    @property
    def fates(self) -> bytes:
        """What must have become of every body of the story, as a file that `verify` takes."""
        foretold, parts = self.story.foretold(), (*self.earlier, self.part)
        return b"".join(chunk.fates for part in parts for chunk in self.story.chunks(part, foretold))

    @cached_property
    def told(self) -> list[Expected]:
        """What must have become of each of the day's bodies, in their order."""
        return list(self._told(self.part, self.story.foretold()))

    @property
    def kinds(self) -> Counter[Kind]:
        """How many bodies there are of each kind, in the order of Kind."""
        return Counter(sorted((Kind(line.kind or "") for line in self.told), key=list(Kind).index))

    def first(self, kind: Kind) -> Expected:
        """The first body of a kind; if it follows another one, then it is about the first key of the story."""
        return next(line for line in self.told if line.kind == kind)

    # what must become of it

    def errors(self, zone: Zone) -> Counter[str]:
        """The errors on the way into a zone, by type."""
        return Counter(line.reason or "" for line in self.told if line.fate is _REFUSED_IN[zone])

    def counts(self, zone: Zone) -> Counts:
        """What the books of a zone's batch must say that takes this day after the days before it."""
        fates = Counter(line.fate for line in self.told)
        errors = fates[_REFUSED_IN[zone]]
        raw = fates.total() - fates[ExpectedFate.DEAD_LETTER]
        if zone is Zone.RAW:
            return Counts(fates.total(), raw, errors=errors)
        duplicates = fates[ExpectedFate.DUPLICATE]
        standardized = raw - duplicates - fates[ExpectedFate.PARSE_ERROR]
        if zone is Zone.STANDARDIZED:
            return Counts(raw, standardized, duplicates=duplicates, errors=errors)
        updated, superseded = len(self._replaced()), fates[ExpectedFate.SUPERSEDED]
        return Counts(standardized, fates[ExpectedFate.CURATED] - updated, updated, 0, superseded, errors)

    @property
    def current(self) -> dict[str, str]:
        """The message that Curated shows for each key at the end of the day."""
        return self._current(self.story.foretold())

    def _replaced(self) -> set[str]:
        """Messages that Curated showed at the day's beginning, and no longer at its end."""
        before = self._current(self.story.foretold(processed=self.part.first))
        return set(before.values()) - set(self.current.values())

    def _current(self, foretold: Foretold) -> dict[str, str]:
        lines = (line for part in (*self.earlier, self.part) for line in self._told(part, foretold))
        return {
            line.idempotency_key or "": line.message_id or "" for line in lines if line.fate is ExpectedFate.CURATED
        }

    def _told(self, part: Part, foretold: Foretold) -> Iterator[Expected]:
        for chunk in self.story.chunks(part, foretold):
            yield from (msgspec.json.decode(line, type=Expected) for line in chunk.fates.splitlines())
