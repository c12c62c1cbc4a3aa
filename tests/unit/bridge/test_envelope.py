from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lean_ops.bridge.envelope import PulledMessage, body_of, text_bytes
from lean_ops.ingest.body import decide
from lean_ops.model.envelope import DeadLetter, RawRow, Refusal

PUBLISHED = (1_770_113_730, 120_456_789)
LIMIT = 100 * 1024 * 1024


def message(data: bytes, message_id: str = "8841-77", **attributes: str) -> PulledMessage:
    return PulledMessage(message_id, PUBLISHED, data, attributes)


def row_of(pulled: PulledMessage) -> RawRow:
    outcome = decide(body_of(pulled).encode(), "events", 1, LIMIT)
    assert isinstance(outcome, RawRow), outcome
    return outcome


def is_taken_by_sqs(text: str) -> bool:
    return all(
        character in "\t\n\r"
        or " " <= character <= "\ud7ff"
        or "\ue000" <= character <= "\ufffd"
        or character > "\uffff"
        for character in text
    )


def test_a_body_is_what_the_contract_shows() -> None:
    pulled = message(b'{"a": 1.10}', idempotency_key="meter-42/10")
    assert body_of(pulled) == (
        '{"message_id":"8841-77","publish_time":"2026-02-03T10:15:30.120456Z",'
        '"idempotency_key":"meter-42/10","payload":{"a": 1.10}}'
    )


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}',
        b'{ "b" : [1, 2 ] }',
        b"[]",
        b"-0.10e5",
        b"0",
        b"true",
        b"false",
        b"12345678901234567890123",
        b'{"a":1,"a":2}',
        b'{"\xf0\x9f\x98\x80":"\\u00e9"}',
        b'{"a":\r\n1}',
    ],
)
def test_json_stands_in_the_body_byte_for_byte(data: bytes) -> None:
    assert body_of(message(data)).endswith(f'"payload":{data.decode()}}}')
    assert row_of(message(data)).json_payload == data.decode()


def test_null_is_no_payload() -> None:
    assert body_of(message(b"null")).endswith('"payload":null}')
    assert row_of(message(b"null")).json_payload is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain words",
        b'"a JSON string"',
        b' {"a":1}',
        b'{"a":1}\n',
        b'{"a":1}{"b":2}',
        b'1,"message_id":"other"',
        b'{}, "payload": {"other": 1}',
        b'"}, "message_id": "other',
        b"nul",
        b"01",
        b"NaN",
        b"[1,]",
        b"\xef\xbb\xbf{}",
        b"\x00\x01\x1f\x7f",
        b'{"a":"\\ud800"}',
        b"[" * 5000 + b"]" * 5000,
        '{"a":"\ufffe"}'.encode(),
        "\uffff".encode(),
        b"a\r\nb\tc",
    ],
)
def test_other_text_comes_out_of_the_body_as_it_was(data: bytes) -> None:
    assert row_of(message(data)).json_payload == data.decode()


@pytest.mark.parametrize("data", [b"\xff", b'{"a":\xc3}', b"\xed\xa0\x80", b"\x1f\x8b\x08 zipped"])
def test_bytes_that_are_no_text_are_refused_and_can_be_had_from_the_dead_letter(data: bytes) -> None:
    body = body_of(message(data))
    outcome = decide(body.encode(), "events", 1, LIMIT)
    assert isinstance(outcome, DeadLetter)
    assert (outcome.error_type, outcome.message_id) == (Refusal.INVALID_CONTRACT, "8841-77")
    assert base64.b64decode(json.loads(body)["payload_base64"]) == data


@pytest.mark.parametrize(
    ("attributes", "key"),
    [
        ({}, None),
        ({"idempotency_key": "a"}, "a"),
        ({"idempotencyKeyResource": "b"}, "b"),
        ({"idempotency_key": "a", "idempotencyKeyResource": "b"}, "a"),
        ({"idempotency_key": "", "idempotencyKeyResource": "b"}, "b"),
        ({"idempotency_key": '"\\\x00\uffff'}, '"\\\x00\uffff'),
        ({"other": "c"}, None),
    ],
)
def test_the_key_is_an_attribute_of_the_message(attributes: dict[str, str], key: str | None) -> None:
    assert row_of(message(b"{}", **attributes)).idempotency_key == key
    assert ("idempotency_key" in body_of(message(b"{}", **attributes))) == (key is not None)


def test_a_key_of_the_payload_is_found_when_the_message_has_none() -> None:
    assert row_of(message(b'{"_metadata":{"idempotencyKeyResource":"k"}}')).idempotency_key == "k"


@pytest.mark.parametrize("published", [None, (10**15, 0), (-(10**15), 5)])
def test_a_time_that_is_none_makes_a_dead_letter(published: tuple[int, int] | None) -> None:
    outcome = decide(body_of(PulledMessage("1", published, b"{}", {})).encode(), "events", 1, LIMIT)
    assert isinstance(outcome, DeadLetter)
    assert "publish_time" in outcome.error_message


texts = st.text(st.characters(exclude_categories=("Cs",)))
json_texts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
).map(lambda value: json.dumps(value, ensure_ascii=False).encode())
hostile = st.text(alphabet='{}[]",:\\ \n\t\r\x00ue0129.-+truefalsn\ud7ff\ufffe\uffff\U0001f600').map(
    lambda text: text.encode()
)
anything = st.binary() | texts.map(str.encode) | json_texts | hostile
seconds = st.integers(0, int(datetime(2100, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()))


@settings(max_examples=400)
@given(data=anything, message_id=texts.filter(bool), second=seconds, nanos=st.integers(0, 999_999_999), key=texts)
@example(data=b'{"message_id":"other"}', message_id='","message_id":"x', second=0, nanos=999, key="\x00")
def test_ingestion_gives_back_the_exact_bytes_id_and_time_of_any_message(
    data: bytes, message_id: str, second: int, nanos: int, key: str
) -> None:
    pulled = PulledMessage(message_id, (second, nanos), data, {"idempotency_key": key})
    body = body_of(pulled)
    assert is_taken_by_sqs(body)
    assert text_bytes(body) == len(body.encode())
    outcome = decide(body.encode(), "events", 1, LIMIT)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        assert isinstance(outcome, DeadLetter)
        assert outcome.message_id == message_id
        assert base64.b64decode(json.loads(body)["payload_base64"]) == data
        return
    assert isinstance(outcome, RawRow)
    assert outcome.json_payload == (None if text == "null" else text)
    assert outcome.message_id == message_id
    assert outcome.publish_time == second * 1_000_000 + nanos // 1000
    if key:
        assert outcome.idempotency_key == key


def test_every_microsecond_is_kept() -> None:
    moment = datetime(2026, 2, 3, 10, 15, 30, 1, tzinfo=UTC)
    for step in range(0, 1_000_000, 99_991):
        later = moment + timedelta(microseconds=step)
        pulled = PulledMessage("1", (int(later.timestamp()), later.microsecond * 1000 + 999), b"{}", {})
        assert f'"{later.isoformat(timespec="microseconds").replace("+00:00", "Z")}"' in body_of(pulled)
