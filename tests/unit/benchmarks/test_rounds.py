"""Rounds are interleaved, warm-ups are left out, and ratios are taken within a round."""

from __future__ import annotations

import pytest
from benchmarks.measure import Usage
from benchmarks.rounds import Contender, Facts, Measurement, interleaved, middle, ratio


def measurement(contender: str, number: int, cpu: float) -> Measurement:
    return Measurement(contender, number, Usage(wall_seconds=cpu, cpu_seconds=cpu, peak_bytes=0))


def test_contenders_take_turns_and_warm_ups_are_not_results() -> None:
    order: list[str] = []

    def contender(name: str) -> Contender:
        def run(number: int) -> Facts:
            order.append(f"{name}{number}")
            return {"number": number}

        return Contender(name, run, lambda number: order.append(f"before {name}{number}"))

    found = interleaved([contender("a"), contender("b")], repeats=2, warm_ups=1, say=lambda _: None)
    assert [each for each in order if " " not in each] == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert order[:2] == ["before a0", "a0"]
    assert [(each.contender, each.round, each.facts["number"]) for each in found] == [
        ("a", 1, 1),
        ("b", 1, 1),
        ("a", 2, 2),
        ("b", 2, 2),
    ]


def test_a_ratio_is_the_middle_of_the_rounds_own_ratios() -> None:
    costs = {1: (2.0, 1.0), 2: (30.0, 10.0), 3: (8.0, 2.0)}  # the whole machine was slow in the second round
    found = [
        measurement(name, number, cpu) for number, pair in costs.items() for name, cpu in zip("ab", pair, strict=True)
    ]
    each = ratio(found, "a", "b")
    assert each.per_round == (2.0, 3.0, 4.0)
    assert (each.median, each.lowest, each.highest) == (3.0, 2.0, 4.0)
    assert middle(found, "a") == 8.0


def test_a_round_that_one_contender_lacks_is_an_error() -> None:
    with pytest.raises(KeyError):
        ratio([measurement("a", 1, 1.0)], "a", "b")
