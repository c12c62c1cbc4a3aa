"""The reference for the kernel: a payload's text to a JSON object by the standard parser, or why it is none."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

MAX_NESTING: Final = 200
MAX_NUMBER_DIGITS: Final = 4300

# A string literal (also one that never ends), or a bracket; possessive, so hostile text can't make it slow.
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]', re.DOTALL)
# Looked for only where such a run begins: from each of its characters on, a megabyte of digits would take seconds.
_LONG_NUMBER: Final = re.compile(rf"(?<![0-9.eE+-])-?[0-9][0-9.eE+-]{{{MAX_NUMBER_DIGITS},}}")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a payload is not an object: the parse_errors row's type and message."""

    error_type: str
    message: str


class _NotJsonError(ValueError):
    """Text that the parser took but JSON does not allow, or that is past our bounds."""


def _refuse_constant(name: str) -> None:
    raise _NotJsonError(f"{name} is not a JSON value")


_decode: Final = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse_constant).decode


def parse_payload(payload: bytes | None) -> dict[str, Any] | Refusal:
    """The payload's object, numbers as Number; of duplicate keys the last one. Never raises for any bytes."""
    if payload is None or not payload.strip():
        return Refusal("EMPTY_PAYLOAD", "the payload is " + ("NULL" if payload is None else "empty or blank"))
    try:
        text = payload.decode()
        _check_nesting(text)
        value = _decode(text)
        _check_surrogates(text)
        _check_numbers(text, value)
    except json.JSONDecodeError as error:
        return Refusal("INVALID_JSON", _explain(error))
    except UnicodeDecodeError as error:
        return Refusal("INVALID_JSON", f"not UTF-8: {error.reason} at byte {error.start}")
    except _NotJsonError as error:
        return Refusal("INVALID_JSON", str(error))
    if not isinstance(value, dict):
        return Refusal("NOT_AN_OBJECT", f"valid JSON, but {_kind_of(value)}, not an object")
    return value


def _explain(error: json.JSONDecodeError) -> str:
    if error.doc.startswith("\ufeff"):
        return "a byte-order mark stands before the JSON text"
    return f"{error.msg}: line {error.lineno} column {error.colno} (character {error.pos})"


def _check_nesting(text: str) -> None:
    """Refuse nesting that the parser must not follow; a rare payload has enough brackets to be looked at."""
    if text.count("{") + text.count("[") <= MAX_NESTING:
        return
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        first = text[token.start()]
        if first in "{[":
            depth += 1
            if depth > MAX_NESTING:
                raise _NotJsonError(f"nested deeper than {MAX_NESTING} levels at character {token.start()}")
        elif first != '"':
            depth -= 1


def _check_surrogates(text: str) -> None:
    """Refuse half of a surrogate pair: it is no character and can't be stored as text."""
    if "\\u" not in text:
        return
    high: re.Match[str] | None = None
    for escape in _ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else 0
        is_low = 0xDC00 <= code < 0xE000
        completes = is_low and high is not None and high.end() == escape.start()
        if not completes and (is_low or high is not None):
            raise _NotJsonError(f"a lone surrogate near character {(high or escape).start()}")
        high = escape if 0xD800 <= code < 0xDC00 else None
    if high is not None:
        raise _NotJsonError(f"a lone surrogate near character {high.start()}")


def _check_numbers(text: str, value: Any) -> None:
    """Refuse numbers that no reader could take."""
    if len(text) <= MAX_NUMBER_DIGITS or not _LONG_NUMBER.search(text):
        return
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Number) and sum(map(str.isdigit, item)) > MAX_NUMBER_DIGITS:
            raise _NotJsonError(f"a number of more than {MAX_NUMBER_DIGITS} digits: {item[:20]}…")
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _kind_of(value: Any) -> str:
    names = {Number: "a number", str: "a string", bool: "a boolean", list: "an array"}
    return names.get(type(value), "null")


_quote: Final = json.encoder.encode_basestring
_CONSTANTS: Final = {True: "true", False: "false", None: "null"}


def compact_text(value: Any) -> str:
    """A parsed value as compact JSON: key order and number text as they came."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(key)}:{compact_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact_text, value)) + "]"
    return _CONSTANTS[value]
