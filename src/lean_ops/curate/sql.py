"""Pieces of SQL. A schema's expressions are made as text: a few dozen columns would be thousands of calls otherwise."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from lean_ops.model.data_type import DataType, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lean_ops.model.data_type import Value

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES: Final = {
    Kind.STRING: "string",
    Kind.INT: "int",
    Kind.BIGINT: "bigint",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
}


def spark_type(kind: DataType) -> str:
    """The type as Spark names it."""
    return str(kind).lower() if kind.kind is Kind.DECIMAL else _TYPES[kind.kind]


def name(column: str) -> str:
    """A column's name in quotes."""
    return "`" + column.replace("`", "``") + "`"


def text(value: str) -> str:
    """A text in quotes; every character but letters and digits is written by its code, so none can mean anything."""
    return "'" + "".join(map(_character, value)) + "'"


def _character(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in " _"):
        return character
    return f"\\U{ord(character):08X}"


def value(kind: DataType, literal: Value) -> str:
    """A schema's literal as a value of exactly its type: nothing is compared as a float that is none."""
    if isinstance(literal, datetime):
        return f"timestamp_micros({microseconds(literal)}L)"
    words = literal.isoformat() if isinstance(literal, date) else str(literal)
    return f"CAST({text(words)} AS {spark_type(kind)})"


def microseconds(moment: datetime) -> int:
    """A time as microseconds since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def matches(expression: str, pattern: str) -> str:
    """Whether a text matches a Java pattern somewhere."""
    return f"{expression} RLIKE {text(pattern)}"


def try_cast(expression: str, spark_type: str) -> str:
    """A cast that is NULL where it fails."""
    return f"try_cast({expression} AS {spark_type})"


def when(condition: str, then: str, otherwise: str = "NULL") -> str:
    """One of two values."""
    return f"CASE WHEN {condition} THEN {then} ELSE {otherwise} END"


def struct(**fields: str) -> str:
    """Named fields as one value."""
    return f"named_struct({', '.join(f'{text(field)}, {expression}' for field, expression in fields.items())})"


def either(conditions: Iterable[str]) -> str:
    """Whether one of the conditions is true."""
    return " OR ".join(f"({condition})" for condition in conditions)


def let(variable: str, expression: str, body: Callable[[str], str]) -> str:
    """`body` of a value that is computed once, evaluated only where a branch asks for it.

    A function over an array is never part of the code that Spark generates for every row, and neither is what stands
    inside it. Written out, the exact casts and the error rows of a few dozen columns would pass Java's 64 KB for a
    method, and Spark would fall back to interpreting the whole batch.
    """
    return f"transform(array({expression}), {variable} -> {body(variable)})[0]"
