"""A text as a value of its declared type, in Spark's own expressions: exact, or NULL.

The same rules as `DataType.value_of`, which the tests hold this module to. Each type has a quick way for the usual
spelling and an exact way for the rest; Spark's own casts stand behind both, where they can't round, wrap or guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from lean_ops.model.data_type import BLANKS, DataType, Kind, TimeFormat

if TYPE_CHECKING:
    from pyspark.sql import Column

# Patterns end in \z: Java's $ would let a line separator pass at the end.
_NUMBER: Final = r"^([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,4}))?\z"
_BOOLEANS: Final = {True: r"^(?i:true|t|yes|y|1)\z", False: r"^(?i:false|f|no|n|0)\z"}
_DATE: Final = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_USUAL_TIME: Final = (
    r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9]{2}:[0-9]{2})?\z"
)
_TIME: Final = (
    r"^(?!0000)([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2})"
    r"(?:(:[0-9]{2})(\.[0-9]{1,6})?(?:(?<=\.[0-9]{6})[0-9]{1,3})?)?"
    r"(?:([Zz])|([+-][0-9]{2})(?::?([0-9]{2}))?)?\z"
)
_EPOCH: Final = r"^([+-]?[0-9]{1,18})(?:\.([0-9]{1,9}))?\z"
_FIRST_MICROSECOND: Final = -62_135_596_800_000_000  # 0001-01-01
_LAST_MICROSECOND: Final = 253_402_300_799_999_999  # 9999-12-31
_SPARK_TYPES: Final = {
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
    return str(kind).lower() if kind.kind is Kind.DECIMAL else _SPARK_TYPES[kind.kind]


def not_blank(text: Column) -> Column:
    """The text, or NULL if there is nothing in it."""
    return F.when(F.length(F.btrim(text, F.lit(BLANKS))) > 0, text)


def cast_text(text: Column, kind: DataType, time_format: TimeFormat = TimeFormat.ISO) -> Column:
    """The value of a text that is not blank; NULL if it does not fit the type or would lose digits."""
    if kind.kind is Kind.STRING:
        return text
    trimmed = F.btrim(text, F.lit(BLANKS))
    if kind.kind is Kind.TIMESTAMP:
        moment = _iso_time(trimmed) if time_format is TimeFormat.ISO else _since_epoch(trimmed, time_format)
        return _in_range(moment)
    return _CASTS[kind.kind](trimmed, kind)


# numbers


class _Digits:
    """A number text's parts: its sign, its digits without outer zeros, and the power of ten that they stand for."""

    def __init__(self, text: Column) -> None:
        def part(group: int) -> Column:
            return F.regexp_extract(text, _NUMBER, group)

        fraction = F.concat(part(3), part(4))
        digits = F.concat(part(2), fraction)
        without_tail = F.rtrim(digits, F.lit("0"))
        stripped = F.length(digits) - F.length(without_tail)
        shift = F.coalesce(part(5).try_cast("int"), F.lit(0))
        self.sign = part(1)
        self.significant = F.ltrim(without_tail, F.lit("0"))
        self.exponent = shift - F.length(fraction) + stripped

    @property
    def is_zero(self) -> Column:
        return F.length(self.significant) == 0

    @property
    def whole_digits(self) -> Column:
        return F.length(self.significant) + self.exponent

    @property
    def is_whole(self) -> Column:
        return self.is_zero | (self.exponent >= 0)

    def fit(self, precision: int, scale: int) -> Column:
        """Whether a decimal of that size holds every digit."""
        return self.is_zero | ((self.whole_digits <= precision - scale) & (self.exponent >= -scale))

    @property
    def canonical(self) -> Column:
        """The same number, short enough for any parser once it fits."""
        return F.when(self.is_zero, F.lit("0")).otherwise(
            F.concat(self.sign, self.significant, F.lit("E"), self.exponent.cast("string"))
        )


def _decimal(text: Column, kind: DataType) -> Column:
    whole, scale = kind.precision - kind.scale, kind.scale
    before_point = rf"0*[0-9]{{1,{whole}}}" if whole else "0+"
    usual = rf"^[+-]?{before_point}(?:\.[0-9]{{0,{scale}}}0*)?\z"
    digits = _Digits(text)
    return F.when(text.rlike(usual) & (F.length(text) <= 60), text.try_cast(spark_type(kind))).when(
        text.rlike(_NUMBER) & digits.fit(kind.precision, scale), digits.canonical.try_cast(spark_type(kind))
    )


def _integer(text: Column, kind: DataType) -> Column:
    digits = _Digits(text)
    return F.when(text.rlike(r"^[+-]?[0-9]{1,18}\z"), text.try_cast(spark_type(kind))).when(
        text.rlike(_NUMBER) & digits.fit(19, 0), digits.canonical.try_cast("decimal(19,0)").try_cast(spark_type(kind))
    )


def _double(text: Column, _: DataType) -> Column:
    digits, value = _Digits(text), text.try_cast("double")
    is_finite = (F.abs(value) < F.lit(float("inf"))) & (digits.is_zero | (value != F.lit(0.0)))
    held = F.length(digits.significant) <= 15
    is_small_whole = digits.is_whole & (digits.whole_digits <= 19) & (F.abs(value) < F.lit(float(2**63)))
    # A whole number that is written out must come back as it was: it may well be an identifier.
    is_small_whole &= ~text.rlike("[eE]")
    comes_back = digits.canonical.try_cast("decimal(20,0)") == value.try_cast("bigint").cast("decimal(20,0)")
    held |= (F.length(digits.significant) <= 17) & F.when(is_small_whole, comes_back).otherwise(F.lit(True))
    return F.when(text.rlike(r"^[+-]?[0-9]{1,8}(?:\.[0-9]{1,7})?\z"), value).when(
        text.rlike(_NUMBER) & is_finite & held, value
    )


def _boolean(text: Column, _: DataType) -> Column:
    return F.when(text.rlike(_BOOLEANS[True]), F.lit(True)).when(text.rlike(_BOOLEANS[False]), F.lit(False))


# times


def _date(text: Column, _: DataType) -> Column:
    return F.when(text.rlike(_DATE), text.try_cast("date"))


def _iso_time(text: Column) -> Column:
    return F.when(text.rlike(_USUAL_TIME), text.try_cast("timestamp")).when(
        text.rlike(_TIME), _usual_spelling(text).try_cast("timestamp")
    )


def _usual_spelling(text: Column) -> Column:
    """A time in full: seconds there, at most six digits after them, the zone as +HH:MM."""

    def part(group: int, otherwise: str = "") -> Column:
        found = F.regexp_extract(text, _TIME, group)
        return F.when(found == "", F.lit(otherwise)).otherwise(found) if otherwise else found

    zone = F.when(part(6) == "", F.lit("Z")).otherwise(F.concat(part(6), F.lit(":"), part(7, "00")))
    return F.concat(part(1), F.lit("T"), part(2), part(3, ":00"), part(4), zone)


def _since_epoch(text: Column, time_format: TimeFormat) -> Column:
    """Seconds or milliseconds since 1970; what is finer than a microsecond is cut off the text."""
    kept, factor = (6, 1_000_000) if time_format is TimeFormat.EPOCH_S else (3, 1_000)
    fraction = F.substring(F.regexp_extract(text, _EPOCH, 2), 1, kept)
    number = F.concat_ws(".", F.regexp_extract(text, _EPOCH, 1), F.when(fraction != "", fraction))
    microseconds = (number.try_cast(f"decimal(24,{kept})") * F.lit(factor)).try_cast("bigint")
    inside = microseconds.between(F.lit(_FIRST_MICROSECOND), F.lit(_LAST_MICROSECOND))
    return F.when(text.rlike(_EPOCH) & inside, F.timestamp_micros(microseconds))


def _in_range(moment: Column) -> Column:
    """The time if its year has four digits in UTC, as every reader of the tables expects."""
    first, last = (F.timestamp_micros(F.lit(edge)) for edge in (_FIRST_MICROSECOND, _LAST_MICROSECOND))
    return F.when(moment.between(first, last), moment)


_CASTS: Final = {
    Kind.INT: _integer,
    Kind.BIGINT: _integer,
    Kind.DOUBLE: _double,
    Kind.DECIMAL: _decimal,
    Kind.BOOLEAN: _boolean,
    Kind.DATE: _date,
}
