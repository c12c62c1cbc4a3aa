"""Which payloads are objects, and what is said of the others."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference.payload import Refusal, compact_text, parse_payload


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


REFUSED = {
    "NULL": (None, "EMPTY_PAYLOAD", "NULL"),
    "empty": (b"", "EMPTY_PAYLOAD", "empty"),
    "blanks": (b" \t\r\n ", "EMPTY_PAYLOAD", "blank"),
    "text": (b"hello", "INVALID_JSON", "line 1 column 1 (character 0)"),
    "unfinished": (b'{"a":', "INVALID_JSON", "character 5"),
    "trailing comma": (b'{"a":1,}', "INVALID_JSON", "character"),
    "trailing text": (b'{"a":1} x', "INVALID_JSON", "Extra data"),
    "second line": (b'{\n"a":tru}', "INVALID_JSON", "line 2 column 5"),
    "NaN": (b'{"a":NaN}', "INVALID_JSON", "NaN"),
    "Infinity": (b'{"a":-Infinity}', "INVALID_JSON", "-Infinity"),
    "leading zero": (b'{"a":01}', "INVALID_JSON", "character"),
    "plus sign": (b'{"a":+1}', "INVALID_JSON", "character 5"),
    "single quotes": (b"{'a':1}", "INVALID_JSON", "character 1"),
    "control character": (b'{"a":"\x01"}', "INVALID_JSON", "control character"),
    "bad escape": (b'{"a":"\\x"}', "INVALID_JSON", "escape"),
    "byte-order mark": (b'\xef\xbb\xbf{"a":1}', "INVALID_JSON", "byte-order mark"),
    "not UTF-8": (b'{"a":"\xff"}', "INVALID_JSON", "not UTF-8: invalid start byte at byte 6"),
    "lone high surrogate": (b'{"a":"\\ud800"}', "INVALID_JSON", "lone surrogate near character 6"),
    "lone low surrogate": (b'{"a":"\\udc00"}', "INVALID_JSON", "lone surrogate"),
    "surrogates apart": (b'{"a":"\\ud83d \\ude00"}', "INVALID_JSON", "lone surrogate"),
    "surrogates reversed": (b'{"a":"\\ude00\\ud83d"}', "INVALID_JSON", "lone surrogate"),
    "high surrogate before another escape": (b'{"a":"\\ud83d\\n"}', "INVALID_JSON", "lone surrogate"),
    "lone surrogate in a key": (b'{"\\uD800":1}', "INVALID_JSON", "lone surrogate"),
    "nesting 201": (nested(201), "INVALID_JSON", "nested deeper than 200 levels"),
    "nesting 100,000": (nested(100_000), "INVALID_JSON", "nested deeper than 200 levels"),
    "nesting that never ends": (b'{"a":' + b"[" * 300, "INVALID_JSON", "nested deeper"),
    "4301 digits": (b'{"a":' + b"9" * 4301 + b"}", "INVALID_JSON", "more than 4300 digits"),
    "4301 digits in a fraction": (b'{"a":[0.' + b"9" * 4300 + b"]}", "INVALID_JSON", "more than 4300 digits"),
    "null": (b"null", "NOT_AN_OBJECT", "null"),
    "number": (b"17", "NOT_AN_OBJECT", "a number"),
    "string": (b'"x"', "NOT_AN_OBJECT", "a string"),
    "boolean": (b"true", "NOT_AN_OBJECT", "a boolean"),
    "array": (b"[]", "NOT_AN_OBJECT", "an array"),
}


@pytest.mark.parametrize(("payload", "error_type", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_and_what_is_said(payload: bytes | None, error_type: str, words: str) -> None:
    refusal = parse_payload(payload)
    assert isinstance(refusal, Refusal)
    assert refusal.error_type == error_type
    assert words in refusal.message


ACCEPTED = {
    "nesting 200": nested(200),
    "many brackets side by side": json.dumps({"a": [[] for _ in range(500)]}).encode(),
    "brackets in strings": json.dumps({"a": "[" * 500, "b": '\\"[' * 300}).encode(),
    "4300 digits": b'{"a":' + b"9" * 4300 + b"}",
    "many digits in a string": b'{"a":"' + b"9" * 9000 + b'"}',
    "escaped backslash before u": b'{"a":"\\\\ud800"}',
    "surrogate pair": b'{"a":"\\ud83d\\ude00"}',
    "white space around": b' \n{"a":1}\t ',
}


@pytest.mark.parametrize("payload", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted(payload: bytes) -> None:
    assert parse_payload(payload) == json.loads(payload, parse_int=str, parse_float=str)


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))))
@example(b'{"' + b'\\"' * 2000)
@example(b'{"a":"' + b"\\" * 2001)
def test_any_bytes_have_exactly_one_outcome_and_agree_with_the_json_module(payload: bytes) -> None:
    outcome = parse_payload(payload)
    if isinstance(outcome, Refusal):
        assert outcome.error_type in {"EMPTY_PAYLOAD", "INVALID_JSON", "NOT_AN_OBJECT"}
        assert outcome.message
    else:
        assert outcome == json.loads(payload, parse_int=str, parse_float=str)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=6), children, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=6), json_values, max_size=5))
def test_compact_text_is_what_the_json_module_writes(value: dict[str, object]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert compact_text(parse_payload(text.encode())) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
