"""Java's patterns, judged without a Java."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.patterns import ACCEPTED, ENDLESS, REFUSED, STACKED, UNSTACKED

from lean_ops.model.java_pattern import MAX_LEVELS, PatternError, parse_pattern
from lean_ops.model.pattern_cost import endless_repeat, longest_value
from lean_ops.model.schema_rules import MAX_PATTERN_CHARACTERS, column_problems


def problems(pattern: str) -> list[str]:
    return [str(problem) for problem in column_problems({"pattern": pattern})]


@pytest.mark.parametrize("pattern", ACCEPTED)
def test_an_accepted_pattern(pattern: str) -> None:
    assert problems(pattern) == []


@pytest.mark.parametrize(("pattern", "words"), REFUSED.items())
def test_a_refused_pattern_is_told_why(pattern: str, words: str) -> None:
    (problem,) = problems(pattern)
    assert problem.startswith("$.pattern: not a regular expression: ")
    assert words in problem.partition("; found")[0]


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_repeat_in_a_repeat_of_the_same_text_is_refused(pattern: str) -> None:
    (problem,) = problems(pattern)
    assert "may take forever" in problem
    assert "gives nothing back" in problem


@pytest.mark.parametrize("pattern", STACKED)
def test_a_pattern_that_takes_stack_has_a_longest_value(pattern: str) -> None:
    longest = longest_value(parse_pattern(pattern))
    assert longest is not None
    assert longest >= 100


@pytest.mark.parametrize("pattern", UNSTACKED)
def test_a_pattern_that_takes_none_has_no_longest_value(pattern: str) -> None:
    assert longest_value(parse_pattern(pattern)) is None


def test_groups_are_followed_down_to_a_bound() -> None:
    deepest = MAX_LEVELS - 1
    assert problems("(" * deepest + ")" * deepest) == []
    assert "nested deeper" in problems("(" * 500 + ")" * 500)[0]


PIECES = st.sampled_from(
    [*"()[]{}*+?|\\^$.-,&<>=!:#0123aQEpkbx", "(?:", "(?=", "(?<=", "(?<n>", "(a+)+", "[a-z]", "a*"]
)


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=30))
def test_any_text_is_a_pattern_or_not(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except PatternError as error:
        assert str(error)  # noqa: PT017  either way is right
        return
    assert endless_repeat(pattern) in {True, False}
    assert (longest_value(pattern) or 1) >= 1


@pytest.mark.parametrize(
    "piece", ["(", "(?:", "[", "a*", "(a|b)*", "[a&&", "(?<=", "(a?", "a|", "{1}", "\\Qa\\E", "&&"]
)
def test_the_longest_patterns_are_judged_at_once(piece: str) -> None:
    start = time.process_time()
    problems((piece * MAX_PATTERN_CHARACTERS)[:MAX_PATTERN_CHARACTERS])
    opened = piece * (MAX_LEVELS - 2) + "a+" + ")*" * (MAX_LEVELS - 2)
    problems(opened[:MAX_PATTERN_CHARACTERS])
    assert time.process_time() - start < 1
