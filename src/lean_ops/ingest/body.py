"""The one place where it is decided what becomes of a queue body: one RAW row, or a dead letter with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from lean_ops.ingest.publish_time import parse_publish_time
from lean_ops.ingest.scan import JsonSyntaxError, decode_string, members_of
from lean_ops.ingest.usual import usual_row
from lean_ops.model.envelope import (
    ENVELOPE_SOURCES,
    MESSAGE_ID_NAMES,
    PAYLOAD_NAME,
    PUBLISH_TIME_NAMES,
    DeadLetter,
    RawRow,
    Refusal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    # A member's value as the body has it: a view of the body's bytes, or text cut out by the scanner.
    Slice = msgspec.Raw | str

_SHOWN: Final = 80
_HEAD_BYTES: Final = 64 * 1024
_METADATA: Final = "_metadata"
# ENVELOPE_SOURCES split once: (the last part of the pointer, whether it stands inside `_metadata`).
_SOURCES: Final = {
    column: tuple((pointer.rpartition("/")[2], pointer.startswith(f"/{_METADATA}/")) for pointer in pointers)
    for column, pointers in ENVELOPE_SOURCES.items()
}
_NO_FIELDS: Final[Mapping[str, Slice]] = {}
_slices_of: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _RefusedError(Exception):
    """A refusal on its way to `decide`."""

    def __init__(self, error_type: Refusal, message: str, message_id: str | None = None) -> None:
        self.letter = DeadLetter(error_type, message, message_id)
        super().__init__(message)


class _LoneSurrogateError(ValueError):
    """A string with half of a surrogate pair: well-formed JSON, but no text."""


def decide(body: bytes, topic: str, arrived: int, max_body_bytes: int) -> RawRow | DeadLetter:
    """What becomes of a body; `arrived` is in seconds since 1970. Every body has exactly one outcome."""
    if len(body) > max_body_bytes:
        return oversized(body[:_HEAD_BYTES], len(body), max_body_bytes)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: byte 0x{body[error.start]:02x} at position {error.start + 1}"
        return DeadLetter(Refusal.MALFORMED_JSON, reason, _readable_message_id(body))
    row = usual_row(body, topic, arrived)
    if row is not None:
        return row
    try:
        return _row(_members(body, text), topic, arrived)
    except JsonSyntaxError as error:
        return DeadLetter(Refusal.MALFORMED_JSON, f"not a JSON object: {error}", _readable_message_id(body))
    except _RefusedError as refused:
        return refused.letter


def oversized(head: bytes, size: int, max_body_bytes: int) -> DeadLetter:
    """The outcome of a body over the limit, of which only the beginning needs to be at hand."""
    reason = f"the body has {size} bytes, at most {max_body_bytes} are taken"
    return DeadLetter(Refusal.OVERSIZED, reason, _readable_message_id(head))


def _members(body: bytes, text: str) -> Mapping[str, Slice]:
    """The body's members; the scanner has the last word on what the fast parser refuses."""
    try:
        return _slices_of(body)
    except (msgspec.DecodeError, RecursionError):
        members = {member.name: text[member.start : member.end] for member in members_of(text)}
    for name in members:
        if not _is_text(name):
            raise _RefusedError(Refusal.MALFORMED_JSON, f"a lone surrogate in the member name {_shown(name)}")
    return members


def _row(members: Mapping[str, Slice], topic: str, arrived: int) -> RawRow:
    message_id = _message_id(members)
    try:
        publish_time = _publish_time(members)
        payload = _payload(members)
        key, period, correlation = _envelope(members, payload)
    except _RefusedError as refused:
        raise _RefusedError(*refused.letter[:2], message_id) from None
    return RawRow(topic, message_id, key, period, correlation, publish_time, arrived, payload)


def _message_id(members: Mapping[str, Slice]) -> str:
    found = _first_given(members, MESSAGE_ID_NAMES)
    if found is not None and found[0] == '"' and len(found) > 2:
        return _string(found, "message_id")
    raise _RefusedError(Refusal.INVALID_CONTRACT, _missing("message_id", found, "a string that is not empty"))


def _publish_time(members: Mapping[str, Slice]) -> int:
    found = _first_given(members, PUBLISH_TIME_NAMES)
    if found is not None and found[0] == '"':
        micros = parse_publish_time(_string(found, "publish_time"))
        if micros is not None:
            return micros
    expected = "an RFC 3339 time in the years 1970 to 2100, like 2026-02-03T10:15:30.120Z"
    raise _RefusedError(Refusal.INVALID_CONTRACT, _missing("publish_time", found, expected))


def _payload(members: Mapping[str, Slice]) -> str | None:
    """A string's own text, nothing for null, and the very text that anything else has in the body."""
    found = members.get(PAYLOAD_NAME)
    if found is None:
        raise _RefusedError(Refusal.INVALID_CONTRACT, _missing("payload", None, "any JSON value, null included"))
    text = _text(found)
    if text[0] == '"':
        return _string(text, "payload")
    return None if text == "null" else text


def _envelope(members: Mapping[str, Slice], payload: str | None) -> list[str | None]:
    """The envelope's optional columns: what the body says, else what the payload says."""
    values = [_own_value(members[column], column) if column in members else None for column in _SOURCES]
    if None in values:
        top = _fields(payload)
        if top:
            metadata = _fields(_text(top[_METADATA])) if _METADATA in top else _NO_FIELDS
            for position, sources in enumerate(_SOURCES.values()):
                if values[position] is None:
                    values[position] = _first_value(sources, metadata, top)
    return values


def _own_value(found: Slice, column: str) -> str | None:
    try:
        return _value(found)
    except _LoneSurrogateError:
        raise _RefusedError(Refusal.MALFORMED_JSON, f"a lone surrogate in {column}") from None


def _first_value(
    sources: tuple[tuple[str, bool], ...], metadata: Mapping[str, Slice], top: Mapping[str, Slice]
) -> str | None:
    """The first source that holds a value; one that is no text counts as absent."""
    for name, in_metadata in sources:
        fields = metadata if in_metadata else top
        if name in fields:
            try:
                value = _value(fields[name])
            except _LoneSurrogateError:
                continue
            if value is not None:
                return value
    return None


def _fields(text: str | None) -> Mapping[str, Slice]:
    """The members of the object that a text is; none if it is anything else."""
    if text is None or (text[:1] != "{" and text.lstrip()[:1] != "{"):
        return _NO_FIELDS
    try:
        return _slices_of(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return {member.name: text[member.start : member.end] for member in members_of(text)}
    except JsonSyntaxError:
        return _NO_FIELDS


def _value(found: Slice) -> str | None:
    """A string's value, a number's or boolean's text; nothing for null, "", objects and arrays."""
    text = found if isinstance(found, str) else str(found, "utf-8")
    if text[0] == '"':
        return (_decoded(text) if "\\" in text else text[1:-1]) or None
    return None if text[0] in "{[n" else text


def _string(text: str, name: str) -> str:
    """The value of a JSON string that the row needs."""
    if "\\" not in text:
        return text[1:-1]
    try:
        return _decoded(text)
    except _LoneSurrogateError:
        raise _RefusedError(Refusal.MALFORMED_JSON, f"a lone surrogate in {name}") from None


def _decoded(text: str) -> str:
    value = decode_string(text)
    if not _is_text(value):
        raise _LoneSurrogateError
    return value


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(found: Slice) -> str:
    return found if isinstance(found, str) else str(found, "utf-8")


def _first_given(members: Mapping[str, Slice], names: tuple[str, ...]) -> str | None:
    """The value under the first spelling that is there and not null; null if that is all there is."""
    null = None
    for name in names:
        if name in members:
            text = _text(members[name])
            if text != "null":
                return text
            null = text
    return null


def _readable_message_id(body: bytes) -> str | None:
    """The message id in the intact beginning of a refused body, so that the dead letter can be traced."""
    found: dict[str, str] = {}
    text = body[:_HEAD_BYTES].decode("utf-8", "surrogateescape")
    try:
        for name, start, end in members_of(text):
            if name in MESSAGE_ID_NAMES and text[start] == '"':
                found[name] = decode_string(text[start:end])
    except JsonSyntaxError:
        pass
    message_id = next((found[name] for name in MESSAGE_ID_NAMES if name in found), None)
    return message_id if message_id and _is_text(message_id) else None


def _missing(name: str, found: str | None, expected: str) -> str:
    return f"{name}: found {'no such member' if found is None else _shown(found)}, expected {expected}"


def _shown(text: str) -> str:
    """A value as it may stand in a message: short, and without anything that a terminal would obey."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return short if short.isprintable() else repr(short)
