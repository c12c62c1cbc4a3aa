"""RFC 3339 times, exactly: no week dates, no missing seconds, no guessing."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Final

_SHAPE: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))?"
).fullmatch
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_END_SECOND: Final = (date(2101, 1, 1).toordinal() - _EPOCH_DAY) * 86_400


def parse_publish_time(text: str) -> int | None:
    """Microseconds since 1970 of an RFC 3339 time in the years 1970 to 2100 (UTC); None if it is none.

    A time without a zone is UTC, digits past the microsecond are cut, and a leap second is the next one.
    """
    shape = _SHAPE(text)
    if shape is None:
        return None
    day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = shape.groups()
    start = _day_start(day)
    if start is None or hour > "23" or minute > "59" or second > "60":
        return None
    seconds = start + int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign:
        if zone_hours > "23" or zone_minutes > "59":
            return None
        offset = int(zone_hours) * 3600 + int(zone_minutes) * 60
        seconds += offset if sign == "-" else -offset
    if not 0 <= seconds < _END_SECOND:
        return None
    return seconds * 1_000_000 + (int(fraction[:6].ljust(6, "0")) if fraction else 0)


@lru_cache(maxsize=4096)
def _day_start(day: str) -> int | None:
    """The second at which a day starts; messages share few days, so each is worked out once."""
    try:
        return (date.fromisoformat(day).toordinal() - _EPOCH_DAY) * 86_400
    except ValueError:
        return None
