"""The exact scanner against the standard parser."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lean_ops.ingest.scan import JsonSyntaxError, members_of

PIECES = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"a"',
    '"b"',
    "\\",
    "0",
    "1",
    "-",
    ".",
    "e5",
    "true",
    "null",
    " ",
    "\n",
    "\x00",
]


def scan(text: str) -> dict[str, str] | None:
    try:
        return {member.name: text[member.start : member.end] for member in members_of(text)}
    except JsonSyntaxError:
        return None


def refuse(text: str) -> None:
    raise ValueError(text)


def parse(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text, parse_constant=refuse, parse_int=str, parse_float=str)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20))
@example('{"a":[[1,[]],{"b":{}},{"c":[1,2,{"d":1}],"e":2}],"f":-0.5e+3}')
@example('{"a":[1 2]}')
@example('{"a":[{"b":1]}}')
@example('{"a":[}]}')
@example('{"a":1}}')
@example('{"":{}} ')
def test_the_scanner_agrees_with_the_standard_parser(text: str) -> None:
    expected = parse(text)
    found = scan(text)
    assert (found is None) is (expected is None)
    if found is not None and expected is not None:
        assert list(found) == list(expected)
        assert [parse(f'{{"v":{value}}}') for value in found.values()] == [{"v": value} for value in expected.values()]


@given(st.lists(st.sampled_from(PIECES), max_size=10).map(lambda pieces: '{"a":[' + "".join(pieces) + "]}"))
def test_it_agrees_inside_containers_too(text: str) -> None:
    assert (scan(text) is None) is (parse(text) is None)


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "expected an object, found the end", 0),
        ("  [1]", "expected an object, found an array", 2),
        ('{"a": 1', "expected ',' or '}', found the end", 7),
        ('{"a": [1, 2}', "expected ',' or ']', found '}'", 11),
        ('{"a": "x', "a string without an end", 8),
        ('{"a": "x\\q"}', "a bad escape in a string", 8),
        ('{"a": tru}', "expected a value, found 't'", 6),
        ('{"a": {"b": 1, }}', "expected a name in double quotes, found '}'", 15),
        ('{"a"}', "expected ':', found '}'", 4),
        ("{} x", "found 'x' after the object's end", 3),
    ],
)
def test_an_error_says_what_and_where(text: str, reason: str, position: int) -> None:
    with pytest.raises(JsonSyntaxError) as error:
        list(members_of(text))
    assert reason in error.value.reason
    assert error.value.position == position


def test_members_before_an_error_are_found() -> None:
    found: list[str] = []
    with pytest.raises(JsonSyntaxError):
        found.extend(member.name for member in members_of('{"a": 1, "b": [1, 2], "c": [3'))
    assert found == ["a", "b"]


@pytest.mark.parametrize(
    "value",
    [
        "[" * 300_000 + "]" * 300_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "[" + "1," * 300_000 + "1]",
        '"' + "\\n" * 300_000 + '"',
        " " * 1_000_000 + "1",
    ],
    ids=["arrays", "objects", "numbers", "escapes", "blanks"],
)
def test_depth_and_length_are_no_obstacle(value: str) -> None:
    assert scan(f'{{"v": {value}}}') == {"v": value.strip()}
