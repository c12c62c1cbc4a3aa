"""The engine that needs nothing: random changes of seeds, in words that mean something to the target.

It does not see which code an input reached; where atheris can be had, that one runs instead.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHANGES = 6
POOL = 400


def inputs(seeds: Sequence[bytes], words: Sequence[bytes], max_bytes: int, seed: int) -> Iterator[bytes]:
    """Inputs without end; the same seed makes the same ones."""
    chance = random.Random(seed)  # noqa: S311  repeatable, not secret
    pool = list(seeds)
    yield from pool
    while True:
        data = chance.choice(pool)
        for _ in range(chance.randint(1, MAX_CHANGES)):
            data = _changed(data, pool, words, chance)[:max_bytes]
        if chance.random() < 0.02:  # some stay, so that changes add up
            position = len(seeds) + chance.randrange(POOL)
            pool[position : position + 1] = [data]
        yield data


def _changed(data: bytes, pool: Sequence[bytes], words: Sequence[bytes], chance: random.Random) -> bytes:
    at, end = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
    match chance.randrange(7):
        case 0:
            return data[:at] + chance.randbytes(1) + data[at + 1 :]
        case 1 | 2:
            return data[:at] + chance.choice(words) + data[at:]
        case 3:
            return data[:at] + chance.choice(words) + data[end:]
        case 4:
            return data[:at] + data[end:]
        case 5:
            return data[:at] + data[at:end] * chance.choice((2, 3, 50)) + data[end:]
    other = chance.choice(pool)
    return data[:at] + other[chance.randint(0, len(other)) :]
