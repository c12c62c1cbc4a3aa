"""The judge of patterns against Java itself, and what a hostile value does to a batch: nothing."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
from tests.patterns import ACCEPTED, ENDLESS, REFUSED, STACKED
from tests.spark.driver import TopicDriver, at

from lean_ops.ledger.books import RunStatus
from lean_ops.model.java_pattern import PatternError, parse_pattern
from lean_ops.model.pattern_cost import longest_value
from lean_ops.wiring import Services

pytestmark = pytest.mark.spark

PIECES = [*"()[]{}*+?|^$.-,&<>=!:#0123abcxX \n", "(?:", "(?=", "(?!", "(?>", "(?<n>", "(?<m>", "(?i)", "(?i:", "(?P<n>"]
PIECES += ["[^", "[a-z]", "[a&&[b]]", "&&", "{2}", "{2,3}", "{,3}", "\\Q", "\\E", "\\k<n>", "\\p{L}", "\\p{Foo}", "(?#"]
PIECES += [f"\\{letter}" for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012389.*[]()-"]
PIECES += ["\\x41", "\\u0041", "\\07", "\\cA", "é", "(a|b)", "(a)", "a", "b"]
# What only Java's own tables can tell.
UNKNOWABLE = ("Look-behind group", "Unknown character name", "Unknown character property", "Unknown Unicode property")


class Java:
    """Java's own regular expressions."""

    def __init__(self, services: Services) -> None:
        self._pattern: Any = services.sessions.mine()._jvm.java.util.regex.Pattern

    def fault(self, pattern: str) -> str | None:
        """Why Java refuses a pattern by itself, or as the job hands it over."""
        said = (self._said(partial(self._pattern.compile, text)) for text in (pattern, rf"\A(?:{pattern})\z"))
        return next((words for words in said if words), None)

    def overflows(self, pattern: str, text: str) -> bool:
        """Whether matching fills the stack."""
        return "StackOverflow" in (self._said(lambda: self._pattern.matches(pattern, text)) or "")

    @staticmethod
    def _said(call: Any) -> str | None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            call()
        except (Py4JJavaError, PySparkException) as error:  # Spark has a Python error of its own for some of Java's
            return str(error)
        return None


@pytest.fixture
def java(services: Services) -> Java:
    return Java(services)


def own_fault(pattern: str) -> str | None:
    try:
        parse_pattern(pattern)
    except PatternError as error:
        return str(error)
    return None


def test_java_agrees_with_the_tables(java: Java) -> None:
    assert [pattern for pattern in (*ACCEPTED, *ENDLESS, *STACKED) if java.fault(pattern)] == []
    assert [pattern for pattern in REFUSED if not java.fault(pattern)] == []


def test_java_agrees_about_random_patterns(java: Java) -> None:
    chance = random.Random(7)  # noqa: S311  repeatable, not secret
    accepted = 0
    for _ in range(4000):
        pattern = "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 7)))
        said = java.fault(pattern)
        if not any(words in (said or "") for words in UNKNOWABLE):
            assert (own_fault(pattern) is None) is (said is None), (pattern, said, own_fault(pattern))
            accepted += said is None
    assert accepted > 500


@pytest.mark.parametrize("pattern", STACKED)
def test_the_longest_value_fits_on_the_stack_and_one_without_end_does_not(java: Java, pattern: str) -> None:
    piece = STACKED[pattern]
    longest = longest_value(parse_pattern(pattern))
    assert longest is not None
    assert not java.overflows(pattern, piece * (longest // len(piece)))
    assert java.overflows(pattern, piece * (400_000 // len(piece)))


def message(key: str, value: str) -> dict[str, Any]:
    payload = f'{{"a":"{value}"}}'
    return {"message_id": key, "idempotency_key": key, "json_payload": payload, "publish_time": at(0)}


def test_a_value_that_would_fill_the_stack_is_one_row_s_error(topic: TopicDriver) -> None:
    topic.use_schema({"a": {"pattern": "(?:[a-z]|[0-9])*"}})
    topic.put(
        message("good", "abc123"), message("long", "a" * 2_000_000), message("bad", "A"), message("edge", "a" * 4000)
    )
    outcome = topic.run()
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED, outcome.reason
    assert sorted(topic.curated()) == ["edge", "good"]
    reasons = {row["idempotency_key"]: row["error_message"] for row in topic.shared("errors")}
    assert reasons["bad"] == "a: 'A' does not match (?:[a-z]|[0-9])*"
    assert "… is longer than the" in reasons["long"].replace("'", "")
    assert "does not match" not in reasons["long"]
