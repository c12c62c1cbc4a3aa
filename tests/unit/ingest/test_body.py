"""Bodies and what becomes of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ingest.body import decide, oversized
from lean_ops.model.envelope import DeadLetter, RawRow, Refusal
from lean_ops.model.tables import RAW

LIMIT = 10_000_000
TIME = "2026-02-03T10:15:30.120Z"
MICROS = 1_770_113_730_120_000


def outcome(body: str | bytes, limit: int = LIMIT) -> RawRow | DeadLetter:
    return decide(body if isinstance(body, bytes) else body.encode(), "events", 1_770_000_000, limit)


def row(body: str | bytes) -> RawRow:
    result = outcome(body)
    assert isinstance(result, RawRow), result
    return result


def letter(body: str | bytes, limit: int = LIMIT) -> DeadLetter:
    result = outcome(body, limit)
    assert isinstance(result, DeadLetter), result
    return result


def body_of(payload: str, **members: str) -> str:
    """A body with a payload's JSON text, and further members by their JSON text."""
    texts = {"message_id": '"m"', "publish_time": f'"{TIME}"', **members, "payload": payload}
    return "{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}"


def test_the_example_of_the_contract_becomes_one_row() -> None:
    payload = {
        "_metadata": {"idempotencyKeyResource": "meter-42/10", "periodReference": "2026-02", "correlationId": "c-9"},
        "sessionId": "s-5",
    }
    body = {"message_id": "8841-77", "publish_time": TIME, "idempotency_key": "meter-42/10", "payload": payload}
    assert row(json.dumps(body)) == RawRow(
        "events", "8841-77", "meter-42/10", "2026-02", "c-9", MICROS, 1_770_000_000, json.dumps(payload)
    )


def test_a_row_has_the_columns_of_the_raw_table() -> None:
    assert RawRow._fields == tuple(column.name for column in RAW.columns)


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        ('{"a": 1.10, "b" :1e5,\t"c":12345678901234567890}', '{"a": 1.10, "b" :1e5,\t"c":12345678901234567890}'),
        ('{ "a" : [ 1 , 2 ] }', '{ "a" : [ 1 , 2 ] }'),
        ("[1.0, -0, 1E+2]", "[1.0, -0, 1E+2]"),
        ("1.10", "1.10"),
        ("-0", "-0"),
        ("true", "true"),
        ("null", None),
        ('""', ""),
        ('"plain"', "plain"),
        (r'"{\"a\": 1.10}"', '{"a": 1.10}'),
        (r'"a\u0000b\n\u00e9 \ud83d\ude00"', "a\0b\né 😀"),
        ('{"é": "日本 😀", "\\u00e9": "\\/"}', '{"é": "日本 😀", "\\u00e9": "\\/"}'),
        ('{"a":1,"a":2}', '{"a":1,"a":2}'),
    ],
)
def test_a_payload_keeps_its_text(payload: str, kept: str | None) -> None:
    assert row(body_of(payload)).json_payload == kept


@pytest.mark.parametrize(
    "payload",
    [
        r'{"a": "\ud800"}',
        r'{"a": "\ude00\ud83d"}',
        r'{"\ud800": 1}',
        '{"a": ' * 201 + "1" + "}" * 201,
        "[" * 100_000 + "]" * 100_000,
        '{"a":[' * 10_000 + "]}" * 10_000,
    ],
    ids=["lone surrogate", "swapped pair", "surrogate name", "201 deep", "100k arrays", "20k mixed"],
)
def test_a_payload_that_later_can_not_be_parsed_is_a_row_all_the_same(payload: str) -> None:
    assert row(body_of(payload)).json_payload == payload


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "found the end"),
        (b"not json", "found 'n'"),
        (b"[1, 2]", "found an array"),
        (b'"text"', "found a string"),
        (b"12", "found a number"),
        (b"null", "found null"),
        (b"{", "found the end"),
        (b'{"message_id": "m"', "expected ',' or '}', found the end at character 19"),
        (b'{"a": 1,}', "expected a name"),
        (b'{"a": 1} {}', "found '{' after the object's end"),
        (b'{"a": 01}', "found '1'"),
        (b'{"a": NaN}', "expected a value"),
        (b'{"a": Infinity}', "expected a value"),
        (b'{"a": [1,]}', "expected a value, found ']'"),
        (b'{"a": "tab\there"}', "a control character"),
        (b'{"a": "\\x41"}', "a bad escape"),
        (b"{'a': 1}", "expected a name"),
        (b'{"a" 1}', "expected ':'"),
        (b'{"a": {"b": ]}}', "expected a value"),
        (b'{"a": "\xff"}', "not UTF-8: byte 0xff at position 8"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b"\xef\xbb\xbf{}", "expected an object"),
        (b"\x00\x01\x02\xfe", "not UTF-8"),
        (b"{}\x00", "after the object's end"),
    ],
)
def test_what_is_no_json_object_is_malformed(body: bytes, reason: str) -> None:
    result = letter(body)
    assert result.error_type is Refusal.MALFORMED_JSON
    assert reason in result.error_message


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (body_of("1", message_id=r'"a\ud800"'), "message_id"),
        (body_of(r'"a\udfff"'), "payload"),
        (body_of("1", idempotency_key=r'"\ud800"'), "idempotency_key"),
        (body_of("1").replace('"message_id"', r'"\ud800": 1, "message_id"'), "member name"),
    ],
)
def test_a_lone_surrogate_where_text_is_needed_is_malformed(body: str, name: str) -> None:
    result = letter(body)
    assert result.error_type is Refusal.MALFORMED_JSON
    assert "lone surrogate" in result.error_message
    assert name in result.error_message


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{}", "message_id: found no such member"),
        (body_of("1", message_id="null"), "message_id: found null"),
        (body_of("1", message_id='""'), 'message_id: found ""'),
        (body_of("1", message_id="42"), "message_id: found 42"),
        (body_of("1", message_id="[]"), "message_id: found []"),
        ('{"message_id": "m", "payload": 1}', "publish_time: found no such member"),
        (body_of("1", publish_time="1770113730"), "publish_time: found 1770113730"),
        (body_of("1", publish_time='"yesterday"'), 'publish_time: found "yesterday"'),
        (body_of("1", publish_time='"1969-12-31T23:59:59Z"'), "years 1970 to 2100"),
        (body_of("1", publish_time="true"), "publish_time: found true"),
        (f'{{"message_id": "m", "publish_time": "{TIME}"}}', "payload: found no such member"),
    ],
)
def test_a_broken_contract_says_what_was_found(body: str, reason: str) -> None:
    result = letter(body)
    assert result.error_type is Refusal.INVALID_CONTRACT
    assert reason in result.error_message
    assert "expected" in result.error_message


def test_what_was_found_is_shown_short_and_without_control_characters() -> None:
    result = letter(body_of("1", publish_time='"\x9b' + "x" * 500 + '"'))
    assert len(result.error_message) < 250
    assert result.error_message.isprintable()


def test_the_other_spellings_are_taken() -> None:
    body = {"messageId": "m", "publishTime": TIME, "payload": 1}
    assert row(json.dumps(body))[:6] == ("events", "m", None, None, None, MICROS)


def test_the_first_spelling_that_is_given_wins() -> None:
    both = {"message_id": "a", "messageId": "b", "publish_time": None, "publishTime": TIME, "payload": 1}
    assert row(json.dumps(both)).message_id == "a"
    assert row(json.dumps({**both, "message_id": None})).message_id == "b"


def test_of_double_members_the_last_wins() -> None:
    plain = f'{{"payload": 1, "message_id": "a", "publish_time": "{TIME}", "message_id": "b", "payload": 2}}'
    scanned = plain.replace('"payload": 1', r'"payload": "\ud800"')
    for body in (plain, scanned):
        assert (row(body).message_id, row(body).json_payload) == ("b", "2")


COLUMNS = {
    "idempotency_key": ("idempotencyKeyResource", "idempotency_key"),
    "period_reference": ("periodReference", "period_reference"),
    "correlation_id": ("correlationId", "correlation_id"),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_the_envelope_comes_from_the_body_then_from_the_payload_in_order(column: str) -> None:
    camel, snake = COLUMNS[column]
    payload = {"_metadata": {camel: "2", snake: "3"}, camel: "4", snake: "5"}
    members = {column: '"1"'}
    for expected in ("1", "2", "3", "4", "5", None):
        assert getattr(row(body_of(json.dumps(payload), **members)), column) == expected
        if members:
            members = {}
        elif payload["_metadata"]:
            del payload["_metadata"][next(iter(payload["_metadata"]))]
        elif len(payload) > 1:
            del payload[list(payload)[1]]


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ('"x"', "x"),
        ("12.50", "12.50"),
        ("true", "true"),
        (r'"\u00e9"', "é"),
        ("null", None),
        ('""', None),
        ("{}", None),
        ("[1]", None),
    ],
)
def test_a_key_is_a_string_a_number_or_a_boolean(value: str, taken: str | None) -> None:
    assert row(body_of("1", idempotency_key=value)).idempotency_key == taken
    assert row(body_of(f'{{"_metadata": {{"idempotencyKeyResource": {value}}}}}')).idempotency_key == taken
    assert row(body_of(f'{{"idempotency_key": {value}}}')).idempotency_key == taken


@pytest.mark.parametrize(
    "payload",
    [
        json.dumps('{"_metadata": {"idempotency_key": "k"}}'),
        json.dumps(' \n{"idempotency_key": "k"}'),
        r'{"_metadata": {"idempotency_key": "k", "x": "\ud800"}}',
        r'{"\ud800": 1, "idempotency_key": "k"}',
        '{"idempotency_key": "k", "deep": ' + "[" * 5000 + "]" * 5000 + "}",
        r'{"_metadata": {"idempotencyKeyResource": "\ud800"}, "idempotency_key": "k"}',
    ],
)
def test_the_payload_is_looked_into_whatever_else_is_in_it(payload: str) -> None:
    assert row(body_of(payload)).idempotency_key == "k"


@pytest.mark.parametrize(
    "payload",
    ['"not json"', '"{broken"', '"[1]"', "[1]", "1", "null", '{"_metadata": 1}', '{"_metadata": ["k"]}', '""', '" "'],
)
def test_a_payload_without_fields_gives_none(payload: str) -> None:
    assert row(body_of(payload))[2:5] == (None, None, None)


def test_a_body_over_the_limit_is_oversized_and_one_at_the_limit_is_not() -> None:
    body = body_of("1")
    assert isinstance(outcome(body, len(body)), RawRow)
    result = letter(body, len(body) - 1)
    assert result == DeadLetter(
        Refusal.OVERSIZED, f"the body has {len(body)} bytes, at most {len(body) - 1} are taken", "m"
    )


@pytest.mark.parametrize(
    ("body", "message_id"),
    [
        (b'{"message_id": "m", "payload": {"cut of', "m"),
        (b'{"messageId": "m"}', "m"),
        (b'{"message_id": "m", "payload": "\xff"}', "m"),
        (b'{"message_id": "m\xff", "payload": 1}', None),
        (b'{"message_id": "cut of', None),
        (b'{"message_id": 5}', None),
        (b"junk", None),
    ],
)
def test_a_dead_letter_keeps_the_message_id_that_could_be_read(body: bytes, message_id: str | None) -> None:
    assert letter(body).message_id == message_id
    assert oversized(body, 10**9, LIMIT).message_id == message_id


def is_json_object(body: bytes) -> bool:
    def refuse(text: str) -> None:
        raise ValueError(text)

    try:
        return isinstance(json.loads(body.decode(), parse_constant=refuse, parse_int=str), dict)
    except ValueError:
        return False


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
ENVELOPES = st.dictionaries(
    st.sampled_from(["message_id", "publish_time", "payload", "idempotency_key", "x"]),
    JSON_VALUES | st.sampled_from([TIME, {"_metadata": {"idempotency_key": 1}}]),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A JSON text with one piece replaced by something that is likely to matter."""
    text = json.dumps(draw(ENVELOPES | JSON_VALUES), ensure_ascii=draw(st.booleans())).encode()
    at = draw(st.integers(0, len(text)))
    end = at + draw(st.integers(0, 2))
    pieces = [
        b"",
        b'"',
        b"\\",
        b",",
        b"}",
        b"]",
        b"{",
        b"[",
        b"0",
        b"-",
        b".",
        b"e",
        b" ",
        b"\t",
        b"\x1f",
        b"\xff",
        b"\\ud800",
    ]
    return text[:at] + draw(st.sampled_from(pieces)) + text[end:]


@given(st.binary(max_size=60) | damaged())
def test_any_bytes_have_one_outcome_that_agrees_with_a_strict_parser(body: bytes) -> None:
    result = outcome(body)
    malformed = isinstance(result, DeadLetter) and result.error_type is Refusal.MALFORMED_JSON
    if malformed and "lone surrogate" in result[1]:  # type: ignore[operator]
        assert b"\\ud" in body.lower()
    else:
        assert malformed is not is_json_object(body)


BLANKS = st.text(alphabet=" \t\r\n", max_size=2)
NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
STRINGS = (
    st.text(max_size=5).map(json.dumps)
    | st.just(r'"\ud800\/\u0000"')
    | st.text(alphabet=st.characters(min_codepoint=0x80, exclude_categories=["Cs"]), max_size=4).map(
        lambda text: f'"{text}"'
    )
)


def json_texts() -> st.SearchStrategy[str]:
    """JSON texts with white space, number forms and escapes that no writer would choose."""

    def wrap(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        item = st.tuples(BLANKS, inner, BLANKS).map("".join)
        pair = st.tuples(BLANKS, STRINGS, BLANKS, st.just(":"), item).map("".join)
        arrays = st.lists(item, max_size=3).map(lambda items: f"[{','.join(items)}]")
        return arrays | st.lists(pair, min_size=1, max_size=3).map(lambda pairs: f"{{{','.join(pairs)}}}")

    return st.recursive(NUMBERS | STRINGS | st.sampled_from(["true", "false", "null"]), wrap, max_leaves=6)


@given(json_texts(), BLANKS, BLANKS)
def test_the_payload_is_found_again_byte_for_byte(payload: str, before: str, after: str) -> None:
    body = f'{{"message_id":"m","publish_time":"{TIME}",{before}"payload"{after}:{before}{payload}{after}}}{after}'
    result = outcome(body)
    if payload.startswith('"'):
        text = json.loads(payload)
        assert isinstance(result, DeadLetter) if r"\ud800" in payload else result[7] == text  # type: ignore[misc]
    else:
        assert isinstance(result, RawRow)
        assert result.json_payload == (None if payload == "null" else payload)
