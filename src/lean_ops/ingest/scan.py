"""An exact JSON scanner (RFC 8259) for the bodies that the fast parser can't judge.

It finds the members of an object without building them, needs no recursion however deep the text nests, and
takes time in proportion to the text. Lone surrogate escapes are let through: they are well-formed JSON.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_WS: Final = r"[ \t\n\r]*+"
_OPEN_STRING: Final = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+'
_STRING: Final = rf'{_OPEN_STRING}"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_SCALAR: Final = rf"(?:{_STRING}|{_NUMBER}|true|false|null)"

_space: Final = re.compile(_WS).match
_open_string: Final = re.compile(_OPEN_STRING).match
_string: Final = re.compile(_STRING).match
_scalar: Final = re.compile(_SCALAR).match
_name: Final = re.compile(rf"({_STRING}){_WS}:{_WS}").match
# Runs are taken in one step each, so that Python sees a text's turns and not all of its tokens.
_opening_arrays: Final = re.compile(rf"(?:\[{_WS})++").match
_scalar_items: Final = re.compile(rf"(?:{_SCALAR}{_WS},{_WS})*+").match
_scalar_members: Final = re.compile(rf"(?:{_STRING}{_WS}:{_WS}{_SCALAR}{_WS},{_WS})*+").match

# Python refuses numbers of very many digits; as texts it takes them.
_standard_parse: Final = json.JSONDecoder(parse_int=str, parse_float=str).decode

_BLANKS: Final = frozenset(" \t\n\r")
_CLOSER: Final = {"[": "]", "{": "}"}
_KINDS: Final = {"[": "an array", '"': "a string", "-": "a number", **dict.fromkeys("0123456789", "a number")}


class JsonSyntaxError(ValueError):
    """The text is not a JSON object; `position` is the character where that shows."""

    def __init__(self, reason: str, position: int) -> None:
        self.reason = reason
        self.position = position
        super().__init__(f"{reason} at character {position + 1}")


class Member(NamedTuple):
    """A member of an object: its decoded name and where its value's text stands."""

    name: str
    start: int
    end: int


def members_of(text: str) -> Iterator[Member]:
    """The members of the object that `text` is, one by one; JsonSyntaxError where it stops being one."""
    at = _skip_space(text, 0)
    if text[at : at + 1] != "{":
        raise JsonSyntaxError(f"expected an object, found {_kind(text, at)}", at)
    at = _skip_space(text, at + 1)
    if text[at : at + 1] != "}":
        at = yield from _members(text, at)
    at = _skip_space(text, at + 1)
    if at != len(text):
        raise JsonSyntaxError(f"found {_found(text, at)} after the object's end", at)


def is_surely_no_json(text: str) -> bool:
    """Whether a text is no JSON at all, told sooner than the scanner could; False may still be a text that is none.

    Python's parser takes all JSON but what nests too deep for it, and a little more.
    """
    try:
        _standard_parse(text)
    except json.JSONDecodeError:
        return True
    except RecursionError:
        pass
    return False


def decode_string(text: str) -> str:
    """The value of a well-formed JSON string; lone surrogates stay in it."""
    return str(json.loads(text)) if "\\" in text else text[1:-1]


def _members(text: str, at: int) -> Generator[Member, None, int]:
    """The members from `at` on; returns where the object's closing brace stands."""
    while True:
        name = _name(text, at)
        if name is None:
            raise _no_name(text, at)
        end = _value_end(text, name.end())
        yield Member(decode_string(name[1]), name.end(), end)
        at = _skip_space(text, end)
        if text[at : at + 1] == "}":
            return at
        at = _after_comma(text, at, "{")


def _value_end(text: str, at: int) -> int:
    """Where the value that starts at `at` ends."""
    stack: list[str] = []
    while True:
        scalar = _scalar(text, at)
        if scalar:
            at = scalar.end()
        else:
            at = _open(text, at, stack)
            if text[at : at + 1] != _CLOSER[stack[-1]]:
                at = _first_value(text, at, stack[-1])
                continue
        at = _close(text, at, stack)
        if not stack:
            return at
        at = _first_value(text, _after_comma(text, at, stack[-1]), stack[-1])


def _open(text: str, at: int, stack: list[str]) -> int:
    """Put the containers that open at `at` on the stack; the position of the innermost one's content."""
    arrays = _opening_arrays(text, at)
    if arrays:
        stack.extend("[" * arrays[0].count("["))
        return arrays.end()
    if text[at : at + 1] != "{":
        raise _no_value(text, at)
    stack.append("{")
    return _skip_space(text, at + 1)


def _close(text: str, at: int, stack: list[str]) -> int:
    """Take the containers that close at `at` off the stack; the position behind them."""
    end = len(text)
    while stack:
        while at < end and text[at] in _BLANKS:
            at += 1
        if at == end or text[at] != _CLOSER[stack[-1]]:
            break
        stack.pop()
        at += 1
    return at


def _first_value(text: str, at: int, container: str) -> int:
    """Where the next value must stand: past a run of scalars and, in an object, past the value's name."""
    if container == "[":
        return _end(_scalar_items(text, at))
    at = _end(_scalar_members(text, at))
    name = _name(text, at)
    if name is None:
        raise _no_name(text, at)
    return name.end()


def _after_comma(text: str, at: int, container: str) -> int:
    """Past the comma that must stand at `at`."""
    if text[at : at + 1] != ",":
        raise JsonSyntaxError(f"expected ',' or '{_CLOSER[container]}', found {_found(text, at)}", at)
    return _skip_space(text, at + 1)


def _skip_space(text: str, at: int) -> int:
    return _end(_space(text, at))


def _end(match: re.Match[str] | None) -> int:
    """The end of a pattern that also matches nothing."""
    assert match is not None  # noqa: S101  such a pattern always matches
    return match.end()


def _no_name(text: str, at: int) -> JsonSyntaxError:
    string = _string(text, at)
    if string:
        at = _skip_space(text, string.end())
        return JsonSyntaxError(f"expected ':', found {_found(text, at)}", at)
    return _bad_string(text, at) or JsonSyntaxError(f"expected a name in double quotes, found {_found(text, at)}", at)


def _no_value(text: str, at: int) -> JsonSyntaxError:
    return _bad_string(text, at) or JsonSyntaxError(f"expected a value, found {_found(text, at)}", at)


def _bad_string(text: str, at: int) -> JsonSyntaxError | None:
    """Why the string that begins at `at` is none; nothing if no string begins there."""
    beginning = _open_string(text, at)
    if beginning is None:
        return None
    at = beginning.end()
    if at == len(text):
        return JsonSyntaxError("a string without an end", at)
    what = "a bad escape" if text[at] == "\\" else "a control character"
    return JsonSyntaxError(f"{what} in a string, {_found(text, at)}", at)


def _found(text: str, at: int) -> str:
    return repr(text[at : at + 6] if text[at : at + 1] == "\\" else text[at]) if at < len(text) else "the end"


def _kind(text: str, at: int) -> str:
    word = next((word for word in ("true", "false", "null") if text.startswith(word, at)), None)
    return word or _KINDS.get(text[at : at + 1]) or _found(text, at)
