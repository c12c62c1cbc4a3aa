"""Rules of a schema file that tie several keys together.

They read the file's data as it came, skip whatever has the wrong shape (the model reports that), and say all
that is wrong with the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.data_type import ORDERED, STRING, DataType, Kind, TimeFormat, Value, parse_type
from lean_ops.model.errors import WrongUseError
from lean_ops.model.java_pattern import PatternError, parse_pattern
from lean_ops.model.layout_rules import layout_problems
from lean_ops.model.pattern_cost import endless_repeat
from lean_ops.model.problem import Problem
from lean_ops.model.strict_json import Number, shown
from lean_ops.model.tables import BATCH_ID, ENVELOPE, EXTRA, FIRST_SEEN, LAST_UPDATED, ColumnType
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

AUDIT_NAMES: Final = ("first_seen_ts", "last_updated_ts", "_schema_version", BATCH_ID, EXTRA)
MAX_COLUMNS: Final = 2000
MAX_PATTERN_CHARACTERS: Final = 1000
ZONES: Final = (["standardized"], ["standardized", "curated"])
_COLUMN_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,127}")
_TYPE_NAMES: Final[Mapping[ColumnType | DataType, str]] = {
    ColumnType.STRING: "STRING",
    ColumnType.BIGINT: "BIGINT",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}
ENVELOPE_TYPES: Final = {column.name: _TYPE_NAMES[column.type] for column in ENVELOPE}
_BOUNDED: Final = (ORDERED, "a numeric type, DATE or TIMESTAMP")
_ONLY_FOR: Final = {
    "format": (frozenset({Kind.TIMESTAMP}), "type TIMESTAMP"),
    "pattern": (frozenset({Kind.STRING}), "type STRING"),
    "min": _BOUNDED,
    "max": _BOUNDED,
}


# one payload column


def column_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with a payload column beyond the shape of its keys."""
    yield from _pattern_problems(data.get("pattern"))
    kind = _type_of(data)
    if kind is not None:
        yield from _misplaced(data, kind)
        yield from _literal_problems(data, kind)


def _type_of(data: Mapping[str, Any]) -> DataType | None:
    try:
        return parse_type(data["type"]) if "type" in data else STRING
    except (ValueError, TypeError):
        return None


def _misplaced(data: Mapping[str, Any], kind: DataType) -> Iterator[Problem]:
    """Keys that make no sense for the column's type."""
    for key, (kinds, expected) in _ONLY_FOR.items():
        if data.get(key) is not None and kind.kind not in kinds:
            yield Problem((key,), f"not for type {kind}", shown(data[key]), expected)
    if data.get("pii") in ("hash", "mask") and kind.kind is not Kind.STRING:
        yield Problem(("pii",), f"not for type {kind}", shown(data["pii"]), "type STRING, or pii drop")


def _literal_problems(data: Mapping[str, Any], kind: DataType) -> Iterator[Problem]:
    found: dict[tuple[str | int, ...], Value] = {}
    for keys, literal in _literals(data):
        try:
            found[keys] = _value_of(literal, kind, data.get("format"))
        except ValueError as error:
            yield Problem(keys, f"does not fit type {kind}", shown(literal), str(error))
    if kind.kind in ORDERED:
        yield from _bounds_problems(data, found)
    yield from _default_problems(data, found)


def _literals(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    enum = data.get("enum")
    values: list[tuple[tuple[str | int, ...], Any]] = [((key,), data.get(key)) for key in ("default", "min", "max")]
    values += [(("enum", position), item) for position, item in enumerate(enum if isinstance(enum, list) else [])]
    return ((keys, value) for keys, value in values if isinstance(value, str | bool | Number))


def _value_of(literal: str | bool | Number, kind: DataType, time_format: Any) -> Value:
    if kind.kind is Kind.STRING and not isinstance(literal, str):
        raise ValueError("a text in quotes")
    if isinstance(literal, bool):
        literal = "true" if literal else "false"
    known = time_format if isinstance(time_format, str) and time_format in list(TimeFormat) else TimeFormat.ISO
    return kind.value_of(literal.text if isinstance(literal, Number) else literal, TimeFormat(known))


def _bounds_problems(data: Mapping[str, Any], found: dict[tuple[str | int, ...], Any]) -> Iterator[Problem]:
    lowest, highest, default = (found.get((key,)) for key in ("min", "max", "default"))
    if lowest is not None and highest is not None and lowest > highest:
        yield Problem(("min",), "is above max", shown(data["min"]), f"at most {shown(data['max'])}")
    if default is not None and lowest is not None and default < lowest:
        yield Problem(("default",), "is below min", shown(data["default"]), f"at least {shown(data['min'])}")
    if default is not None and highest is not None and default > highest:
        yield Problem(("default",), "is above max", shown(data["default"]), f"at most {shown(data['max'])}")


def _default_problems(data: Mapping[str, Any], found: dict[tuple[str | int, ...], Value]) -> Iterator[Problem]:
    allowed = [value for keys, value in found.items() if keys[0] == "enum"]
    default = found.get(("default",))
    if default is not None and allowed and default not in allowed:
        yield Problem(("default",), "is not in enum", shown(data["default"]), f"one of {shown(data['enum'])}")


def _pattern_problems(pattern: Any) -> Iterator[Problem]:
    if not isinstance(pattern, str):
        return
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        yield Problem(
            ("pattern",), "is too long", f"{len(pattern)} characters", f"at most {MAX_PATTERN_CHARACTERS} characters"
        )
        return
    try:
        tree = parse_pattern(pattern)
    except PatternError as error:
        yield Problem(("pattern",), f"not a regular expression: {error}", shown(pattern), "a Java regular expression")
    else:
        if endless_repeat(tree):
            message = "may take forever: a repeat inside a repeat shares its text with the next round in many ways"
            expected = "one repeat, or an inner one that gives nothing back, as in (?:[a-z]++ ?)*"
            yield Problem(("pattern",), message, shown(pattern), expected)


# the whole file


def schema_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with a file beyond the shape of its keys and its columns."""
    yield from _table_name_problems(data.get("table_name"))
    yield from _envelope_problems(_object(data, "envelope_columns"))
    yield from _column_name_problems(_object(data, "payload_columns"))
    yield from _version_column_problems(data.get("version_column"), _object(data, "payload_columns"))
    if isinstance(data.get("zones"), list) and data["zones"] not in ZONES:
        yield Problem(("zones",), "not a way that exists", shown(data["zones"]), " or ".join(map(shown, ZONES)))
    yield from layout_problems(data, _curated_types(_object(data, "payload_columns")))


def _curated_types(columns: Mapping[str, Any]) -> dict[str, DataType | None]:
    """The types of the columns that Curated may be laid out by; None where the file names no type that exists."""
    declared = {name: _type_of(column) if isinstance(column, dict) else None for name, column in columns.items()}
    envelope = {name: parse_type(text) for name, text in ENVELOPE_TYPES.items()}
    times = dict.fromkeys((FIRST_SEEN, LAST_UPDATED), DataType(Kind.TIMESTAMP))
    return {**declared, **envelope, **times}


def _object(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _table_name_problems(name: Any) -> Iterator[Problem]:
    if not isinstance(name, str):
        return
    try:
        topic = parse_topic(name)
    except WrongUseError as error:
        yield Problem(("table_name",), error.what, shown(name), error.expected)
    else:
        if topic != name:
            yield Problem(("table_name",), "not in a topic's form", shown(name), shown(topic))


def _envelope_problems(columns: Mapping[str, Any]) -> Iterator[Problem]:
    for name, column in columns.items():
        if name not in ENVELOPE_TYPES:
            expected = f"one of {', '.join(ENVELOPE_TYPES)}"
            yield Problem(("envelope_columns", name), "not an envelope column", shown(name), expected)
        elif isinstance(column, dict) and column.get("type") not in (None, ENVELOPE_TYPES[name]):
            keys = ("envelope_columns", name, "type")
            yield Problem(keys, "an envelope column's type is given", shown(column["type"]), ENVELOPE_TYPES[name])


def _column_name_problems(columns: Mapping[str, Any]) -> Iterator[Problem]:
    if len(columns) > MAX_COLUMNS:
        yield Problem(("payload_columns",), "too many columns", str(len(columns)), f"at most {MAX_COLUMNS}")
    for name in columns:
        keys = ("payload_columns", name)
        if name in ENVELOPE_TYPES or name in AUDIT_NAMES:
            yield Problem(keys, "this name belongs to an envelope or audit column", shown(name), "another name")
        elif not _COLUMN_NAME.fullmatch(name):
            expected = "a small letter, then at most 127 small letters, digits or '_'"
            yield Problem(keys, "not a column name", shown(name), expected)


def _version_column_problems(name: Any, columns: Mapping[str, Any]) -> Iterator[Problem]:
    if not isinstance(name, str):
        return
    column = columns.get(name)
    if column is None:
        yield Problem(("version_column",), "no such payload column", shown(name), "the name of a TIMESTAMP column")
    elif isinstance(column, dict) and column.get("type") != Kind.TIMESTAMP:
        found = f"{shown(name)} of type {shown(column.get('type', 'STRING'))}"
        yield Problem(("version_column",), "versions are times", found, "a column of type TIMESTAMP")
    elif isinstance(column, dict) and column.get("pii") is not None:
        found = f"{shown(name)} with pii {shown(column['pii'])}"
        yield Problem(("version_column",), "its value is needed as it is", found, "a column without pii")
