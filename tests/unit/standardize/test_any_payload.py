"""For any bytes as a payload: an object that agrees with an independent judge, or a refusal that has its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz.strategies import inputs_of
from tests.fuzz.targets import names, payload, run
from tests.reference.payload import MAX_NESTING, MAX_NUMBER_DIGITS, Refusal, compact_text, parse_payload


@settings(max_examples=400)
@given(inputs_of("payload"))
@example(b'{"\xc3\xa9":"\\ud800","\\u00e9":1}')
@example(b'{"a":1,"a":{"b":2},"a":{"c":3}}')
@example(b'{"a":"' + b"-" * 5000 + b'"}')
def test_a_payload_is_read_exactly_and_each_leaf_is_found_once(data: bytes) -> None:
    run(payload.__name__, data)


@settings(max_examples=200)
@given(inputs_of("names"))
def test_every_leaf_gets_a_name_of_its_own(data: bytes) -> None:
    run(names.__name__, data)


DIGITS = st.sampled_from([1, 2000, MAX_NUMBER_DIGITS - 1, MAX_NUMBER_DIGITS, MAX_NUMBER_DIGITS + 1, 9000])


@st.composite
def long_numbers(draw: st.DrawFn) -> tuple[str, int]:
    """A JSON number of many digits in any form, with the number of its digits."""
    whole, fraction, exponent = draw(DIGITS), draw(st.just(0) | DIGITS), draw(st.just(0) | DIGITS)
    text = draw(st.sampled_from(["", "-"])) + "9" * whole
    text += f".{'8' * fraction}" if fraction else ""
    text += f"{draw(st.sampled_from('eE'))}{draw(st.sampled_from(['', '+', '-']))}{'7' * exponent}" if exponent else ""
    return text, whole + fraction + exponent


@pytest.mark.parametrize("place", ['{"a":%s}', "[%s]", '{"a":[1,%s ,"x"]}', '{"a":{"b": %s}}', '{"x":"1","a":\t%s}'])
@settings(max_examples=40)
@given(number=long_numbers())
def test_a_number_is_refused_for_its_digits_and_for_nothing_else(place: str, number: tuple[str, int]) -> None:
    text, digits = number
    outcome = parse_payload((place % text).encode())
    too_long = isinstance(outcome, Refusal) and "digits" in outcome.message
    assert too_long is (digits > MAX_NUMBER_DIGITS)


LEVELS = st.integers(MAX_NESTING - 3, MAX_NESTING + 3)


@given(LEVELS, st.lists(st.booleans(), min_size=1, max_size=9), st.text(max_size=9))
def test_nesting_is_counted_exactly_whatever_stands_in_strings(levels: int, kinds: list[bool], noise: str) -> None:
    opened = [kinds[level % len(kinds)] for level in range(levels - 1)]
    before = "".join('{"k":' if is_object else "[" for is_object in opened)
    after = "".join("}" if is_object else "]" for is_object in reversed(opened))
    text = f"{{{json.dumps(noise + '[{' * 300)}: {before}{json.dumps(noise)}{after}}}"
    outcome = parse_payload(text.encode())
    assert isinstance(outcome, Refusal) is (levels > MAX_NESTING)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=6), st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_compact_text_reads_back_to_an_equal_value(value: dict[str, Any], ascii_only: bool, indent: Any) -> None:
    parsed = parse_payload(json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode())
    assert not isinstance(parsed, Refusal)
    text = compact_text(parsed)
    assert json.loads(text) == value
    assert parse_payload(text.encode()) == parsed
