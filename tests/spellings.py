"""Every declared type's spellings: what a payload may write, what Curated then holds, and what is refused and why.

One table for all who cast: `DataType.value_of`, the Spark job, and `docs/types.md`, which is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from lean_ops.model.data_type import STRING, DataType, Kind, TimeFormat, Value


@dataclass(frozen=True, slots=True)
class Accepted:
    text: str
    value: Value
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Spellings:
    type: DataType
    accepted: tuple[Accepted, ...]
    refused: tuple[Refused, ...]
    time_format: TimeFormat = TimeFormat.ISO

    @property
    def title(self) -> str:
        return f"{self.type}, format {self.time_format}" if self.type.kind is Kind.TIMESTAMP else str(self.type)


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micros: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC)


_STRING = Spellings(
    STRING,
    accepted=(
        Accepted("abc", "abc"),
        Accepted(" a b ", " a b ", "spaces are part of the text"),
        Accepted("\ta\n", "\ta\n", "so are tabs and line breaks"),
        Accepted("1.10", "1.10", "a number keeps its text"),
        Accepted("1e5", "1e5", "a number keeps its text"),
        Accepted("true", "true"),
        Accepted("null", "null", "a word like any other"),
        Accepted("{}", "{}", "objects and arrays are JSON text"),
        Accepted('{"a": [1, 2]}', '{"a": [1, 2]}'),
        Accepted("a|b", "a|b"),
        Accepted("C:\\new", "C:\\new"),
        Accepted("it's `quoted`", "it's `quoted`"),
        Accepted("Gr\u00fc\u00dfe \u6771\u4eac \U0001f642", "Gr\u00fc\u00dfe \u6771\u4eac \U0001f642", "any alphabet"),
        Accepted("\u00a0", "\u00a0", "a no-break space is not blank"),
        Accepted("a\u0000b", "a\u0000b", "even this"),
    ),
    refused=(),
)

_WHOLE_ACCEPTED = (
    Accepted("12", 12),
    Accepted("-12", -12),
    Accepted("+7", 7, "a plus sign"),
    Accepted("0", 0),
    Accepted("-0", 0),
    Accepted("007", 7, "leading zeros"),
    Accepted("12.0", 12, "nothing is lost"),
    Accepted("12.", 12),
    Accepted("1e3", 1000, "an exponent"),
    Accepted("1E+3", 1000),
    Accepted("1.5e1", 15, "whole once it is written out"),
    Accepted("1200e-2", 12),
    Accepted("0.00e-7", 0),
    Accepted("0e9999", 0, "zero, however it is written"),
    Accepted(" 12 ", 12, "spaces around it"),
    Accepted("\t12\n", 12),
    Accepted("\r\f\v12", 12),
    Accepted(f"{'0' * 4000}7", 7),
    Accepted(f"7.{'0' * 4000}", 7),
)
_NO_NUMBER = (
    Refused("twelve", "a word"),
    Refused("true", "a boolean"),
    Refused("-", "no digits"),
    Refused(".", "no digits"),
    Refused("e5", "no digits before the exponent"),
    Refused("--1", "two signs"),
    Refused("- 1", "a space inside"),
    Refused("1 2", "a space inside"),
    Refused("1,200", "a comma"),
    Refused("1_000", "an underscore"),
    Refused("1.2.3", "two points"),
    Refused("1e", "no digits after the e"),
    Refused("1e1.5", "an exponent is whole"),
    Refused("1e00001", "an exponent of five digits"),
    Refused("0x1F", "hexadecimal"),
    Refused("1d", "Java's suffix for doubles"),
    Refused("1L", "Java's suffix for longs"),
    Refused("NaN", "not a number"),
    Refused("\u0661\u0662", "Arabic digits"),
    Refused("\uff11\uff12", "full-width digits"),
    Refused("\u221212", "a minus that is not the ASCII one"),
    Refused("\u00a012", "a no-break space is not a blank"),
    Refused("\x0012", "a control character is not a blank"),
    Refused("12\x1f", "a control character is not a blank"),
)
_NO_WHOLE = (
    Refused("1.5", "would lose its fraction"),
    Refused("1e-1", "would lose its fraction"),
    Refused("0.0000000001", "would lose its fraction"),
    Refused("1e10000", "an exponent of five digits"),
    Refused("1e9999", "too large"),
    Refused("9" * 5000, "too large"),
)

_INT = Spellings(
    DataType(Kind.INT),
    accepted=(
        *_WHOLE_ACCEPTED,
        Accepted("2147483647", 2147483647, "the largest"),
        Accepted("-2147483648", -2147483648, "the smallest"),
        Accepted("2.147483647e9", 2147483647),
        Accepted("-21474836480e-1", -2147483648),
    ),
    refused=(
        Refused("2147483648", "too large by one"),
        Refused("-2147483649", "too small by one"),
        Refused("3e9", "too large"),
        Refused("9999999999", "too large"),
        *_NO_WHOLE,
        *_NO_NUMBER,
    ),
)

_BIGINT = Spellings(
    DataType(Kind.BIGINT),
    accepted=(
        *_WHOLE_ACCEPTED,
        Accepted("9223372036854775807", 2**63 - 1, "the largest"),
        Accepted("-9223372036854775808", -(2**63), "the smallest"),
        Accepted("9223372036854775807.000", 2**63 - 1),
        Accepted("9.223372036854775807e18", 2**63 - 1, "exact, never through a double"),
        Accepted("9007199254740993", 2**53 + 1, "exact where a double is not"),
        Accepted("1e18", 10**18),
    ),
    refused=(
        Refused("9223372036854775808", "too large by one"),
        Refused("-9223372036854775809", "too small by one"),
        Refused("1e19", "too large"),
        Refused("9223372036854775807.5", "would lose its fraction"),
        Refused("12345678901234567890", "too large"),
        *_NO_WHOLE,
        *_NO_NUMBER,
    ),
)

_DOUBLE = Spellings(
    DataType(Kind.DOUBLE),
    accepted=(
        Accepted("1.5", 1.5),
        Accepted("-1.5", -1.5),
        Accepted("+1.5", 1.5),
        Accepted("1", 1.0),
        Accepted(".5", 0.5),
        Accepted("5.", 5.0),
        Accepted("1e5", 100000.0),
        Accepted("1E-5", 0.00001),
        Accepted("0.1", 0.1, "the nearest double, as everywhere"),
        Accepted("0", 0.0),
        Accepted("-0.0", -0.0),
        Accepted("0e9999", 0.0),
        Accepted("1.7976931348623157e308", 1.7976931348623157e308, "the largest"),
        Accepted("-1.7976931348623157e308", -1.7976931348623157e308),
        Accepted("2.2250738585072014e-308", 2.2250738585072014e-308),
        Accepted("4.9e-324", 5e-324, "the smallest above zero"),
        Accepted("0.12345678901234568", 0.12345678901234568, "17 digits"),
        Accepted("123456789012345", 123456789012345.0, "15 digits are always safe"),
        Accepted("9007199254740992", 9007199254740992.0, "a whole number that is held exactly"),
        Accepted("9007199254740994", 9007199254740994.0, "a whole number that is held exactly"),
        Accepted("1.152921504606847e+18", 2.0**60, "with an exponent it is a double's own text"),
        Accepted("12345678901234567000", 1.2345678901234567e19, "past BIGINT's range it is a measure"),
        Accepted(f"1.5{'0' * 4000}", 1.5, "zeros at the end are no digits"),
        Accepted(f"{'0' * 4000}1.5", 1.5),
        Accepted("\n 1.5\t", 1.5, "spaces around it"),
    ),
    refused=(
        Refused("1e309", "too large"),
        Refused("-1e309", "too large"),
        Refused("1.7976931348623159e308", "too large"),
        Refused("1e9999", "too large"),
        Refused("9" * 400, "more than 17 digits"),
        Refused("1e-400", "nothing but zero would be left"),
        Refused("2e-324", "nothing but zero would be left"),
        Refused("0.123456789012345678", "18 digits"),
        Refused("123456789012345678", "18 digits"),
        Refused("3.14159265358979323846", "more than 17 digits"),
        Refused("9007199254740993", "a double would hold 9007199254740992"),
        Refused("-9007199254740993", "a double would hold -9007199254740992"),
        Refused("9007199254740993.0", "a double would hold 9007199254740992"),
        Refused("90071992547409931", "a double would hold 90071992547409936"),
        Refused("Infinity", "not a number"),
        Refused("-inf", "not a number"),
        Refused("1f", "Java's suffix for floats"),
        Refused("0x1p3", "hexadecimal"),
        *_NO_NUMBER,
    ),
)

_DECIMAL = Spellings(
    DataType(Kind.DECIMAL, 10, 2),
    accepted=(
        Accepted("1.10", Decimal("1.10")),
        Accepted("1.1", Decimal("1.10")),
        Accepted("12", Decimal("12.00")),
        Accepted("-12.34", Decimal("-12.34")),
        Accepted("+5", Decimal("5.00")),
        Accepted(".5", Decimal("0.50")),
        Accepted("5.", Decimal("5.00")),
        Accepted("1e5", Decimal("100000.00")),
        Accepted("12.50e1", Decimal("125.00")),
        Accepted("1234e-2", Decimal("12.34")),
        Accepted("1.2300", Decimal("1.23"), "zeros at the end are no digits"),
        Accepted("00001.23", Decimal("1.23"), "nor are those at the start"),
        Accepted("99999999.99", Decimal("99999999.99"), "the largest"),
        Accepted("-99999999.99", Decimal("-99999999.99"), "the smallest"),
        Accepted("9.999999999e7", Decimal("99999999.99")),
        Accepted("0.01", Decimal("0.01")),
        Accepted("0", Decimal("0.00")),
        Accepted("-0.000", Decimal("0.00"), "there is one zero"),
        Accepted("0e9999", Decimal("0.00")),
        Accepted("0e-9999", Decimal("0.00")),
        Accepted(f"1{'0' * 4000}e-4000", Decimal("1.00")),
        Accepted(" 1.10\r\n", Decimal("1.10"), "spaces around it"),
    ),
    refused=(
        Refused("1.234", "a third digit after the point"),
        Refused("0.001", "a third digit after the point"),
        Refused("1e-3", "a third digit after the point"),
        Refused("123.45e-1", "a third digit after the point"),
        Refused("100000000", "nine digits before the point"),
        Refused("-100000000.00", "nine digits before the point"),
        Refused("1e8", "nine digits before the point"),
        Refused("99999999.995", "nothing is rounded"),
        Refused("1e9999", "too large"),
        Refused("1e-9999", "too small to be held"),
        Refused("9" * 5000, "too large"),
        Refused("$1.10", "a currency sign"),
        Refused("1.10 EUR", "a currency"),
        Refused("1,10", "a comma"),
        Refused("Infinity", "not a number"),
        *_NO_NUMBER,
    ),
)

_BOOLEAN = Spellings(
    DataType(Kind.BOOLEAN),
    accepted=(
        *(Accepted(text, True) for text in ("true", "t", "yes", "y", "1")),
        *(Accepted(text, False) for text in ("false", "f", "no", "n", "0")),
        Accepted("TRUE", True, "any case"),
        Accepted("False", False),
        Accepted("T", True),
        Accepted("yEs", True),
        Accepted("NO", False),
        Accepted(" true ", True, "spaces around it"),
        Accepted("\tn\r\n", False),
    ),
    refused=(
        Refused("on", "not one of the words"),
        Refused("off", "not one of the words"),
        Refused("tr", "half a word"),
        Refused("truee", "not one of the words"),
        Refused("wahr", "not one of the words"),
        Refused("2", "a number, but neither 1 nor 0"),
        Refused("-1", "a number, but neither 1 nor 0"),
        Refused("1.0", "a number, but neither 1 nor 0"),
        Refused("01", "a number, but neither 1 nor 0"),
        Refused("null", "a word"),
        Refused("t f", "two words"),
        Refused("ye\u017f", "a letter that only looks like an s"),
        Refused("\uff11", "a full-width digit"),
        Refused("\u00a0true", "a no-break space is not a blank"),
        Refused("\x00true", "a control character is not a blank"),
    ),
)

_DATE = Spellings(
    DataType(Kind.DATE),
    accepted=(
        Accepted("2026-02-03", date(2026, 2, 3)),
        Accepted("2024-02-29", date(2024, 2, 29), "a leap day"),
        Accepted("2000-02-29", date(2000, 2, 29), "a leap day"),
        Accepted("1969-12-31", date(1969, 12, 31)),
        Accepted("1582-10-10", date(1582, 10, 10), "today's calendar, also before it was used"),
        Accepted("0001-01-01", date(1, 1, 1), "the first"),
        Accepted("9999-12-31", date(9999, 12, 31), "the last"),
        Accepted(" 2026-02-03 ", date(2026, 2, 3), "spaces around it"),
        Accepted("2026-02-03\n", date(2026, 2, 3)),
    ),
    refused=(
        Refused("2026-02-30", "no such day"),
        Refused("2026-02-29", "no leap year"),
        Refused("1900-02-29", "no leap year"),
        Refused("2026-13-01", "no such month"),
        Refused("2026-00-10", "no such month"),
        Refused("2026-01-00", "no such day"),
        Refused("0000-12-31", "the year 0000"),
        Refused("10000-01-01", "five digits of a year"),
        Refused("-0001-01-01", "a year below 0001"),
        Refused("+2026-02-03", "a sign"),
        Refused("2026-2-3", "digits are missing"),
        Refused("26-02-03", "digits are missing"),
        Refused("2026-02", "no day"),
        Refused("20260203", "no dashes"),
        Refused("2026/02/03", "slashes"),
        Refused("03.02.2026", "another order"),
        Refused("2026-W06-2", "a week"),
        Refused("2026-02-03T00:00:00Z", "the time would be lost"),
        Refused("2026-02-03 10:15", "the time would be lost"),
        Refused("2026-02-03Z", "a zone without a time"),
        Refused("today", "a word"),
        Refused("epoch", "a word"),
        Refused("1770113730", "a number"),
        Refused("\uff12026-02-03", "a full-width digit"),
        Refused("2026\u201302\u201303", "dashes that are not ASCII"),
        Refused("\u00a02026-02-03", "a no-break space is not a blank"),
    ),
)

_SECOND = utc(2026, 2, 3, 10, 15, 30)
_ISO = Spellings(
    DataType(Kind.TIMESTAMP),
    accepted=(
        Accepted("2026-02-03T10:15:30Z", _SECOND),
        Accepted("2026-02-03T10:15:30", _SECOND, "without a zone it is UTC"),
        Accepted("2026-02-03 10:15:30", _SECOND, "a space for the T"),
        Accepted("2026-02-03t10:15:30z", _SECOND, "small letters"),
        Accepted("2026-02-03T10:15", utc(2026, 2, 3, 10, 15), "seconds may be missing"),
        Accepted("2026-02-03T10:15Z", utc(2026, 2, 3, 10, 15)),
        Accepted("2026-02-03T12:15:30+02:00", _SECOND),
        Accepted("2026-02-03T12:15:30+0200", _SECOND),
        Accepted("2026-02-03T12:15:30+02", _SECOND),
        Accepted("2026-02-03T05:45:30-04:30", _SECOND),
        Accepted("2026-02-03T10:15:30-00:00", _SECOND),
        Accepted("2026-02-04T04:15:30+18:00", _SECOND, "the farthest zone"),
        Accepted("2026-02-02T16:15:30-18", _SECOND),
        Accepted("2026-02-03T10:15:30.1Z", _SECOND.replace(microsecond=100000)),
        Accepted("2026-02-03T10:15:30.12Z", _SECOND.replace(microsecond=120000)),
        Accepted("2026-02-03T10:15:30.120Z", _SECOND.replace(microsecond=120000)),
        Accepted("2026-02-03T10:15:30.1234Z", _SECOND.replace(microsecond=123400)),
        Accepted("2026-02-03T10:15:30.12345Z", _SECOND.replace(microsecond=123450)),
        Accepted("2026-02-03T10:15:30.123456+00:00", _SECOND.replace(microsecond=123456)),
        Accepted("2026-02-03T10:15:30.1234567Z", _SECOND.replace(microsecond=123456), "cut, never rounded"),
        Accepted("2026-02-03T10:15:30.12345678Z", _SECOND.replace(microsecond=123456)),
        Accepted("2026-02-03T10:15:30.999999999Z", _SECOND.replace(microsecond=999999), "cut, never rounded"),
        Accepted("1969-12-31T23:59:59.9999999Z", utc(1969, 12, 31, 23, 59, 59, 999999), "also before 1970"),
        Accepted("2024-02-29T00:00:00Z", utc(2024, 2, 29), "a leap day"),
        Accepted("2024-03-01T00:30+01:00", utc(2024, 2, 29, 23, 30)),
        Accepted("0001-01-01T00:00:00Z", utc(1, 1, 1), "the first"),
        Accepted("9999-12-31T23:59:59.999999999Z", utc(9999, 12, 31, 23, 59, 59, 999999), "the last"),
        Accepted("9999-12-31T23:59:59+01:00", utc(9999, 12, 31, 22, 59, 59)),
        Accepted(" 2026-02-03T10:15:30Z\n", _SECOND, "spaces around it"),
    ),
    refused=(
        Refused("2026-02-03", "a date without a time"),
        Refused("2026-02-03T", "no time"),
        Refused("2026-02-03T10", "no minutes"),
        Refused("10:15:30", "no date"),
        Refused("2026-02-03T24:00:00Z", "hours go to 23"),
        Refused("2026-02-03T10:60:00Z", "minutes go to 59"),
        Refused("2026-12-31T23:59:60Z", "seconds go to 59"),
        Refused("2026-02-30T10:15:30Z", "no such day"),
        Refused("2026-02-29T10:15:30Z", "no leap year"),
        Refused("2026-02-03T1:15:30Z", "digits are missing"),
        Refused("2026-02-03T10:15:30.Z", "no digits after the point"),
        Refused("2026-02-03T10:15:30.1234567890Z", "ten digits after the point"),
        Refused("2026-02-03T10:15:30,5Z", "a comma"),
        Refused("2026-02-03T10:15.5Z", "a fraction of a minute"),
        Refused("2026-02-03T10:15:30+18:01", "no zone is farther than 18:00"),
        Refused("2026-02-03T10:15:30-19:00", "no zone is farther than 18:00"),
        Refused("2026-02-03T10:15:30+01:60", "minutes go to 59"),
        Refused("2026-02-03T10:15:30+1", "digits are missing"),
        Refused("2026-02-03T10:15:30+01:00:00", "seconds in a zone"),
        Refused("2026-02-03T10:15:30 Z", "a space before the zone"),
        Refused("2026-02-03T10:15:30 Europe/Paris", "a zone by name"),
        Refused("2026-02-03T10:15:30Z[UTC]", "a zone by name"),
        Refused("2026-02-03  10:15:30", "two spaces"),
        Refused("20260203T101530Z", "no dashes and colons"),
        Refused("Tue, 03 Feb 2026 10:15:30 GMT", "another order"),
        Refused("0001-01-01T00:00:00+00:01", "in UTC before the year 0001"),
        Refused("9999-12-31T23:59:59-00:01", "in UTC after the year 9999"),
        Refused("0000-12-31T23:30:00-01:00", "the year 0000, whatever it is in UTC"),
        Refused("10000-01-01T00:00:00Z", "five digits of a year"),
        Refused("1770113730", "a number; that is format epoch_s"),
        Refused("now", "a word"),
        Refused("\uff12026-02-03T10:15:30Z", "a full-width digit"),
        Refused("\u00a02026-02-03T10:15:30Z", "a no-break space is not a blank"),
    ),
)

_NO_EPOCH = (
    Refused("2026-02-03T10:15:30Z", "that is format iso"),
    Refused("1.770113730e9", "an exponent"),
    Refused("1e9", "an exponent"),
    Refused("1770113730.", "no digits after the point"),
    Refused(".5", "no digits before the point"),
    Refused("1770113730.1234567890", "ten digits after the point"),
    Refused("1234567890123456789", "19 digits"),
    Refused("0000000001770113730", "19 digits"),
    Refused("999999999999999999", "after the year 9999"),
    Refused("-999999999999999999", "before the year 0001"),
    Refused("1,770,113,730", "commas"),
    Refused("--1", "two signs"),
    Refused("- 1", "a space inside"),
    Refused("-", "no digits"),
    Refused("NaN", "not a number"),
    Refused("0x10", "hexadecimal"),
    Refused("10L", "Java's suffix for longs"),
    Refused("now", "a word"),
    Refused("\u0661\u0662", "Arabic digits"),
    Refused("\u00a012", "a no-break space is not a blank"),
    Refused("\x0012", "a control character is not a blank"),
)

_EPOCH_S = Spellings(
    DataType(Kind.TIMESTAMP),
    time_format=TimeFormat.EPOCH_S,
    accepted=(
        Accepted("1770113730", _SECOND),
        Accepted("+1770113730", _SECOND),
        Accepted("0", utc(1970, 1, 1)),
        Accepted("-0", utc(1970, 1, 1)),
        Accepted("-1", utc(1969, 12, 31, 23, 59, 59), "before 1970"),
        Accepted("000000001770113730", _SECOND, "18 digits"),
        Accepted("1770113730.0", _SECOND),
        Accepted("1770113730.5", _SECOND.replace(microsecond=500000)),
        Accepted("1770113730.123", _SECOND.replace(microsecond=123000)),
        Accepted("1770113730.123456", _SECOND.replace(microsecond=123456)),
        Accepted("1770113730.123456789", _SECOND.replace(microsecond=123456), "cut, never rounded"),
        Accepted("1770113730.999999999", _SECOND.replace(microsecond=999999), "cut, never rounded"),
        Accepted("-0.5", utc(1969, 12, 31, 23, 59, 59, 500000)),
        Accepted("-1.0000019", utc(1969, 12, 31, 23, 59, 58, 999999), "digits are cut before the sign counts"),
        Accepted("-0.0000009", utc(1970, 1, 1), "digits are cut before the sign counts"),
        Accepted("951782400", utc(2000, 2, 29), "a leap day"),
        Accepted("-62135596800", utc(1, 1, 1), "the first"),
        Accepted("-62135596800.0000009", utc(1, 1, 1)),
        Accepted("253402300799.999999999", utc(9999, 12, 31, 23, 59, 59, 999999), "the last"),
        Accepted(" 1770113730\n", _SECOND, "spaces around it"),
    ),
    refused=(
        Refused("253402300800", "after the year 9999"),
        Refused("-62135596801", "before the year 0001"),
        Refused("-62135596800.000001", "before the year 0001"),
        Refused("1770113730120", "milliseconds: as seconds after the year 9999"),
        *_NO_EPOCH,
    ),
)

_EPOCH_MS = Spellings(
    DataType(Kind.TIMESTAMP),
    time_format=TimeFormat.EPOCH_MS,
    accepted=(
        Accepted("1770113730120", _SECOND.replace(microsecond=120000)),
        Accepted("+1770113730120", _SECOND.replace(microsecond=120000)),
        Accepted("1770113730", utc(1970, 1, 21, 11, 41, 53, 730000), "seconds by mistake are read as milliseconds"),
        Accepted("0", utc(1970, 1, 1)),
        Accepted("1", utc(1970, 1, 1, 0, 0, 0, 1000)),
        Accepted("-1", utc(1969, 12, 31, 23, 59, 59, 999000), "before 1970"),
        Accepted("000001770113730120", _SECOND.replace(microsecond=120000), "18 digits"),
        Accepted("1770113730120.0", _SECOND.replace(microsecond=120000)),
        Accepted("1770113730120.5", _SECOND.replace(microsecond=120500)),
        Accepted("1770113730120.456", _SECOND.replace(microsecond=120456)),
        Accepted("1770113730120.456789", _SECOND.replace(microsecond=120456), "cut, never rounded"),
        Accepted("1770113730999.999999999", _SECOND.replace(microsecond=999999), "cut, never rounded"),
        Accepted("-0.5", utc(1969, 12, 31, 23, 59, 59, 999500)),
        Accepted("-1.0019", utc(1969, 12, 31, 23, 59, 59, 998999), "digits are cut before the sign counts"),
        Accepted("-0.0009", utc(1970, 1, 1), "digits are cut before the sign counts"),
        Accepted("-62135596800000", utc(1, 1, 1), "the first"),
        Accepted("253402300799999.999999999", utc(9999, 12, 31, 23, 59, 59, 999999), "the last"),
        Accepted("\t1770113730120 ", _SECOND.replace(microsecond=120000), "spaces around it"),
    ),
    refused=(
        Refused("253402300800000", "after the year 9999"),
        Refused("-62135596800001", "before the year 0001"),
        Refused("-62135596800000.001", "before the year 0001"),
        Refused("1770113730120456789", "nanoseconds have 19 digits"),
        *_NO_EPOCH,
    ),
)

SPELLINGS = (_STRING, _INT, _BIGINT, _DOUBLE, _DECIMAL, _BOOLEAN, _DATE, _ISO, _EPOCH_S, _EPOCH_MS)
