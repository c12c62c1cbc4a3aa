"""JSON as a person wrote it: numbers keep their text, and what a lenient reader would hide is a problem."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from lean_ops.model.problem import Problem

MAX_BYTES: Final = 1024 * 1024
# Far more than any schema needs, and little enough for everything that looks at the data to follow it down.
MAX_NESTING: Final = 64
_SHOWN_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number by its text: 1.10 stays 1.10."""

    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A file's data, and what is wrong with it as JSON; without data it could not be read at all."""

    data: Any
    problems: tuple[Problem, ...]


class _Pairs(list[tuple[str, Any]]):
    """An object's members as they stand in the text, double ones included."""


class _TooDeepError(Exception):
    """Containers inside containers, past the bound."""


def read_document(content: str | bytes) -> Document:
    """The JSON document in `content`, with the place of every key given twice."""
    try:
        return _checked(_read(content))
    except UnicodeError as error:
        return _unreadable("the file is not UTF-8 text", str(error))
    except (RecursionError, _TooDeepError):
        return _unreadable("the file is nested too deep", f"more than {MAX_NESTING} levels")
    except ValueError as error:
        return _unreadable("the file is not JSON", str(error))


def _read(content: str | bytes) -> Any:
    size = len(content.encode() if isinstance(content, str) else content)
    if size > MAX_BYTES:
        raise ValueError(f"{size} bytes; a schema file has at most {MAX_BYTES}")
    text = content.decode() if isinstance(content, bytes) else content
    if text.startswith("\ufeff"):
        raise ValueError("a byte-order mark before the first character; save the file without it")
    return json.loads(
        text, object_pairs_hook=_Pairs, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _checked(value: Any) -> Document:
    problems: list[Problem] = []
    return Document(_plain(value, (), problems), tuple(problems))


def _plain(value: Any, keys: tuple[str | int, ...], problems: list[Problem]) -> Any:
    if len(keys) > MAX_NESTING:
        raise _TooDeepError
    if isinstance(value, _Pairs):
        return _plain_object(value, keys, problems)
    if isinstance(value, list):
        return [_plain(item, (*keys, position), problems) for position, item in enumerate(value)]
    if isinstance(value, str):
        value.encode()  # a lone surrogate raises here: it could be neither stored nor found in a payload
    return value


def _plain_object(pairs: _Pairs, keys: tuple[str | int, ...], problems: list[Problem]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        key.encode()
        if key in result:
            problems.append(Problem((*keys, key), "this key is given twice", expected="each key once"))
        result[key] = _plain(value, (*keys, key), problems)
    return result


def _unreadable(message: str, found: str) -> Document:
    return Document(None, (Problem((), message, found, "one JSON object in UTF-8"),))


def shown(value: Any) -> str:
    """A found value as JSON text, cut to a line."""
    text = _json_text(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _json_text(value: Any) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, list):
        return f"[{', '.join(map(_json_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_json_text(item)}" for key, item in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
