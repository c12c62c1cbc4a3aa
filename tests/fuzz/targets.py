"""What is fuzzed: each target takes any bytes, hands them to a parser and asserts all that must hold for them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from tests.fuzz import judges
from tests.fuzz.documents import pattern, schema, sql
from tests.fuzz.files import archive, lines
from tests.reference.leaves import Flattener, extra_text
from tests.reference.payload import MAX_NESTING, MAX_NUMBER_DIGITS, Number, compact_text, parse_payload
from tests.reference.payload import Refusal as PayloadRefusal

from lean_ops.ingest.body import decide
from lean_ops.ingest.publish_time import parse_publish_time
from lean_ops.ingest.scan import JsonSyntaxError, members_of
from lean_ops.model.data_type import BLANKS, DataType, Kind, TimeFormat
from lean_ops.model.envelope import DeadLetter, RawRow, Refusal
from lean_ops.model.json_path import format_json_path, json_pointer, parse_json_path
from lean_ops.standardize.naming import MAX_NAME, RESERVED_NAMES, assign_columns, natural_name, pointer_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIMIT = 100_000
NO_ENVELOPE = (None, None, None)
_slices_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def text_of(data: bytes) -> str:
    """Any bytes as text, where a parser takes text."""
    return data.decode("utf-8", "replace")


# the envelope


def envelope(data: bytes) -> None:
    """A body has one outcome; it is malformed exactly if it is no JSON object, and a row holds what the body says."""
    outcome = decide(data, "events", 1_770_000_000, LIMIT)
    assert outcome == decide(data, "events", 1_770_000_000, LIMIT)
    if isinstance(outcome, DeadLetter):
        assert outcome.error_message.isprintable()
        assert outcome.message_id != ""
    if len(data) > LIMIT:
        assert outcome[0] is Refusal.OVERSIZED
        return
    members = _judged_members(data)
    if isinstance(outcome, RawRow):
        assert members is not None
        _check_row(outcome, members, data)
    elif "lone surrogate" in outcome.error_message:
        assert members is not None
        assert judges.has_lone_surrogate(data.decode())
    else:
        assert (outcome.error_type is Refusal.MALFORMED_JSON) is (members is None)


def _judged_members(data: bytes) -> dict[str, Any] | None:
    try:
        return judges.json_object(data.decode())
    except UnicodeDecodeError:
        return None


def _check_row(row: RawRow, members: Mapping[str, Any], data: bytes) -> None:
    assert row.message_id == (members.get("message_id") or members["messageId"])
    given = members.get("publish_time")
    assert row.publish_time == judges.publish_time(members["publishTime"] if given is None else given)
    payload = members["payload"]
    if payload is None or (isinstance(payload, str) and not isinstance(payload, judges.Text)):
        assert row.json_payload == payload
    else:
        assert row.json_payload is not None
        assert row.json_payload.encode() in data
        assert judges.json_value(row.json_payload) == payload
    "".join(column for column in row if isinstance(column, str)).encode()
    if isinstance(members.get("idempotency_key"), str) and members["idempotency_key"]:
        assert row.idempotency_key == members["idempotency_key"]


def scanner(data: bytes) -> None:
    """The scanner, the fast parser and the standard parser take the same texts, with the same members."""
    text = text_of(data)
    try:
        scanned = {name: text[start:end] for name, start, end in members_of(text)}
    except JsonSyntaxError:
        scanned = None
    expected = judges.json_object(text)
    assert (scanned is None) is (expected is None)
    try:
        sliced = {name: str(raw, "utf-8") for name, raw in _slices_of(text).items()}
    except (msgspec.DecodeError, RecursionError):
        assert scanned is None or judges.has_lone_surrogate(text) or judges.nesting(text) > MAX_NESTING
    else:
        assert sliced == scanned
    if scanned is not None and expected is not None:
        assert list(scanned) == list(expected)
        assert [judges.json_value(value) for value in scanned.values()] == list(expected.values())


# the payload


def payload(data: bytes) -> None:
    """A payload is an object or refused, as exact JSON and the bounds say; its leaves are found again, once each."""
    outcome = parse_payload(data)
    expected = _judged_members(data)
    if isinstance(outcome, PayloadRefusal):
        assert outcome.error_type in {"EMPTY_PAYLOAD", "INVALID_JSON", "NOT_AN_OBJECT"}
        outcome.message.encode()
        assert expected is None or _is_past_bounds(data.decode(), expected)
        return
    assert expected is not None
    assert not _is_past_bounds(data.decode(), expected)
    assert _same(outcome, expected)
    _check_compact(outcome)
    _check_leaves(outcome, expected)


def _is_past_bounds(text: str, value: Any) -> bool:
    deep, long = judges.nesting(text) > MAX_NESTING, judges.most_digits(value) > MAX_NUMBER_DIGITS
    return deep or long or judges.has_lone_surrogate(text)


def _same(found: Any, expected: Any) -> bool:
    """Equal, and numbers are numbers on both sides."""
    if isinstance(expected, dict):
        pairs = zip(found.items(), expected.items(), strict=True)
        return all(key == other and _same(item, wanted) for (key, item), (other, wanted) in pairs)
    if isinstance(expected, list):
        return all(_same(item, wanted) for item, wanted in zip(found, expected, strict=True))
    return bool(found == expected) and isinstance(found, Number) is isinstance(expected, judges.Text)


def _check_compact(value: dict[str, Any]) -> None:
    text = compact_text(value)
    again = parse_payload(text.encode())
    assert again == value
    assert compact_text(again) == text


def _check_leaves(value: dict[str, Any], expected: dict[str, Any]) -> None:
    wanted = {json_pointer(keys): leaf for keys, leaf in judges.leaves(expected).items()}
    discovery = Flattener({})
    discovery.flatten(value, NO_ENVELOPE)
    assert discovery.counts().keys() == wanted.keys()
    columns = assign_columns(dict.fromkeys(wanted, 1), (), (), 3).columns
    flat = Flattener(columns).flatten(value, NO_ENVELOPE)
    found = {pointer: flat.texts[name] for pointer, name in columns.items()} | flat.extra
    assert found.keys() == wanted.keys()
    assert len(flat.texts) + len(flat.extra) == len(wanted)
    for pointer, leaf in wanted.items():
        is_text = isinstance(leaf, str)
        assert found[pointer] == leaf if is_text else judges.json_value(found[pointer]) == leaf
    assert json.loads(extra_text(flat.extra) or "{}") == flat.extra


def names(data: bytes) -> None:
    """Leaves of any keys get names of their own, of the allowed characters, that belong to nobody else."""
    keys = [tuple(part.split("\x1f")[:5]) for part in text_of(data).split("\x1e")]
    pointers = {json_pointer(path): path for path in keys}
    assert [tuple(pointer_keys(pointer)) for pointer in pointers] == list(pointers.values())
    for pointer in pointers:
        name = natural_name(pointer)
        assert 0 < len(name) <= MAX_NAME
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    columns = assign_columns(dict.fromkeys(pointers, 1), ("a",), (), 50).columns
    assert len(set(columns.values())) == len(columns) == min(len(pointers), 50)
    assert RESERVED_NAMES.union({"a"}).isdisjoint(columns.values())


# single values


def publish_time(data: bytes) -> None:
    """A time is taken exactly as the rules say, or not at all."""
    text = text_of(data)
    assert parse_publish_time(text) == judges.publish_time(text)


_TYPES = [DataType(kind) for kind in Kind if kind is not Kind.DECIMAL] + [DataType(Kind.DECIMAL, 38, 6)]
_TYPES += [DataType(Kind.DECIMAL, 5, 5), DataType(Kind.DECIMAL, 3, 0)]


def casts(data: bytes) -> None:
    """A text is a value of a type or a ValueError; a number is held exactly."""
    data_type = _TYPES[data[0] % len(_TYPES)] if data else _TYPES[0]
    time_format = list(TimeFormat)[data[1] % 3] if len(data) > 1 else TimeFormat.ISO
    text = text_of(data[2:])
    try:
        value = data_type.value_of(text, time_format)
    except ValueError:
        value = None
    if data_type.kind in {Kind.INT, Kind.BIGINT, Kind.DECIMAL}:
        assert value == _exact(judges.number(text.strip(BLANKS)), data_type)


def _exact(number: Any, data_type: DataType) -> Any:
    """The number, if the type holds it."""
    if number is None:
        return None
    if data_type.kind is Kind.DECIMAL:
        scaled = number * 10**data_type.scale
        return number if scaled.denominator == 1 and abs(scaled) < 10**data_type.precision else None
    bits = 31 if data_type.kind is Kind.INT else 63
    return number if number.denominator == 1 and -(2**bits) <= number < 2**bits else None


def json_path(data: bytes) -> None:
    """A path is refused, or its keys can be written as a path that is read back alike."""
    text = text_of(data)
    try:
        keys = parse_json_path(text)
    except ValueError:
        return
    assert 1 <= len(keys) <= 5
    assert parse_json_path(format_json_path(keys)) == keys


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        *(envelope, scanner, payload, names, publish_time, casts, json_path),
        *(archive, lines, schema, pattern, sql),
    )
}


def run(target: str, data: bytes) -> None:
    """One input through one target; an input that the judge can't judge shows only that nothing breaks."""
    with suppress(judges.Unknown):
        TARGETS[target](data)
