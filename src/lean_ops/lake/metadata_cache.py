"""Metadata files that were read once: they never change, so a table that did not move need not be read again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

_KEPT: Final = 3_000  # seven hundred topics with three tables each, and what they share
_KEPT_BYTES: Final = 128 * 1024 * 1024  # of the files; as objects they take a few times that


class MetadataCache:
    """The newest metadata by location; safe to share between threads.

    A file that was altered, cut off or removed since is not the one that was read, and is read anew.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, tuple[tuple[int, int], TableMetadata]] = OrderedDict()
        self._bytes = 0

    def get(self, location: str) -> TableMetadata | None:
        """The metadata that the file at this location holds, if it was read and is still the same file."""
        with self._guard:
            found = self._kept.get(location)
            if found is not None:
                self._kept.move_to_end(location)
        return found[1] if found is not None and found[0] == _state(location) else None

    def put(self, location: str, metadata: TableMetadata, previous: str | None = None) -> None:
        """Keep what a file holds; `previous` is the location that it takes the place of."""
        state = _state(location)
        if state is None:
            return
        with self._guard:
            for old in (previous, location):
                self._forget(old)
            self._kept[location] = (state, metadata)
            self._bytes += state[0]
            while len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES:
                self._forget(next(iter(self._kept)))

    def _forget(self, location: str | None) -> None:
        found = self._kept.pop(location, None) if location else None
        self._bytes -= found[0][0] if found else 0


def _state(location: str) -> tuple[int, int] | None:
    """What tells whether a file is still the same; None if it can't be told."""
    try:
        facts = Path(unquote(urlsplit(location).path)).stat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns
