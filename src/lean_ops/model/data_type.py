"""The column types of a schema file, and which literals fit them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Value: TypeAlias = str | int | float | Decimal | bool | date | datetime

ALLOWED_TYPES: Final = (
    "STRING, INT, BIGINT, DOUBLE, DECIMAL(p,s) with 1 <= p <= 38 and 0 <= s <= p, BOOLEAN, DATE or TIMESTAMP"
)
_DECIMAL: Final = re.compile(r"DECIMAL\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_PLAIN_DECIMAL: Final = re.compile(r"-?([0-9]{1,80})(?:\.([0-9]{1,80}))?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ISO_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


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
        """The value that a literal's text stands for; ValueError with what is expected if it does not fit."""
        if self.kind is Kind.DECIMAL:
            return self._decimal(text)
        if self.kind is Kind.TIMESTAMP:
            return _timestamp(text) if time_format is TimeFormat.ISO else _since_epoch(text, time_format)
        return _READERS[self.kind](text)

    def _decimal(self, text: str) -> Decimal:
        parts = _PLAIN_DECIMAL.fullmatch(text)
        whole, fraction = (parts[1].lstrip("0"), (parts[2] or "").rstrip("0")) if parts else ("", "")
        if parts is None or len(whole) > self.precision - self.scale or len(fraction) > self.scale:
            raise ValueError(
                f"a plain decimal number with at most {self.precision - self.scale} digits before the point"
                f" and {self.scale} after it"
            )
        return Decimal(text)


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


def _integer(text: str, bits: int) -> int:
    value = int(text) if _INTEGER.fullmatch(text) else None
    if value is None or not -(2**bits) <= value < 2**bits:
        raise ValueError(f"a whole number from {-(2**bits)} to {2**bits - 1}")
    return value


def _double(text: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else float("inf")
    if abs(value) == float("inf"):
        raise ValueError("a number that a DOUBLE holds")
    return value


def _boolean(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("true or false")
    return text == "true"


def _date(text: str) -> date:
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError("a date as 2026-02-03")


def _timestamp(text: str) -> datetime:
    parts = _ISO_TIME.fullmatch(text)
    try:
        if parts:
            fraction = (parts[2] or "").ljust(6, "0")[:6]
            return datetime.fromisoformat(f"{parts[1]}.{fraction}{parts[3] or 'Z'}").astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("a time as 2026-02-03T10:15:30Z")


def _since_epoch(text: str, time_format: TimeFormat) -> datetime:
    unit, name = (1, "seconds") if time_format is TimeFormat.EPOCH_S else (1000, "milliseconds")
    try:
        if _INTEGER.fullmatch(text):
            return _EPOCH + timedelta(microseconds=int(text) * 1_000_000 // unit)
    except OverflowError:
        pass
    raise ValueError(f"a whole number of {name} since 1970")


_READERS: Final[dict[Kind, Callable[[str], Value]]] = {
    Kind.STRING: str,
    Kind.INT: partial(_integer, bits=31),
    Kind.BIGINT: partial(_integer, bits=63),
    Kind.DOUBLE: _double,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
}
