"""The queue body of a Pub/Sub message: whatever its data are, ingestion or a dead letter has them unchanged.

Data that are JSON stand in the body as they came. Other text stands there as a JSON string, which ingestion turns into
the very same text. Bytes that are no text are kept in base64; ingestion refuses that body, and its dead letter has it.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_ATTRIBUTES: Final = ("idempotency_key", "idempotencyKeyResource")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  seconds are counted from it, in UTC; the text says so with a Z
# How values begin that are told apart from text by their first byte; a JSON string is text like any other.
_BEGINNINGS: Final = frozenset(b"{[-0123456789tfn")
_BLANKS: Final = frozenset(b" \t\n\r")
# SQS takes these two characters in no body; all others that it refuses are escaped in every JSON string.
_REFUSED_BY_SQS: Final = ("\ufffe", "\uffff")
_one_json_value: Final = msgspec.json.Decoder(msgspec.Raw).decode


@dataclass(frozen=True, slots=True)
class PulledMessage:
    """A message as Pub/Sub handed it over; `published` is in seconds and nanoseconds since 1970."""

    message_id: str
    published: tuple[int, int] | None
    data: bytes
    attributes: Mapping[str, str]
    ordering_key: str = ""
    ack_id: str = ""
    attempt: int = 1


def body_of(message: PulledMessage) -> str:
    """The queue body that says all that ingestion needs to know of a message."""
    members = [f'"message_id":{_quoted(message.message_id)}']
    if message.published is not None:
        members.append(f'"publish_time":"{_time_text(*message.published)}"')
    key = next((key for name in KEY_ATTRIBUTES if (key := message.attributes.get(name))), None)
    if key is not None:
        members.append(f'"idempotency_key":{_quoted(key)}')
    members.append(_payload_member(message.data))
    return f"{{{','.join(members)}}}"


def _payload_member(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f'"payload_base64":"{base64.b64encode(data).decode()}"'
    return f'"payload":{text if _may_stand_as_it_is(data, text) else _quoted(text)}'


def _may_stand_as_it_is(data: bytes, text: str) -> bool:
    """Whether the data are one JSON value, blanks around it excluded, in characters that a queue takes."""
    if not data or data[0] not in _BEGINNINGS or data[-1] in _BLANKS or _is_refused_by_sqs(text):
        return False
    try:
        _one_json_value(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    if _is_refused_by_sqs(quoted):
        for character in _REFUSED_BY_SQS:
            quoted = quoted.replace(character, f"\\u{ord(character):04x}")
    return quoted


def _is_refused_by_sqs(text: str) -> bool:
    return not text.isascii() and any(character in text for character in _REFUSED_BY_SQS)


def _time_text(seconds: int, nanos: int) -> str:
    """RFC 3339 with microseconds; a time that no calendar has is written so that ingestion refuses it."""
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        return f"{seconds}.{nanos:09d}"
    return f"{moment.isoformat(timespec='microseconds')}Z"


def text_bytes(text: str) -> int:
    """The UTF-8 bytes of a text, which is what limits count."""
    return len(text) if text.isascii() else len(text.encode())
