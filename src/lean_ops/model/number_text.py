"""Texts that stand for numbers. Digits are counted before anything is converted, so nothing is ever rounded to fit.

A number is written with ASCII digits, an optional sign, an optional point and an optional exponent: `12`, `-1.50`,
`.5`, `5.`, `1e5`. Zeros that carry no value do not count as digits.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

_NUMBER: Final = re.compile(
    r"(?P<sign>[+-]?)(?=\.?[0-9])(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?:[eE](?P<exponent>[+-]?[0-9]{1,4}))?"
)
# Seventeen digits tell any two doubles apart. Fifteen survive the way into a double and back; past them a whole
# number that is written out is somebody's identifier as likely as a measure, and must not become its neighbour.
# With an exponent it is the shortest text of a double, which comes back as that double.
_MAX_DOUBLE_DIGITS: Final = 17
_SAFE_DOUBLE_DIGITS: Final = 15
_BIGINT_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class NumberText:
    """A number by its significant digits: `-1.50e3` is sign `-`, digits `15`, exponent 2; zero has no digits."""

    sign: str
    digits: str
    exponent: int

    @property
    def whole_digits(self) -> int:
        """How many digits stand before the point when it is written out."""
        return max(0, len(self.digits) + self.exponent)

    @property
    def fraction_digits(self) -> int:
        """How many digits stand after the point when it is written out."""
        return max(0, -self.exponent)

    def scaled(self, scale: int) -> str:
        """The whole number that is 10**scale times this one, written out; there must be room for its fraction."""
        return f"{self.sign if self.digits else ''}{self.digits or '0'}{'0' * (self.exponent + scale)}"


def parse_number(text: str) -> NumberText | None:
    """The number that a text stands for, or None if it stands for none."""
    parts = _NUMBER.fullmatch(text)
    if parts is None:
        return None
    fraction = parts["fraction"] or ""
    written = parts["whole"] + fraction
    shortened = written.rstrip("0")
    exponent = int(parts["exponent"] or 0) - len(fraction) + len(written) - len(shortened)
    digits = shortened.lstrip("0")
    return NumberText(parts["sign"].replace("+", ""), digits, exponent if digits else 0)


def read_whole(text: str, bits: int) -> int:
    """A whole number that a signed integer of so many bits holds; ValueError with what is expected."""
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    number = parse_number(text)
    # Counted first: 1e9999 needs no converting to be too large.
    if number is not None and not number.fraction_digits and number.whole_digits <= len(str(highest)):
        value = int(number.scaled(0))
        if lowest <= value <= highest:
            return value
    raise ValueError(f"a whole number from {lowest} to {highest}")


def read_decimal(text: str, precision: int, scale: int) -> Decimal:
    """The exact value with `scale` digits after the point; ValueError with what is expected."""
    number = parse_number(text)
    if number is None or number.whole_digits > precision - scale or number.fraction_digits > scale:
        raise ValueError(
            f"a decimal number with at most {precision - scale} digits before the point and {scale} after it"
        )
    return Decimal(f"{number.scaled(scale)}e-{scale}")


def read_double(text: str) -> float:
    """The nearest double, where that loses no digits; ValueError with what is expected."""
    number = parse_number(text)
    if number is not None and len(number.digits) <= _MAX_DOUBLE_DIGITS:
        value = float(f"{number.sign}{number.digits or '0'}e{number.exponent}")
        is_written_out = "e" not in text.lower()
        if _is_within_reach(value, number) and (not is_written_out or _is_exact_where_asked(value, number)):
            return value
    raise ValueError(
        f"a number that a DOUBLE holds: finite, at most {_MAX_DOUBLE_DIGITS} digits, large whole numbers exactly"
    )


def _is_within_reach(value: float, number: NumberText) -> bool:
    """Neither too large for a double nor so small that nothing is left of it."""
    return math.isfinite(value) and (value != 0 or not number.digits)


def _is_exact_where_asked(value: float, number: NumberText) -> bool:
    """Whole numbers past the digits that are always safe, as far as a BIGINT goes, are held exactly."""
    if number.fraction_digits or len(number.digits) <= _SAFE_DOUBLE_DIGITS:
        return True
    try:
        return read_whole(f"{number.digits}e{number.exponent}", _BIGINT_BITS) == abs(value)
    except ValueError:
        return True
