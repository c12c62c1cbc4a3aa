"""What a schema asks of a row, as Columns: each rule is its reason, or NULL while the row keeps it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from lean_ops.curate.casts import not_blank, spark_type
from lean_ops.model.data_type import Kind
from lean_ops.model.tables import ENVELOPE, ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column

    from lean_ops.model.schema import PayloadColumn, Schema

_SHOWN_CHARACTERS: Final = 100
_SHOWN_CHOICES: Final = 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ErrorType(StrEnum):
    """Why a row is refused, the most severe first."""

    CDE_VIOLATION = "CDE_VIOLATION"
    TYPE_CAST = "TYPE_CAST"
    RULE_VIOLATION = "RULE_VIOLATION"


def text_of(name: str) -> str:
    """The column that holds a payload column's text before its cast; the space keeps it apart from every name."""
    return f"text {name}"


def rules_of(schema: Schema) -> list[Column]:
    """Every rule of a schema, over rows that have the envelope, the typed columns and their texts."""
    payload = schema.payload_columns.items()
    return [*_envelope_rules(schema), *(rule for name, column in payload for rule in _column_rules(name, column))]


def _reason(error_type: ErrorType, field: str, message: Column) -> Column:
    """A reason as data; `severity` sorts the types."""
    severity = list(ErrorType).index(error_type)
    return F.struct(
        F.lit(severity).alias("severity"),
        F.lit(error_type.value).alias("error_type"),
        F.lit(field).alias("field"),
        F.concat(F.lit(f"{field}: "), message).alias("message"),
    )


def _envelope_rules(schema: Schema) -> Iterator[Column]:
    for column in ENVELOPE:
        asked = schema.envelope_column(column.name)
        if asked.must_be_present:
            value = F.col(column.name)
            value = not_blank(value) if column.type is ColumnType.STRING else value
            yield _missing(column.name, value, "a critical data element" if asked.cde else "required")


def _missing(name: str, value: Column, why: str) -> Column:
    return F.when(value.isNull(), _reason(ErrorType.CDE_VIOLATION, name, F.lit(f"is missing and {why}")))


def _column_rules(name: str, column: PayloadColumn) -> Iterator[Column]:
    """A missing value breaks nothing but its presence; one that can't be cast breaks nothing but its type."""
    text, value = F.col(f"`{text_of(name)}`"), F.col(name)
    if column.must_be_present:
        yield _missing(name, text, "a critical data element" if column.cde else "required")
    if column.type.kind is not Kind.STRING:
        wrong = F.concat(_found(text, column), F.lit(f" is no {column.type}{_format_words(column)}"))
        yield F.when(text.isNotNull() & value.isNull(), _reason(ErrorType.TYPE_CAST, name, wrong))
    for broken, words in _value_rules(value, column):
        message = F.concat(_found(text, column), F.lit(f" {words}"))
        yield F.when(broken, _reason(ErrorType.RULE_VIOLATION, name, message))


def _format_words(column: PayloadColumn) -> str:
    return f" ({column.time_format.value})" if column.type.kind is Kind.TIMESTAMP else ""


def _found(text: Column, column: PayloadColumn) -> Column:
    """The value in quotes, shortened; never that of a column that holds personal data."""
    if column.pii is not None:
        return F.lit("its value (not shown)")
    short = F.when(F.length(text) > _SHOWN_CHARACTERS, F.concat(F.left(text, F.lit(_SHOWN_CHARACTERS)), F.lit("…")))
    return F.concat(F.lit("'"), F.coalesce(short, text), F.lit("'"))


def _value_rules(value: Column, column: PayloadColumn) -> Iterator[tuple[Column, str]]:
    """Conditions that are true when a rule is broken, with the words for it; NULL, so not true, for no value."""
    if column.enum is not None:
        shown = ", ".join(column.enum[:_SHOWN_CHOICES]) + (", …" if len(column.enum) > _SHOWN_CHOICES else "")
        yield ~value.isin([_literal(column, text) for text in column.enum]), f"is not one of {shown}"
    if column.pattern is not None:
        yield ~F.regexp_like(value, F.lit(rf"\A(?:{column.pattern})\z")), f"does not match {column.pattern}"
    if column.min is not None:
        yield value < _literal(column, column.min), f"is below {column.min}"
    if column.max is not None:
        yield value > _literal(column, column.max), f"is above {column.max}"


def _literal(column: PayloadColumn, text: str) -> Column:
    """A schema's literal as a value of its column's type, of exactly that type: nothing is compared as a float."""
    value: Any = column.value_of(text)
    if column.type.kind is Kind.TIMESTAMP:
        return F.timestamp_micros(F.lit((value - _EPOCH) // timedelta(microseconds=1)))
    return F.lit(value).cast(spark_type(column.type))
