"""What `lean-ops generate` is asked for, and the files that it makes of it."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from lean_ops.ledger.oracle import FATES_FILE
from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic
from lean_ops.operate.generate.families import family_of, schema_of
from lean_ops.operate.generate.kinds import INJECTIONS, Kind
from lean_ops.operate.generate.plan import Segment, Window
from lean_ops.operate.generate.story import Story, write_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

START: Final = datetime(2026, 1, 5, tzinfo=UTC)
MAX_MESSAGES: Final = 20_000_000
MAX_TOPICS: Final = 10_000
SCHEMAS: Final = "schemas"
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Order:
    """So many bodies for each of some topics, with rates of injected faults; the same order makes the same bytes."""

    topic: str
    messages: int
    rates: Mapping[str, float] = field(default_factory=dict)
    seed: int = 1
    topics: int = 1
    family: str | None = None
    files: int = 1
    start: datetime = START

    def __post_init__(self) -> None:
        _within("-n", self.messages, 1, MAX_MESSAGES)
        _within("--topics", self.topics, 1, MAX_TOPICS)
        _within("--files", self.files, 1, min(1_000, self.messages))
        _within("--seed", self.seed, 0, 10**9)
        kind_counts(self.messages, self.rates)

    @property
    def names(self) -> list[str]:
        """The topics: the name itself, or numbered ones that begin with it."""
        if self.topics == 1:
            return [parse_topic(self.topic)]
        width = len(str(self.topics))
        return [parse_topic(f"{self.topic}_{number:0{width}d}") for number in range(1, self.topics + 1)]

    def stories(self) -> Iterator[Story]:
        """Each topic's story, one after the other: together they may be larger than the memory."""
        segment = Segment("all", kind_counts(self.messages, self.rates), [Window(self.start, _DAY)])
        for number, topic in enumerate(self.names):
            family = family_of(topic, number, self.family)
            yield Story.of(topic, family, self.seed).with_segment(segment)


def _within(flag: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise WrongUseError("out of range", where=flag, found=str(value), expected=f"{least} to {most}")


def kind_counts(messages: int, rates: Mapping[str, float]) -> dict[Kind, int]:
    """How many bodies there are of each kind; what no rate asks for is new messages."""
    counts: Counter[Kind] = Counter()
    for name, rate in rates.items():
        if not 0 <= rate <= 1:
            flag = f"--{name.replace('_', '-')}"
            raise WrongUseError("not a rate", where=flag, found=str(rate), expected="0 to 1, like 0.05")
        counts.update(_shared_out(round(messages * rate), INJECTIONS[name].kinds))
    rest = messages - counts.total()
    if rest < 0:
        raise WrongUseError(
            "the rates leave no room", found=f"{counts.total()} bodies of {messages}", remedy="Lower them to 1 in all."
        )
    return {kind: count for kind, count in ({Kind.NEW: rest} | dict(counts)).items() if count}


def _shared_out(count: int, kinds: tuple[Kind, ...]) -> Counter[Kind]:
    shares: Counter[Kind] = Counter()
    for number, kind in enumerate(kinds):
        shares[kind] += count * (number + 1) // len(kinds) - count * number // len(kinds)
    return shares


@dataclass(frozen=True, slots=True)
class Made:
    """What was written."""

    folder: Path
    topics: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    messages: int
    fates: Mapping[str, int]


def make(order: Order, folder: Path, on_topic: Callable[[str], None] = lambda _: None) -> Made:
    """Write the order's bodies, their fates and the topics' schemas into a folder.

    The fates get their name when all of it is there, so a folder that has them is whole.
    """
    (folder / SCHEMAS).mkdir(parents=True, exist_ok=True)
    files: dict[str, tuple[str, ...]] = {}
    fates: Counter[str] = Counter()
    with whole_file(folder / FATES_FILE) as told:
        for story in order.stories():
            foretold = story.foretold()
            parts = story.part(0).split(order.files)
            for part in parts:
                write_part(story, part, foretold, folder, told)
            (folder / SCHEMAS / f"{story.topic}.json").write_bytes(schema_of(story.topic, story.family))
            files[story.topic] = tuple(part.file for part in parts)
            fates.update(foretold.counts())
            on_topic(story.topic)
    return Made(folder, tuple(files), files, order.messages * order.topics, dict(fates))


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name when the block has ended well."""
    unfinished = path.with_name(f".{path.name}.partial")
    path.unlink(missing_ok=True)
    with unfinished.open("wb") as file:
        yield file
    unfinished.rename(path)
