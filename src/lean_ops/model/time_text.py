"""Texts that stand for dates and times. All times are UTC with microseconds, in the years 0001 to 9999."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE: Final = re.compile(_DAY)
# Ranges are spelled out: what `fromisoformat` accepts (24:00, offsets of 23 hours) differs between Python's versions.
_ISO_TIME: Final = re.compile(
    rf"(?P<day>{_DAY})[Tt ](?P<minute>(?:[01][0-9]|2[0-3]):[0-5][0-9])"
    r"(?::(?P<second>[0-5][0-9])(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?:[Zz]|(?P<offset>[+-](?:(?:0[0-9]|1[0-7])(?::?[0-5][0-9])?|18(?::?00)?)))?"
)
_SINCE_EPOCH: Final = re.compile(r"(?P<whole>[+-]?[0-9]{1,18})(?:\.(?P<fraction>[0-9]{1,9}))?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS: Final = "in the years 0001 to 9999"


def read_date(text: str) -> date:
    """A day of the calendar; ValueError with what is expected."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError("a date as 2026-02-03")


def read_iso_time(text: str) -> datetime:
    """A time with its date, UTC if it names no zone; ValueError with what is expected."""
    parts = _ISO_TIME.fullmatch(text)
    try:
        if parts:
            second, fraction = parts["second"] or "00", _cut(parts["fraction"], 6)
            local = f"{parts['day']}T{parts['minute']}:{second}.{fraction}{_zone(parts['offset'])}"
            return datetime.fromisoformat(local).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"a time as 2026-02-03T10:15:30Z, {_YEARS}")


def read_epoch_seconds(text: str) -> datetime:
    """Seconds since 1970; ValueError with what is expected."""
    return _since_epoch(text, 6, "seconds since 1970 as 1770113730")


def read_epoch_milliseconds(text: str) -> datetime:
    """Milliseconds since 1970; ValueError with what is expected."""
    return _since_epoch(text, 3, "milliseconds since 1970 as 1770113730120")


def _since_epoch(text: str, fraction_digits: int, expected: str) -> datetime:
    """A number of units, of which so many fraction digits make microseconds."""
    parts = _SINCE_EPOCH.fullmatch(text)
    try:
        if parts:
            # The sign stands before the cut digits, so a time before 1970 is cut toward 1970 like any other.
            return _EPOCH + timedelta(microseconds=int(parts["whole"] + _cut(parts["fraction"], fraction_digits)))
    except OverflowError:
        pass
    raise ValueError(f"{expected}, {_YEARS}")


def _cut(fraction: str | None, digits: int) -> str:
    """A fraction with exactly so many digits; what is past them is dropped, never rounded."""
    return (fraction or "").ljust(digits, "0")[:digits]


def _zone(offset: str | None) -> str:
    """`+05`, `+0530` and `+05:30` in the last one's form; no offset is UTC."""
    if offset is None:
        return "+00:00"
    return f"{offset[:3]}:{offset[3:].removeprefix(':') or '00'}"
