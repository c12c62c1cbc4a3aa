"""What a text stands for: the table of spellings, and properties over any text."""

from __future__ import annotations

import math
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spellings import SPELLINGS, Accepted, Refused, Spellings

from lean_ops.model.data_type import BLANKS, DataType, Kind, TimeFormat, Value

TYPES = [(each.type, each.time_format) for each in SPELLINGS]
PYTHON_TYPES = {
    Kind.STRING: str,
    Kind.INT: int,
    Kind.BIGINT: int,
    Kind.DOUBLE: float,
    Kind.DECIMAL: Decimal,
    Kind.BOOLEAN: bool,
    Kind.DATE: date,
    Kind.TIMESTAMP: datetime,
}
INT, BIGINT, DOUBLE = DataType(Kind.INT), DataType(Kind.BIGINT), DataType(Kind.DOUBLE)
TIMESTAMP = DataType(Kind.TIMESTAMP)
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def value_or_none(data_type: DataType, text: str, time_format: TimeFormat = TimeFormat.ISO) -> Value | None:
    try:
        return data_type.value_of(text, time_format)
    except ValueError:
        return None


def case(spellings: Spellings, line: Accepted | Refused) -> Any:
    return pytest.param(spellings, line, id=f"{spellings.title} {line.text[:40]!a}")


@pytest.mark.parametrize(("spellings", "line"), [case(each, line) for each in SPELLINGS for line in each.accepted])
def test_an_accepted_spelling(spellings: Spellings, line: Accepted) -> None:
    value = spellings.type.value_of(line.text, spellings.time_format)
    assert value == line.value
    assert type(value) is PYTHON_TYPES[spellings.type.kind]
    assert str(value) == str(line.value), "the sign of zero, a decimal's scale and a time's zone are as expected too"


@pytest.mark.parametrize(("spellings", "line"), [case(each, line) for each in SPELLINGS for line in each.refused])
def test_a_refused_spelling(spellings: Spellings, line: Refused) -> None:
    with pytest.raises(ValueError, match=r"^(a|seconds|milliseconds|true)\b"):
        spellings.type.value_of(line.text, spellings.time_format)


def test_the_table_has_each_spelling_once_and_no_blank_one() -> None:
    for each in SPELLINGS:
        texts = [line.text for line in each.accepted] + [line.text for line in each.refused]
        assert len(texts) == len(set(texts)), each.title
        assert all(text.strip(BLANKS) for text in texts), each.title


def test_the_table_has_every_type_and_time_format() -> None:
    assert {data_type.kind for data_type, _ in TYPES} == set(Kind)
    assert {each.time_format for each in SPELLINGS if each.type.kind is Kind.TIMESTAMP} == set(TimeFormat)


# numbers

_numbers = st.from_regex(r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True)
_decimal_types = st.integers(1, 38).flatmap(
    lambda precision: st.builds(DataType, st.just(Kind.DECIMAL), st.just(precision), st.integers(0, precision))
)


def spellings_of(coefficient: int, scale: int) -> list[str]:
    """Some of the ways to write coefficient / 10**scale."""
    sign, digits = "-" if coefficient < 0 else "", str(abs(coefficient)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return [
        f"{coefficient}e-{scale}",
        f"{coefficient}000E-{scale + 3}",
        f"{sign}{whole}.{fraction}",
        f"{sign}000{whole}.{fraction}000",
        f"{sign}.{digits}e{len(whole)}",
        f" \t{sign}{digits}.e-{scale:04}\r\n",
    ]


@given(st.integers(-(2**31), 2**31 - 1))
def test_any_int_in_any_spelling(number: int) -> None:
    assert {INT.value_of(text) for text in (str(number), *spellings_of(number, 0))} == {number}


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_bigint_in_any_spelling(number: int) -> None:
    assert {BIGINT.value_of(text) for text in (str(number), *spellings_of(number * 100, 2))} == {number}


@given(st.sampled_from([(INT, 31), (BIGINT, 63)]), st.integers(0, 10**30), st.booleans())
def test_a_whole_number_out_of_range_is_refused(kind: tuple[DataType, int], beyond: int, negative: bool) -> None:
    data_type, bits = kind
    number = -(2**bits) - 1 - beyond if negative else 2**bits + beyond
    assert [value_or_none(data_type, text) for text in spellings_of(number, 0)] == [None] * 6


@given(_decimal_types, st.data())
def test_any_decimal_that_fits_in_any_spelling(data_type: DataType, data: st.DataObject) -> None:
    largest = 10**data_type.precision - 1
    coefficient = data.draw(st.integers(-largest, largest))
    values = {data_type.value_of(text) for text in spellings_of(coefficient, data_type.scale)}
    assert values == {Decimal(f"{coefficient}e-{data_type.scale}")}


@given(_decimal_types, st.data())
def test_a_decimal_with_a_digit_too_many_is_refused(data_type: DataType, data: st.DataObject) -> None:
    coefficient = data.draw(st.integers(1, 10**data_type.precision - 1)) * 10 + data.draw(st.integers(1, 9))
    assert {value_or_none(data_type, text) for text in spellings_of(coefficient, data_type.scale + 1)} == {None}
    too_large = 10**data_type.precision + data.draw(st.integers(0, 10**38))
    assert {value_or_none(data_type, text) for text in spellings_of(too_large, data_type.scale)} == {None}


@given(_numbers, _decimal_types)
def test_a_number_is_held_exactly_or_refused(text: str, decimal_type: DataType) -> None:
    exact = Fraction(text)
    whole, scaled = exact.denominator == 1, exact * 10**decimal_type.scale
    assert value_or_none(INT, text) == (exact if whole and -(2**31) <= exact < 2**31 else None)
    assert value_or_none(BIGINT, text) == (exact if whole and -(2**63) <= exact < 2**63 else None)
    fits = scaled.denominator == 1 and abs(scaled) < 10**decimal_type.precision
    assert value_or_none(decimal_type, text) == (exact if fits else None)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_s_own_text_comes_back(number: float) -> None:
    assert DOUBLE.value_of(repr(number)) == number


@given(st.integers(2**53, 2**63 - 1))
def test_a_large_whole_number_is_a_double_only_if_it_is_held_exactly(number: int) -> None:
    value = value_or_none(DOUBLE, str(number))
    assert value is None or value == number
    if value is None:
        assert int(float(number)) != number or len(str(number).rstrip("0")) > 17


@given(_numbers)
def test_a_double_is_the_nearest_one_or_nothing(text: str) -> None:
    value, nearest = value_or_none(DOUBLE, text), float(text)
    assert value is None or (value == nearest and math.isfinite(nearest) and (nearest != 0) == (Fraction(text) != 0))


# times

_offsets = st.integers(-18 * 60, 18 * 60)
_times = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001  bounds are naive
_fractions = st.text("0123456789", min_size=1, max_size=9)


def zone_texts(offset: int) -> list[str]:
    sign, (hours, minutes) = "-" if offset < 0 else "+", divmod(abs(offset), 60)
    zones = [f"{sign}{hours:02}:{minutes:02}", f"{sign}{hours:02}{minutes:02}"]
    zones += [f"{sign}{hours:02}"] if minutes == 0 else []
    return zones + (["Z", "z", ""] if offset == 0 else [])


@given(_times, _fractions, _offsets | st.just(0), st.sampled_from("Tt "))
def test_any_time_in_any_zone_with_any_fraction(moment: datetime, fraction: str, offset: int, between: str) -> None:
    expected = moment.replace(microsecond=int(fraction.ljust(6, "0")[:6]))
    local = (moment + timedelta(minutes=offset)).replace(tzinfo=None, microsecond=0).isoformat(between)
    values = [TIMESTAMP.value_of(f"{local}.{fraction}{zone}") for zone in zone_texts(offset)]
    assert values == [expected] * len(values)
    assert {value.tzinfo for value in values if isinstance(value, datetime)} == {UTC}


@pytest.mark.parametrize(("time_format", "unit", "kept"), [(TimeFormat.EPOCH_S, 1, 6), (TimeFormat.EPOCH_MS, 1000, 3)])
@given(data=st.data())
def test_any_time_since_1970(time_format: TimeFormat, unit: int, kept: int, data: st.DataObject) -> None:
    whole = data.draw(st.integers(-62135596799 * unit, 253402300799 * unit))
    fraction = data.draw(_fractions)
    micros = abs(whole) * 10**kept + int(fraction.ljust(kept, "0")[:kept])
    expected = EPOCH + timedelta(microseconds=-micros if whole < 0 else micros)
    assert TIMESTAMP.value_of(f"{whole}.{fraction}", time_format) == expected


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.sampled_from([TimeFormat.EPOCH_S, TimeFormat.EPOCH_MS]))
def test_a_number_is_a_time_only_within_the_years(number: int, time_format: TimeFormat) -> None:
    seconds = Fraction(number, 1 if time_format is TimeFormat.EPOCH_S else 1000)
    within = -62135596800 <= seconds < 253402300800
    assert (value_or_none(TIMESTAMP, str(number), time_format) is not None) == within


@given(st.dates())
def test_any_date(day: date) -> None:
    assert DataType(Kind.DATE).value_of(day.isoformat()) == day


# any text

_near_misses = st.text("0123456789+-.eE \t\n:TtZzyn\u0661\uff11\u00a0\x00", max_size=40)


@pytest.mark.parametrize(("data_type", "time_format"), TYPES)
@given(text=st.text() | _near_misses | _numbers)
def test_any_text_is_a_value_or_a_value_error(data_type: DataType, time_format: TimeFormat, text: str) -> None:
    value = value_or_none(data_type, text, time_format)
    assert value is None or type(value) is PYTHON_TYPES[data_type.kind]
    if isinstance(value, datetime):
        assert FIRST <= value <= LAST
        assert value.tzinfo is UTC


@pytest.mark.parametrize(("data_type", "time_format"), TYPES[1:])
@given(text=_near_misses, before=st.text(BLANKS), after=st.text(BLANKS))
def test_blanks_around_a_value_mean_nothing(
    data_type: DataType, time_format: TimeFormat, text: str, before: str, after: str
) -> None:
    assert value_or_none(data_type, f"{before}{text}{after}", time_format) == value_or_none(
        data_type, text.strip(BLANKS), time_format
    )


def test_long_texts_are_judged_at_once() -> None:
    many = "9" * 5000
    texts = [many, f"-{many}", f".{many}", f"{many}.{many}", f"{many}e9999", f"{many}x", f"{many}.{many}x", "1e9999"]
    texts += ["1e-9999", f"0.{many}e-9999", "0" * 5000, f"{'0' * 5000}1", f"1{'0' * 5000}e-5000", f"{many}:{many}"]
    texts += ["-" * 5000, "t" * 5000, f"2026-02-03T10:15:30.{many}", " " * 5000 + "x" + " " * 5000]
    start = time.perf_counter()
    for data_type, time_format in TYPES:
        for text in texts:
            value_or_none(data_type, text, time_format)
    assert time.perf_counter() - start < 2
