"""The quick way of a usual body: it is taken, and it leads where the closer look would have led."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fuzz.strategies import inputs_of

from lean_ops.ingest import body as closer_look
from lean_ops.ingest.body import decide
from lean_ops.ingest.usual import usual_row
from lean_ops.model.envelope import ENVELOPE_SOURCES, RawRow

TIME = "2026-02-03T10:15:30.120Z"
TOPIC, ARRIVED, LIMIT = "events", 1_770_000_000, 100_000


def body_of(payload: object, **members: object) -> bytes:
    return json.dumps({"message_id": "m-1", "publish_time": TIME, "payload": payload, **members}).encode()


def quick(body: bytes) -> RawRow | None:
    return usual_row(body, TOPIC, ARRIVED)


def closely(body: bytes) -> object:
    """The outcome without the quick way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closer_look, "usual_row", lambda *_: None)
        return decide(body, TOPIC, ARRIVED, LIMIT)


USUAL = {
    "an object": body_of({"a": 1.10, "_metadata": {"correlationId": "c"}}),
    "an object without metadata": body_of({"period_reference": "2026-02"}),
    "names of the body itself": body_of({"a": 1}, idempotency_key="k", period_reference="p", correlation_id="c"),
    "a payload in a string": body_of(json.dumps({"idempotencyKeyResource": "k"})),
    "a payload of plain words": body_of("plain words", idempotency_key="k"),
    "a payload that breaks off": body_of('{"correlationId":"c","a":{"b":1'),
    "no payload": body_of(None),
    "the other spellings": json.dumps({"messageId": "m", "publishTime": TIME, "payload": {}}).encode(),
    "escapes and accents": '{"message_id":"\\u00e9é","publish_time":"2026-02-03T10:15:30Z","payload":{"é":1}}'.encode(),
    "null for what the payload says": body_of({"correlation_id": "c"}, correlation_id=None, message_id="m"),
}


@pytest.mark.parametrize("body", USUAL.values(), ids=USUAL)
def test_a_usual_body_goes_the_quick_way_to_the_same_row(body: bytes) -> None:
    row = quick(body)
    assert row is not None
    assert row == closely(body) == decide(body, TOPIC, ARRIVED, LIMIT)


UNUSUAL = {
    "a number for an id": body_of({}, message_id=7),
    "an empty id": body_of({}, message_id="", messageId="m"),
    "no time": body_of({}, publish_time="yesterday"),
    "a number for a key": body_of({"idempotency_key": 1.10}),
    "metadata that is no object": body_of({"_metadata": "k", "correlation_id": "c"}),
    "half of a surrogate pair": body_of({"correlation_id": "\ud800"}),
    "a payload that is a number": body_of(12),
    "no payload at all": b'{"message_id":"m","publish_time":"2026-02-03T10:15:30Z"}',
    "no object": b"[1]",
    "a deep payload": b'{"message_id":"m","publish_time":"2026-02-03T10:15:30Z","payload":'
    + b"[" * 3000
    + b"]" * 3000
    + b"}",
}


@pytest.mark.parametrize("body", UNUSUAL.values(), ids=UNUSUAL)
def test_anything_unusual_is_left_to_the_closer_look(body: bytes) -> None:
    assert quick(body) is None
    assert decide(body, TOPIC, ARRIVED, LIMIT) == closely(body)


@pytest.mark.parametrize("column", ENVELOPE_SOURCES)
def test_the_quick_way_knows_every_source_in_its_order(column: str) -> None:
    pointers = ENVELOPE_SOURCES[column]
    for first, pointer in enumerate(pointers):
        payload: dict[str, dict[str, str] | str] = {"_metadata": {}}
        for later in pointers[first:]:
            *folder, name = later.removeprefix("/").split("/")
            inner = payload["_metadata"] if folder else payload
            assert isinstance(inner, dict)
            inner[name] = later
        row = quick(body_of(payload))
        assert row is not None
        assert getattr(row, column) == pointer


VALUES = st.sampled_from(["null", '""', '"v"', '"\\u0061"', "1.10", "true", "{}", "[]", '"\\ud800"', f'"{TIME}"'])
OUTER = st.sampled_from(["message_id", "messageId", "publish_time", "payload", "idempotency_key", "correlation_id"])
INNER = st.sampled_from(["_metadata", "idempotencyKeyResource", "idempotency_key", "correlationId", "x"])


def objects(names: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.tuples(names, values).map(lambda member: f'"{member[0]}": {member[1]}')
    return st.lists(members, max_size=5).map(lambda parts: f"{{{','.join(parts)}}}")


PAYLOADS = objects(INNER, VALUES | objects(INNER, VALUES))
WHOLE = st.tuples(objects(OUTER, VALUES | PAYLOADS), PAYLOADS).map(
    lambda made: f'{{"message_id":"m","publish_time":"{TIME}","payload":{made[1]},{made[0].removeprefix("{")}'.encode()
)


@settings(max_examples=500)
@given(WHOLE | inputs_of("envelope"))
@example(b'{"message_id":"m","publish_time":"2026-02-03T10:15:30Z","payload":{"_metadata":null,"correlation_id":"c"}}')
def test_both_ways_lead_to_the_same_outcome(body: bytes) -> None:
    assert decide(body, TOPIC, ARRIVED, LIMIT) == closely(body)
