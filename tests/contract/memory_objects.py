"""Objects in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from lean_ops.aws.objects import MissingObjectError


class MemoryObjects:
    """What a bucket would keep."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, key: str, content: IO[bytes]) -> None:
        self.kept[key] = content.read()

    def add(self, key: str, content: IO[bytes]) -> bool:
        read = content.read()
        return self.kept.setdefault(key, read) is read

    @contextmanager
    def opened(self, key: str) -> Iterator[IO[bytes]]:
        if key not in self.kept:
            raise MissingObjectError("there is no such object", where=key)
        yield io.BytesIO(self.kept[key])

    def keys(self, prefix: str) -> Iterator[str]:
        yield from sorted(key for key in self.kept if key.startswith(prefix))
