"""The production emulation: days of a system's life for four topics, planned from a seed and a size alone.

Each phase knows what must have become of every body that was ever sent, so it ends with a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import WrongUseError
from lean_ops.operate.generate.families import FAMILIES
from lean_ops.operate.generate.kinds import COPIES, PLAIN, Kind
from lean_ops.operate.generate.order import whole_file
from lean_ops.operate.generate.plan import Segment, Window
from lean_ops.operate.generate.story import Part, Story

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from lean_ops.operate.generate.family import Family

DEFAULT_SIZE: Final = 100_000
SMALLEST: Final = 400
LARGEST: Final = 10_000_000
TOPICS: Final = {f"emulated_{name}": family for name, family in FAMILIES.items()}
_STARTS: Final = datetime(2026, 1, 5, tzinfo=UTC)
_DAY: Final = timedelta(days=1)


class Phase(StrEnum):
    """The phases in their order."""

    DAY1 = "day1"  # a clean load; no schema is deployed
    SCHEMA = "schema"  # the gates open
    DAY2 = "day2"  # corrections, late arrivals, replays, drift, empty payloads, missing critical elements
    DAY3 = "day3"  # every other fault there is
    DAY4 = "day4"  # three months of publishing times, corrections months later, keys that change all the time
    ENHANCED = "enhanced"  # data piles up behind a pause, the schema gets a column, and the topics catch up
    MIXED = "mixed"  # everything at once, in several batches


# Bodies of all topics together at the default size.
_COUNTS: Final[Mapping[Phase, Mapping[Kind, int]]] = {
    Phase.DAY1: {Kind.NEW: 100_000},
    Phase.DAY2: {
        Kind.CORRECTION: 5_000,
        Kind.LATE: 5_000,
        Kind.RETRY: 5_000,
        Kind.DRIFT: 10_000,
        Kind.REMOVED: 10_000,
        Kind.TYPE_CHANGE: 10_000,
        Kind.EMPTY: 3_000,
        Kind.CDE_NULL: 2_000,
    },
    Phase.DAY3: {
        Kind.NEW: 10_000,
        Kind.ALTERED_RETRY: 2_000,
        Kind.MALFORMED: 3_000,
        Kind.NOT_AN_OBJECT: 1_000,
        Kind.BAD_TYPE: 3_000,
        Kind.BAD_TIMESTAMP: 2_000,
        Kind.BROKEN_RULE: 3_000,
        Kind.COMBINED: 1_000,
        Kind.REFUSED: 1_000,
        Kind.POISON: 1_000,
        Kind.REORDERED: 2_000,
        Kind.SKEWED: 1_000,
        Kind.OVERSIZED: 4,
    },
    Phase.DAY4: {
        Kind.NEW: 10_000,
        Kind.CORRECTION: 2_000,
        Kind.CROSS_MONTH: 3_000,
        Kind.HOT_KEY: 2_000,
        Kind.TIE: 500,
        Kind.REPAIR: 1_000,
        Kind.LATE: 500,
    },
    Phase.ENHANCED: {Kind.NEW: 4_000, Kind.DRIFT: 6_000, Kind.CORRECTION: 2_000, Kind.RETRY: 500},
    Phase.MIXED: {Kind.NEW: 5_000} | {kind: 500 for kind in Kind if kind not in {Kind.NEW, Kind.OVERSIZED}},
}
_BATCHES: Final = {Phase.MIXED: 3}


def _windows(phase: Phase) -> Sequence[Window]:
    """A phase's publishing times; day 4 has 30, 60 and 10 % in three months."""
    if phase is Phase.DAY4:
        shares = (0.3, 0.6, 0.1)
        return [
            Window(datetime(2026, 2 + number, 1, tzinfo=UTC), 28 * _DAY, share) for number, share in enumerate(shares)
        ]
    return [Window(_STARTS + list(Phase).index(phase) * _DAY, _DAY)]


@dataclass(frozen=True, slots=True)
class Emulation:
    """An emulation of a size: that many bodies on day 1, the other phases in proportion."""

    size: int = DEFAULT_SIZE
    seed: int = 1

    def __post_init__(self) -> None:
        if not SMALLEST <= self.size <= LARGEST:
            raise WrongUseError(
                "out of range", where="--size", found=str(self.size), expected=f"{SMALLEST} to {LARGEST}"
            )

    def stories(self, phase: Phase) -> dict[str, Story]:
        """Each topic's story up to the end of a phase."""
        return {topic: self._story(topic, family, phase) for topic, family in TOPICS.items()}

    def _story(self, topic: str, family: Family, phase: Phase) -> Story:
        story = Story.of(topic, family, self.seed)
        for each in phases_until(phase):
            story = story.enhanced() if each is Phase.ENHANCED else story
            story = story.with_segment(self._segment(each, family)) if each in _COUNTS else story
        return story

    def _segment(self, phase: Phase, family: Family) -> Segment:
        counts = {kind: self._count(kind, count, phase, family) for kind, count in _COUNTS[phase].items()}
        return Segment(phase, counts, _windows(phase))

    def _count(self, kind: Kind, count: int, phase: Phase, family: Family) -> int:
        """A topic's share; on day 3 every way to go wrong has its turn, however small the emulation is."""
        share = max(1, round(count * self.size / DEFAULT_SIZE / len(TOPICS)))
        has_turns = phase is Phase.DAY3 and kind not in PLAIN | COPIES
        return max(share, len(family.variants_of(kind))) if has_turns else share

    def batches(self, phase: Phase) -> list[Mapping[str, Part]]:
        """What a phase sends: for each batch, the file of each topic."""
        if phase not in _COUNTS:
            return []
        count = _BATCHES.get(phase, 1)
        parts = {topic: self._parts(topic, family, phase, count) for topic, family in TOPICS.items()}
        return [{topic: files[number] for topic, files in parts.items()} for number in range(count)]

    def _parts(self, topic: str, family: Family, phase: Phase, count: int) -> list[Part]:
        before = sum(self._segment(each, family).size for each in phases_until(phase)[:-1] if each in _COUNTS)
        after = before + self._segment(phase, family).size
        return Part(f"{phase}/{topic}.jsonl", before, after).split(count)


def phases_until(phase: Phase) -> list[Phase]:
    """All phases up to this one."""
    return list(Phase)[: list(Phase).index(phase) + 1]


@dataclass(frozen=True, slots=True)
class Scene:
    """The moment after some batches of a phase: what was sent by then, and how much of it was processed.

    `held` says that the newest batch waits in RAW.
    """

    emulation: Emulation
    phase: Phase
    batches: int
    held: bool = False

    def write_bodies(self, folder: Path) -> dict[str, Path]:
        """The newest batch's files."""
        stories = self._stories()
        written = {}
        for topic, part in self.emulation.batches(self.phase)[self.batches - 1].items():
            path = folder / part.file
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.writelines(chunk.bodies for chunk in stories[topic].chunks(part, stories[topic].foretold()))
            written[topic] = path
        return written

    def write_fates(self, path: Path) -> None:
        """What must have become of everything by now."""
        sent = list(self._sent())
        with whole_file(path) as file:
            for topic, story in self._stories().items():
                foretold = story.foretold(self._processed(sent, topic))
                for parts in sent:
                    file.writelines(chunk.fates for chunk in story.chunks(parts[topic], foretold))

    def _stories(self) -> dict[str, Story]:
        """The stories up to here; before the schema is enhanced nothing of it shows."""
        stories = self.emulation.stories(self.phase)
        if self.phase is Phase.ENHANCED and self.held:
            return {topic: replace(story, enhanced_from=None) for topic, story in stories.items()}
        return stories

    def _sent(self) -> Iterator[Mapping[str, Part]]:
        for phase in phases_until(self.phase):
            batches = self.emulation.batches(phase)
            yield from batches[: self.batches] if phase is self.phase else batches

    def _processed(self, sent: Sequence[Mapping[str, Part]], topic: str) -> int:
        parts = [parts[topic] for parts in sent]
        return parts[-1].first if self.held else parts[-1].last
