"""JSON objects as texts, spelled in every way that is allowed: the same seed makes the same ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

_KEYS = ["a", "b", "A", "a.b", "", "é", "/", "~", "k\\n", "\\u0061", "\\u00e9", "_metadata", '\\"', "日本", "\\/", "😀"]
_METADATA_KEYS = ["idempotencyKeyResource", "idempotency_key", "periodReference", "correlationId", "other"]
_TEXTS = ["", "k", "2026-02", "9", "x y", "é", "\\u00e9", "\\ud83d\\ude00", "😀", "\\\\", '\\"', "\\/", "\\b\\f\\r\\t"]
_TEXTS += ["\\u0000", "\\u001f", "\\u007f", "\x7f", "\\u2028", "a\\u0041", '{\\"b\\":1}', "[", "\\\\u0041", "x" * 300]
_NUMBERS = ["0", "-0", "1", "-1.50", "1e5", "1E+5", "0.10e-7", "12345678901234567890", "9" * 60, "1e400"]
_BLANKS = ["", "", "", "", "", " ", "\n", "\t ", "\r\n  "]


class _Texts:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311  repeatable, not secret

    def object(self, depth: int, keys: list[str] = _KEYS) -> str:
        """An object; sometimes a key is in it twice."""
        chance = self._chance
        names = [chance.choice(keys) for _ in range(chance.choice([0, 1, 2, 2, 3, 6]))]
        if chance.random() < 0.8:
            names = list(dict.fromkeys(names))
        return self._inside("{", [self._member(name, depth) for name in names], "}")

    def _member(self, name: str, depth: int) -> str:
        value = self.object(depth - 1, _METADATA_KEYS) if name == "_metadata" and depth else self._value(depth)
        return f'"{name}"{self._blank()}:{self._blank()}{value}'

    def _inside(self, before: str, items: list[str], after: str) -> str:
        spaced = [f"{self._blank()}{item}{self._blank()}" for item in items]
        return before + (",".join(spaced) or self._blank()) + after

    def _value(self, depth: int) -> str:
        kind = self._chance.randrange(10 if depth > 0 else 7)
        if kind < 3:
            return f'"{"".join(self._chance.choices(_TEXTS, k=self._chance.choice([0, 1, 1, 2])))}"'
        if kind < 5:
            return self._chance.choice(_NUMBERS)
        if kind < 7:
            return self._chance.choice(["true", "false", "null", "{}", "[]"])
        if kind == 7:
            return self._inside("[", [self._value(depth - 1) for _ in range(self._chance.randrange(4))], "]")
        return self.object(depth - 1)

    def _blank(self) -> str:
        return self._chance.choice(_BLANKS)


def json_objects(seed: int) -> Iterator[bytes]:
    """Objects without end, up to nine levels deep; each is valid JSON."""
    texts = _Texts(seed)
    depths = random.Random(seed)  # noqa: S311  repeatable, not secret
    while True:
        yield texts.object(depths.randrange(9)).encode()
