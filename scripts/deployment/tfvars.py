"""Values of Terraform's variable files: literals only, as Terraform itself allows no more in them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from .finding import DeployError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_-]*)
      | (?P<mark>[=\[\]{},:])""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = {"true": True, "false": False, "null": None}


def read_values(file: Path) -> dict[str, Any]:
    """The values of a .tfvars or .tfvars.json file; DeployError if it can't be understood."""
    text = file.read_text(encoding="utf-8")
    try:
        if file.suffix == ".json":
            values: dict[str, Any] = json.loads(text)
            return values
        return _Literals(text).assignments()
    except ValueError as error:
        raise DeployError(f"{file} can't be understood: {error}") from error


class _Literals:
    """Assignments, read from the left; ValueError where something else stands."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._nested: dict[str, Callable[[], Any]] = {"[": self._list, "{": self._map}

    def assignments(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self._at < len(self._tokens):
            key = self._name()
            self._expect("=")
            values[key] = self._value()
        return values

    def _value(self) -> Any:
        token = self._next()
        if token in self._nested:
            return self._nested[token]()
        if token.startswith('"'):
            return _text(token)
        if token in _WORDS:
            return _WORDS[token]
        if token[0] in "-0123456789":
            return json.loads(token)
        raise ValueError(f"{token!r} is no value")

    def _list(self) -> list[Any]:
        values = []
        while self._peek() != "]":
            values.append(self._value())
            self._skip(",")
        self._expect("]")
        return values

    def _map(self) -> dict[str, Any]:
        values = {}
        while self._peek() != "}":
            key = self._name()
            if self._next() not in {"=", ":"}:
                raise ValueError(f"no value for {key!r}")
            values[key] = self._value()
            self._skip(",")
        self._expect("}")
        return values

    def _name(self) -> str:
        token = self._next()
        if token.startswith('"'):
            return _text(token)
        if not re.match(r"[A-Za-z_]", token):
            raise ValueError(f"{token!r} is no name")
        return token

    def _peek(self) -> str:
        if self._at == len(self._tokens):
            raise ValueError("it ends too early")
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, mark: str) -> None:
        token = self._next()
        if token != mark:
            raise ValueError(f"{token!r} where {mark!r} belongs")

    def _skip(self, mark: str) -> None:
        if self._peek() == mark:
            self._at += 1


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise ValueError(f"line {line}: {text[at : at + 20]!r}")
        if match.lastgroup != "space":
            found.append(match[0])
        at = match.end()
    return found


def _text(token: str) -> str:
    """A quoted text; `$${` and `%%{` stand for `${` and `%{`, which only expressions have."""
    text: str = json.loads(token)
    return text.replace("$${", "${").replace("%%{", "%{")
