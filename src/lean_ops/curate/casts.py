"""A text as a value of its declared type, in Spark's own expressions: exact, or NULL.

The same rules as `DataType.value_of`, which the tests hold this module to. The usual spelling of a type is recognised
by a pattern that leaves Spark's cast nothing to round, wrap or guess; whatever else it may be is for `exact_casts`.
"""

from __future__ import annotations

from typing import Final

from lean_ops.curate import sql
from lean_ops.curate.exact_casts import exact_cast
from lean_ops.model.data_type import BLANKS, DataType, Kind, TimeFormat

# Patterns end in \z: Java's $ would let a line separator pass at the end.
_WHOLE: Final = r"^[+-]?[0-9]{1,18}\z"
# At most seventeen digits that count, and fifteen before the point: none of these is too large, or whole and inexact.
_DOUBLE: Final = r"^[+-]?(?:0\.0{0,20}[0-9]{1,17}|(?=[0-9.]{1,18}\z)[0-9]{1,15}(?:\.[0-9]{1,16})?)\z"
_DATE: Final = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}\z"
# Without the first and last years, so that no zone can lead out of the years that a table takes.
_TIME: Final = (
    r"^(?!9999)[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})?\z"
)
_EPOCHS: Final = {TimeFormat.EPOCH_S: (r"^[0-9]{1,10}\z", 1_000_000), TimeFormat.EPOCH_MS: (r"^[0-9]{1,13}\z", 1_000)}


def not_blank(text: str) -> str:
    """The text, or NULL if there is nothing in it."""
    return sql.when(f"btrim({text}, {sql.text(BLANKS)}) <> ''", text)


def cast_text(text: str, kind: DataType, time_format: TimeFormat = TimeFormat.ISO) -> str:
    """The value of a text that is not blank; NULL if it does not fit the type or would lose digits."""
    if kind.kind is Kind.STRING:
        return text
    exact = exact_cast(text, kind, time_format)
    if kind.kind is Kind.BOOLEAN:
        return f"CASE {text} WHEN 'true' THEN true WHEN 'false' THEN false ELSE {exact} END"
    if kind.kind is Kind.TIMESTAMP and time_format is not TimeFormat.ISO:
        usual, factor = _EPOCHS[time_format]
        return sql.when(sql.matches(text, usual), f"timestamp_micros(try_cast({text} AS bigint) * {factor})", exact)
    return sql.when(sql.matches(text, _usual_spelling(kind)), sql.try_cast(text, sql.spark_type(kind)), exact)


def _usual_spelling(kind: DataType) -> str:
    """A pattern of texts that Spark's own cast takes exactly or, if they are out of range, not at all."""
    if kind.kind is Kind.DECIMAL:
        whole = kind.precision - kind.scale
        before_point = f"[0-9]{{1,{whole}}}" if whole else "0"
        return rf"^[+-]?{before_point}(?:\.[0-9]{{0,{kind.scale}}})?\z"
    return {Kind.DOUBLE: _DOUBLE, Kind.DATE: _DATE, Kind.TIMESTAMP: _TIME}.get(kind.kind, _WHOLE)
