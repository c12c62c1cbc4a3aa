"""Contenders in turn, A B C A B C, so that a slow minute of the machine hits all; ratios are taken within a round."""

from __future__ import annotations

import gc
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.measure import Meter, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What a measured piece of work found out besides its cost.
Facts: TypeAlias = dict[str, Any]


def _nothing(_: int) -> None:
    """No preparation."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A way of doing the work; `prepare` comes before each round and is not measured. Both get the round's number."""

    name: str
    run: Callable[[int], Facts]
    prepare: Callable[[int], None] = _nothing
    with_self: bool = True


@dataclass(frozen=True, slots=True)
class Measurement:
    """One contender in one round; round 0 and below are warm-ups."""

    contender: str
    round: int
    usage: Usage
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times one contender's cost is another's: per round, and the middle of them."""

    of: str
    to: str
    quantity: str
    per_round: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one: one disturbed round does not move it."""
        return statistics.median(self.per_round)

    @property
    def lowest(self) -> float:
        """The best round's."""
        return min(self.per_round)

    @property
    def highest(self) -> float:
        """The worst round's."""
        return max(self.per_round)


def interleaved(
    contenders: Sequence[Contender], repeats: int, warm_ups: int, say: Callable[[str], None]
) -> list[Measurement]:
    """Every contender once per round; the warm-up rounds come first and are not among the results."""
    found: list[Measurement] = []
    for number in range(1 - warm_ups, repeats + 1):
        for contender in contenders:
            measured = measure(contender, number)
            usage, words = measured.usage, "warm-up" if number < 1 else f"round {number}"
            say(f"{words}: {contender.name}: {usage.wall_seconds:.2f} s, {usage.cpu_seconds:.2f} s of CPU")
            if number >= 1:
                found.append(measured)
    return found


def measure(contender: Contender, number: int) -> Measurement:
    """One contender in one round."""
    contender.prepare(number)
    gc.collect()
    with Meter(contender.with_self) as meter:
        facts = contender.run(number)
    return Measurement(contender.name, number, meter.usage, facts)


def ratio(found: Sequence[Measurement], of: str, to: str, quantity: str = "cpu_seconds") -> Ratio:
    """How many times `to`'s cost is what `of` took, round by round."""
    costs = {(each.contender, each.round): getattr(each.usage, quantity) for each in found}
    rounds = sorted({number for name, number in costs if name == of})
    return Ratio(of, to, quantity, tuple(costs[of, number] / costs[to, number] for number in rounds))


def middle(found: Sequence[Measurement], contender: str, quantity: str = "cpu_seconds") -> float:
    """The median of what a contender took."""
    return float(statistics.median(getattr(each.usage, quantity) for each in found if each.contender == contender))


def of_contender(found: Sequence[Measurement], contender: str) -> list[Measurement]:
    """The measurements of one contender, in the order of rounds."""
    return [each for each in found if each.contender == contender]
