"""What each round of a soak does: decided from the seed and the round's number alone, before anything is started."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from signal import Signals

ROUNDS_PER_COMPARISON = 5
COMPARISONS_PER_RECOUNT = 2


class Target(StrEnum):
    """Which processes of a command a signal goes to."""

    DRIVER = "driver"
    JAVA = "java"
    ALL = "all"  # as when the power fails


@dataclass(frozen=True, slots=True)
class End:
    """How a process is made to end."""

    signal: Signals
    target: Target

    def __str__(self) -> str:
        return f"{self.signal.name} to {self.target}"


@dataclass(frozen=True, slots=True)
class Moment:
    """When it is made to end, as shares of what is usual.

    Either of the time until Spark is up (`is_early`), or of the steps that a run takes, and then of the time to the
    next one.
    """

    is_early: bool
    share: float
    pause: float


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run: once, or again every second until it is ended; None means that it may finish."""

    repeats: bool
    end: End | None
    moment: Moment


@dataclass(frozen=True, slots=True)
class FeedPlan:
    """A topic (by its number) gets its next file; a share of the usual time after which ingestion is killed."""

    topic: int
    end: End | None
    share: float


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One round. Topics are numbers; `asides` are commands that only read, beside the runs."""

    number: int
    feeds: tuple[FeedPlan, ...]
    feeds_beside: tuple[FeedPlan, ...]
    runs: tuple[RunPlan, ...]
    asides: tuple[tuple[str, ...], ...]
    paused: int | None
    resubmitted: int | None

    @property
    def compares(self) -> bool:
        """Whether the round ends with a comparison."""
        return self.number % ROUNDS_PER_COMPARISON == 0

    @property
    def recounts(self) -> bool:
        """Whether the comparison counts the tables' rows, too."""
        return self.number % (ROUNDS_PER_COMPARISON * COMPARISONS_PER_RECOUNT) == 0


_RUN_ENDS = {
    End(Signals.SIGKILL, Target.DRIVER): 26,
    End(Signals.SIGKILL, Target.JAVA): 14,
    End(Signals.SIGKILL, Target.ALL): 24,
    End(Signals.SIGTERM, Target.DRIVER): 11,
    End(Signals.SIGINT, Target.DRIVER): 11,
    None: 14,
}
_REPEATED_RUN_ENDS = {end: weight for end, weight in _RUN_ENDS.items() if end and end.target is not Target.JAVA}
_FEED_ENDS = {
    End(Signals.SIGKILL, Target.DRIVER): 20,
    End(Signals.SIGTERM, Target.DRIVER): 5,
    End(Signals.SIGINT, Target.DRIVER): 5,
    None: 70,
}
_ASIDES = (
    ("status",),
    ("reconcile",),
    ("history",),
    ("query", "SELECT topic_name, zone, count(*) FROM ops.reconciliation_log GROUP BY ALL"),
)


def plan_round(seed: int, number: int, topics: int) -> RoundPlan:
    """The round of this number; the same seed makes the same one."""
    dice = Random(f"{seed}/{number}")  # noqa: S311  not for secrets
    chosen = dice.sample(range(topics), dice.randint(3, 5))
    beside = chosen[:1] if dice.random() < 0.4 else []
    runs = [_run(dice)] if dice.random() < 0.8 else [_run(dice), _run(dice)]
    return RoundPlan(
        number,
        tuple(_feed(dice, topic) for topic in chosen[len(beside) :]),
        tuple(_feed(dice, topic) for topic in beside),
        tuple(runs),
        tuple(dice.sample(_ASIDES, dice.choices((0, 1, 2), (70, 20, 10))[0])),
        dice.randrange(topics) if dice.random() < 0.1 else None,
        dice.randrange(topics) if dice.random() < 0.15 else None,
    )


def _run(dice: Random) -> RunPlan:
    repeats = dice.random() < 0.1
    end = _chosen(dice, _REPEATED_RUN_ENDS if repeats else _RUN_ENDS)
    return RunPlan(repeats, end, Moment(dice.random() < 0.12, dice.random(), dice.random()))


def _feed(dice: Random, topic: int) -> FeedPlan:
    return FeedPlan(topic, _chosen(dice, _FEED_ENDS), dice.random())


def _chosen(dice: Random, weights: dict[End, int] | dict[End | None, int]) -> End | None:
    return dice.choices(list(weights), list(weights.values()))[0]
