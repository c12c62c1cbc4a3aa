"""The column types of a schema file, and the value that a text stands for under each of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from lean_ops.model.number_text import read_decimal, read_double, read_whole
from lean_ops.model.time_text import read_date, read_epoch_milliseconds, read_epoch_seconds, read_iso_time

if TYPE_CHECKING:
    from collections.abc import Callable

Value: TypeAlias = str | int | float | Decimal | bool | date | datetime

ALLOWED_TYPES: Final = (
    "STRING, INT, BIGINT, DOUBLE, DECIMAL(p,s) with 1 <= p <= 38 and 0 <= s <= p, BOOLEAN, DATE or TIMESTAMP"
)
_DECIMAL: Final = re.compile(r"DECIMAL\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
# Text of nothing but these is no value at all, and around a value they mean nothing; other spaces are text.
BLANKS: Final = " \t\n\r\f\v"
_TRUE: Final = frozenset({"true", "t", "yes", "y", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "0"})


class Kind(StrEnum):
    """The types by name."""

    STRING = "STRING"
    INT = "INT"
    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    BOOLEAN = "BOOLEAN"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"


class TimeFormat(StrEnum):
    """How a payload writes a TIMESTAMP."""

    ISO = "iso"
    EPOCH_S = "epoch_s"
    EPOCH_MS = "epoch_ms"


ORDERED: Final = frozenset({Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class DataType:
    """A column's type; precision and scale are DECIMAL's."""

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value

    def widens_to(self, other: DataType) -> bool:
        """Whether Iceberg promotes this type to `other` in place."""
        if self.kind is Kind.DECIMAL:
            return other.kind is self.kind and other.scale == self.scale and other.precision > self.precision
        return self.kind is Kind.INT and other.kind is Kind.BIGINT

    def value_of(self, text: str, time_format: TimeFormat = TimeFormat.ISO) -> Value:
        """The value that a text stands for, in a payload and in a schema file alike.

        ValueError with what is expected if the text does not fit or would lose a digit. Blank text never comes here:
        it is NULL before types are looked at.
        """
        if self.kind is Kind.STRING:
            return text
        trimmed = text.strip(BLANKS)
        if self.kind is Kind.DECIMAL:
            return read_decimal(trimmed, self.precision, self.scale)
        reader = _TIME_READERS[time_format] if self.kind is Kind.TIMESTAMP else _READERS[self.kind]
        return reader(trimmed)


STRING: Final = DataType(Kind.STRING)


def parse_type(text: str) -> DataType:
    """The type that a schema file names; ValueError with what is allowed if there is none."""
    parts = _DECIMAL.fullmatch(text)
    if parts:
        precision, scale = int(parts[1]), int(parts[2])
        if 1 <= precision <= 38 and scale <= precision:
            return DataType(Kind.DECIMAL, precision, scale)
    elif text != Kind.DECIMAL and text in Kind.__members__:
        return DataType(Kind(text))
    raise ValueError(ALLOWED_TYPES)


def _read_boolean(text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("true, false, t, f, yes, no, y, n, 1 or 0")
    return word in _TRUE


_READERS: Final[dict[Kind, Callable[[str], Value]]] = {
    Kind.INT: partial(read_whole, bits=32),
    Kind.BIGINT: partial(read_whole, bits=64),
    Kind.DOUBLE: read_double,
    Kind.BOOLEAN: _read_boolean,
    Kind.DATE: read_date,
}
_TIME_READERS: Final[dict[TimeFormat, Callable[[str], Value]]] = {
    TimeFormat.ISO: read_iso_time,
    TimeFormat.EPOCH_S: read_epoch_seconds,
    TimeFormat.EPOCH_MS: read_epoch_milliseconds,
}
