"""Rows on their way through Firehose."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.strategies import inputs_of

from lean_ops.ingest.body import decide
from lean_ops.ingest.firehose_record import FIELDS, NotARecordError, from_record, to_record
from lean_ops.model.envelope import RawRow
from lean_ops.model.tables import RAW

ROW = RawRow("events", "m-1", "k", None, "c", 1_770_113_730_120_000, 1_770_113_800, '{"a": 1.10}')


def text_of(row: RawRow = ROW, **changed: object) -> bytes:
    """A record with some of its values changed."""
    return json.dumps({**row._asdict(), **changed}).encode()


def test_a_record_has_the_columns_of_raw_in_their_order() -> None:
    names = [column.name for column in RAW.columns]
    assert list(FIELDS) == names
    assert list(json.loads(to_record(ROW))) == names


def test_a_record_has_microseconds_seconds_and_the_payload_as_text() -> None:
    assert to_record(ROW) == (
        b'{"topic_name":"events","message_id":"m-1","idempotency_key":"k","period_reference":null,'
        b'"correlation_id":"c","publish_time":1770113730120000,"ingestion_ts":1770113800,'
        b'"json_payload":"{\\"a\\": 1.10}"}'
    )


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ROWS = st.builds(
    RawRow,
    st.just("events"),
    TEXTS.filter(bool),
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.integers(0, 4_133_980_799_999_999),
    st.integers(0, 4_133_980_799),
    st.none() | TEXTS,
)


@given(ROWS)
def test_a_row_comes_back_as_it_was(row: RawRow) -> None:
    assert from_record(to_record(row)) == row
    assert json.loads(to_record(row)) == row._asdict()


@given(inputs_of("envelope"))
def test_every_row_that_a_body_becomes_is_a_record(body: bytes) -> None:
    row = decide(body, "events", 1_770_113_800, 1_024_000)
    if isinstance(row, RawRow):
        assert from_record(to_record(row)) == row


@given(
    st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_any_bytes_are_a_record_or_refused(data: bytes) -> None:
    with suppress(NotARecordError):
        row = from_record(data)
        assert from_record(to_record(row)) == row


@pytest.mark.parametrize("name", FIELDS)
def test_a_column_may_not_be_missing(name: str) -> None:
    values = ROW._asdict()
    del values[name]
    with pytest.raises(NotARecordError, match=name):
        from_record(json.dumps(values).encode())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        text_of()[:-1],
        text_of() + b"{}",
        b"\xff" + text_of(),
        b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        text_of(extra="x"),
        text_of(topic_name=None),
        text_of(topic_name="Events"),
        text_of(topic_name="a-b"),
        text_of(topic_name="dlq"),
        text_of(topic_name="events_staging"),
        text_of(topic_name="../events"),
        text_of(message_id=""),
        text_of(message_id=7),
        text_of(publish_time="2026-02-03T10:15:30Z"),
        text_of(publish_time=-1),
        text_of(publish_time=4_133_980_800_000_000),
        text_of(publish_time=1.5),
        text_of(ingestion_ts=None),
        text_of(ingestion_ts=10**30),
        text_of(json_payload={"a": 1}),
        text_of(json_payload="\ud800"),
    ],
    ids=lambda data: repr(data[-60:]),
)
def test_what_is_no_row_is_refused(data: bytes) -> None:
    with pytest.raises(NotARecordError):
        from_record(data)
