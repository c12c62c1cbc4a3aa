"""What the parsers must say, worked out another way: by the standard library, or by rules written to be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = frozenset("0123456789")


class Text(str):
    """A number of the judge, by its text: equal to the text, but not to a string."""

    __slots__ = ()


class Unknown(Exception):  # noqa: N818  no fault: the judge can't say
    """The judge itself gives up: nesting or digits past what the standard library follows."""


def _refuse(name: str) -> None:
    raise ValueError(name)


def json_value(text: str) -> Any:
    """A text's value by the exact rules of JSON, numbers as Text; ValueError if it is none."""
    try:
        return json.loads(text, parse_int=Text, parse_float=Text, parse_constant=_refuse)
    except RecursionError:
        raise Unknown from None


def json_object(text: str) -> dict[str, Any] | None:
    """The object that a text is, of double keys the last; None if it is anything else."""
    try:
        value = json_value(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class _Pairs(list[Any]):
    """An object by its keys and values, double ones included: what is overwritten was written all the same."""


def _pairs(members: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs(part for member in members for part in member)


def _written(text: str) -> Iterator[tuple[Any, int]]:
    """Everything that stands in a JSON text, with its depth."""
    waiting = [(json.loads(text, parse_int=Text, parse_float=Text, object_pairs_hook=_pairs), 1)]
    while waiting:
        item, depth = waiting.pop()
        yield item, depth
        if isinstance(item, list):
            waiting.extend((part, depth + 1) for part in item)


def has_lone_surrogate(text: str) -> bool:
    """Whether a string anywhere in a JSON text, or a key, is no text."""
    strings = (item for item, _ in _written(text) if isinstance(item, str))
    return any("\ud800" <= character <= "\udfff" for string in strings for character in string)


def nesting(text: str) -> int:
    """How many containers of a JSON text stand inside each other."""
    return max((depth for item, depth in _written(text) if isinstance(item, list)), default=0)


def most_digits(value: Any) -> int:
    """The digits of a value's longest number."""
    most, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Text):
            most = max(most, sum(character in _DIGITS for character in item))
        elif isinstance(item, dict | list):
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return most


def leaves(value: dict[str, Any], depth: int = 1) -> dict[tuple[str, ...], Any]:
    """A payload's leaves by their keys: objects are opened down to the fifth key, null is nothing."""
    found: dict[tuple[str, ...], Any] = {}
    for key, item in value.items():
        if isinstance(item, dict) and item and depth < 5:
            found |= {(key, *rest): leaf for rest, leaf in leaves(item, depth + 1).items()}
        elif item is not None:
            found[(key,)] = item
    return found


def lines(content: bytes) -> list[bytes | None]:
    """The lines of a file without their ends, None for a blank one; a byte-order mark at the beginning is none's."""
    parts = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    parts = parts if parts[-1] else parts[:-1]
    bodies = [part.removesuffix(b"\r") for part in parts]
    return [body if body.strip() else None for body in bodies]


def publish_time(text: str) -> int | None:
    """Microseconds since 1970 of an RFC 3339 time in the years 1970 to 2100; the fields are cut out by hand."""
    day, clock, rest = text[:10], text[11:19], text[19:]
    shape = "".join("9" if character in _DIGITS else character for character in day + clock)
    if shape != "9999-99-9999:99:99" or text[10:11] not in {"T", "t", " "}:
        return None
    fraction = ""
    if rest[:1] == ".":
        fraction = rest[1:][: next((at for at, c in enumerate(rest[1:]) if c not in _DIGITS), len(rest))]
        rest = rest[1 + len(fraction) :]
        if not fraction:
            return None
    offset = _offset(rest)
    return None if offset is None else _moment(day, clock, fraction, offset)


def _offset(zone: str) -> timedelta | None:
    if zone in {"", "Z", "z"}:
        return timedelta(0)
    shape = "".join("9" if character in _DIGITS else character for character in zone)
    if shape not in {"+99:99", "-99:99"} or int(zone[1:3]) > 23 or int(zone[4:]) > 59:
        return None
    size = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    return -size if zone[0] == "-" else size


def _moment(day: str, clock: str, fraction: str, offset: timedelta) -> int | None:
    hours, minutes, seconds = map(int, clock.split(":"))
    if hours > 23 or minutes > 59 or seconds > 60:
        return None
    try:
        start = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        moment = start + timedelta(hours=hours, minutes=minutes, seconds=seconds) - offset
    except (ValueError, OverflowError):
        return None
    if not EPOCH <= moment < datetime(2101, 1, 1, tzinfo=UTC):
        return None
    return (moment - EPOCH) // timedelta(microseconds=1) + int((fraction + "000000")[:6])


def number(text: str) -> Fraction | None:
    """The exact number that a text stands for; None if it is none, or has an exponent of more than four digits."""
    mantissa, marker, exponent = text.replace("E", "e").partition("e")
    unsigned = exponent[1:] if exponent[:1] in {"+", "-"} else exponent
    if marker and not (0 < len(unsigned) <= 4 and set(unsigned) <= _DIGITS):
        return None
    digits = mantissa[1:] if mantissa[:1] in {"+", "-"} else mantissa
    whole, _, fraction = digits.partition(".")
    if not (whole + fraction) or not set(whole + fraction) <= _DIGITS:
        return None
    if len(whole + fraction) > 4000:
        raise Unknown
    value = Fraction(int(whole + fraction), 10 ** len(fraction)) * Fraction(10) ** int(exponent or 0)
    return -value if mantissa[0] == "-" else value
