"""A RAW row as a Firehose record: a JSON object whose keys are RAW's columns, in their order.

Firehose's Iceberg sink takes a timestamp as epoch microseconds and finds a column by the key of its name.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from lean_ops.ingest.publish_time import END_SECOND
from lean_ops.model.envelope import RawRow
from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

MAX_RECORD_BYTES: Final = 1_024_000

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Micros = Annotated[int, msgspec.Meta(ge=0, lt=END_SECOND * 1_000_000)]
_Seconds = Annotated[int, msgspec.Meta(ge=0, lt=END_SECOND)]


class _Record(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """RAW's columns; none may be missing and none may be more."""

    topic_name: _Text
    message_id: _Text
    idempotency_key: str | None
    period_reference: str | None
    correlation_id: str | None
    publish_time: _Micros
    ingestion_ts: _Seconds
    json_payload: str | None


class NotARecordError(ValueError):
    """The bytes are not a record that can be routed; the message says why."""


_encode: Final = msgspec.json.Encoder().encode
_read: Final = msgspec.json.Decoder(_Record).decode
FIELDS: Final = _Record.__struct_fields__


def to_record(row: RawRow) -> bytes:
    """The row's record."""
    return _encode(_Record(*row))


def from_record(data: bytes) -> RawRow:
    """The row of a record, or NotARecordError."""
    try:
        data.decode()
        record = _read(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotARecordError(str(error)) from None
    row = RawRow(*(getattr(record, name) for name in FIELDS))
    _check_topic(row.topic_name)
    return row


def _check_topic(name: str) -> None:
    try:
        topic = parse_topic(name)
    except WrongUseError as error:
        raise NotARecordError(str(error)) from None
    if topic != name:
        raise NotARecordError(f"topic {name!r}: expected its normalised form, {topic!r}")
