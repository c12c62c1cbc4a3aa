"""Unusual spellings, exactly: digits are counted before Spark's own cast is asked, so that it has nothing to round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lean_ops.curate import sql
from lean_ops.model.data_type import BLANKS, DataType, Kind, TimeFormat

if TYPE_CHECKING:
    from collections.abc import Callable

# Patterns end in \z: Java's $ would let a line separator pass at the end.
_NUMBER: Final = r"^([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,4}))?\z"
_TRUE: Final = r"^(?i:true|t|yes|y|1)\z"
_FALSE: Final = r"^(?i:false|f|no|n|0)\z"
_DATE: Final = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_TIME: Final = (
    r"^(?!0000)([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2})"
    r"(?:(:[0-9]{2})(\.[0-9]{1,6})?(?:(?<=\.[0-9]{6})[0-9]{1,3})?)?"
    r"(?:([Zz])|([+-][0-9]{2})(?::?([0-9]{2}))?)?\z"
)
_EPOCH: Final = r"^([+-]?[0-9]{1,18})(?:\.([0-9]{1,9}))?\z"
_FIRST_MICROSECOND: Final = "-62135596800000000L"  # 0001-01-01
_LAST_MICROSECOND: Final = "253402300799999999L"  # 9999-12-31
_YEARS: Final = f"BETWEEN {_FIRST_MICROSECOND} AND {_LAST_MICROSECOND}"


def exact_cast(text: str, kind: DataType, time_format: TimeFormat) -> str:
    """The value of a text in any spelling that its type has; NULL if there is none."""
    return sql.let("t", f"btrim({text}, {sql.text(BLANKS)})", lambda trimmed: _cast(trimmed, kind, time_format))


def _cast(text: str, kind: DataType, time_format: TimeFormat) -> str:
    if kind.kind is Kind.TIMESTAMP:
        return _iso_time(text) if time_format is TimeFormat.ISO else _since_epoch(text, time_format)
    return _CASTS[kind.kind](text, kind)


def _part(text: str, pattern: str, group: int) -> str:
    return f"regexp_extract({text}, {sql.text(pattern)}, {group})"


# numbers


def _number(text: str, body: Callable[[str], str]) -> str:
    """`body` of a number text's sign, digits without outer zeros, and the power of ten that they stand for."""
    fraction = f"concat({_part(text, _NUMBER, 3)}, {_part(text, _NUMBER, 4)})"
    written = sql.struct(
        sign=_part(text, _NUMBER, 1),
        digits=f"concat({_part(text, _NUMBER, 2)}, {fraction})",
        exponent=f"coalesce(try_cast({_part(text, _NUMBER, 5)} AS INT), 0) - length({fraction})",
    )
    stripped = sql.let("w", written, lambda parts: sql.let("s", _stripped(parts), body))
    return sql.when(sql.matches(text, _NUMBER), stripped)


def _stripped(parts: str) -> str:
    """The digits without zeros at either end; those at the tail go over to the exponent."""
    without_tail = f"trim(TRAILING '0' FROM {parts}.digits)"
    return sql.struct(
        sign=f"{parts}.sign",
        digits=f"trim(LEADING '0' FROM {without_tail})",
        exponent=f"{parts}.exponent + length({parts}.digits) - length({without_tail})",
    )


def _fits(number: str, precision: int, scale: int) -> str:
    """Whether a decimal of that size holds every digit."""
    whole_digits = f"length({number}.digits) + {number}.exponent"
    return f"{number}.digits = '' OR ({whole_digits} <= {precision - scale} AND {number}.exponent >= {-scale})"


def _canonical(number: str) -> str:
    """The same number, short enough for any parser once it fits."""
    digits = f"concat({number}.sign, {number}.digits, 'E', {number}.exponent)"
    return sql.when(f"{number}.digits = ''", "'0'", digits)


def _whole(text: str, kind: DataType) -> str:
    def whole(number: str) -> str:
        value = sql.try_cast(sql.try_cast(_canonical(number), "decimal(19,0)"), sql.spark_type(kind))
        return sql.when(_fits(number, 19, 0), value)

    return _number(text, whole)


def _decimal(text: str, kind: DataType) -> str:
    def decimal(number: str) -> str:
        fits = _fits(number, kind.precision, kind.scale)
        return sql.when(fits, sql.try_cast(_canonical(number), sql.spark_type(kind)))

    return _number(text, decimal)


def _double(text: str, kind: DataType) -> str:
    """The nearest double, finite and not lost in zero; a whole number that is written out must come back as it was."""
    value = sql.try_cast(text, sql.spark_type(kind))

    def double(number: str) -> str:
        is_finite = f"abs({value}) < double('Infinity') AND ({number}.digits = '' OR {value} <> 0)"
        is_whole = f"{number}.exponent >= 0 AND length({number}.digits) + {number}.exponent <= 19"
        is_long = f"abs({value}) < {float(2**63)!r}D"
        comes_back = f"try_cast({_canonical(number)} AS decimal(20,0)) = try_cast({value} AS bigint)"
        held = sql.when(f"{is_whole} AND {is_long}", comes_back, "true")
        digits = f"length({number}.digits)"
        fits = f"{digits} <= 17 AND ({digits} <= 15 OR {sql.matches(text, '[eE]')} OR {held})"
        return sql.when(f"{is_finite} AND {fits}", value)

    return _number(text, double)


# the others


def _boolean(text: str, _: DataType) -> str:
    return f"CASE WHEN {sql.matches(text, _TRUE)} THEN true WHEN {sql.matches(text, _FALSE)} THEN false END"


def _date(text: str, _: DataType) -> str:
    return sql.when(sql.matches(text, _DATE), sql.try_cast(text, "date"))


def _iso_time(text: str) -> str:
    moment = sql.when(sql.matches(text, _TIME), sql.try_cast(_in_full(text), "timestamp"))
    return sql.let("m", moment, lambda found: sql.when(f"unix_micros({found}) {_YEARS}", found))


def _in_full(text: str) -> str:
    """A time with its seconds, at most six digits after them, and the zone as +HH:MM."""

    def part(group: int) -> str:
        return _part(text, _TIME, group)

    def given(group: int, otherwise: str) -> str:
        return sql.when(f"{part(group)} = ''", sql.text(otherwise), part(group))

    zone = sql.when(f"{part(6)} = ''", "'Z'", f"concat({part(6)}, ':', {given(7, '00')})")
    return f"concat({part(1)}, 'T', {part(2)}, {given(3, ':00')}, {part(4)}, {zone})"


def _since_epoch(text: str, time_format: TimeFormat) -> str:
    """Seconds or milliseconds since 1970; what is finer than a microsecond is cut off the text."""
    kept, factor = (6, 1_000_000) if time_format is TimeFormat.EPOCH_S else (3, 1_000)
    fraction = f"substring({_part(text, _EPOCH, 2)}, 1, {kept})"
    number = f"concat_ws('.', {_part(text, _EPOCH, 1)}, nullif({fraction}, ''))"
    microseconds = f"try_cast(try_cast({number} AS decimal(24,{kept})) * {factor} AS bigint)"
    found = sql.when(sql.matches(text, _EPOCH), microseconds)
    return sql.let("m", found, lambda micros: sql.when(f"{micros} {_YEARS}", f"timestamp_micros({micros})"))


_CASTS: Final = {
    Kind.INT: _whole,
    Kind.BIGINT: _whole,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
}
