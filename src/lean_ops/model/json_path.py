"""JSON paths: the way from a payload's root to one value, as schemas write it and as columns remember it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_KEYS: Final = 5
_SEGMENT: Final = re.compile(
    r"""\.(?P<bare>[^.\[\]'"*\s]+)"""
    r"""|\['(?P<single>(?:[^'\\]|\\['"\\])*)'\]"""
    r"""|\["(?P<double>(?:[^"\\]|\\['"\\])*)"\]"""
)
_ESCAPED: Final = re.compile(r"""\\(['"\\])""")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_json_path(text: str) -> tuple[str, ...]:
    """The keys of `$.a.b` or `$['odd key']`; ValueError with the reason if it can't name a Standardized column."""
    if not text.startswith("$"):
        raise ValueError("a JSON path starts with '$'")
    keys: list[str] = []
    position = 1
    while position < len(text):
        segment = _SEGMENT.match(text, position)
        if segment is None:
            raise ValueError(_what_is_wrong(text[position:], position))
        keys.append(_key(segment))
        position = segment.end()
    if not 0 < len(keys) <= MAX_KEYS:
        raise ValueError(
            f"a JSON path has 1 to {MAX_KEYS} keys: what lies deeper stays JSON text in the fifth key's column"
        )
    return tuple(keys)


def _key(segment: re.Match[str]) -> str:
    if segment["bare"] is not None:
        return segment["bare"]
    quoted = segment["single"] if segment["single"] is not None else segment["double"]
    return _ESCAPED.sub(r"\1", quoted)


def _what_is_wrong(rest: str, position: int) -> str:
    if re.match(r"\[-?\d", rest):
        return f"an array has no columns of its own, so no path leads into it (character {position + 1})"
    return f"a key is '.name' or ['any name'], without wildcards or filters (character {position + 1})"


def format_json_path(keys: Iterable[str | int]) -> str:
    """The path that `parse_json_path` reads back; positions in a list appear as `[0]`."""
    return "$" + "".join(map(_segment, keys))


def _segment(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    return "['" + key.replace("\\", "\\\\").replace("'", "\\'") + "']"


def json_pointer(keys: Iterable[str]) -> str:
    """The RFC 6901 pointer of the same keys: what a Standardized column's doc holds."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)
