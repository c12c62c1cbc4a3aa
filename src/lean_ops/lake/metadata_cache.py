"""Metadata files that were read once: they never change, so a table that did not move need not be read again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.typedef import Identifier

_KEPT: Final = 3_000  # seven hundred topics with three tables each, and what they share
_KEPT_BYTES: Final = 96 * 1024 * 1024  # of the files; as objects they take six times that


@dataclass(frozen=True, slots=True)
class _Known:
    """What a metadata file held when it was read, and what told it from any other then."""

    location: str
    state: tuple[int, int]
    metadata: TableMetadata


class MetadataCache:
    """The newest metadata of each table; safe to share between threads.

    A file that was altered, cut off or removed since is not the one that was read, and is read anew. Other processes
    commit, too, Spark's among them: so the metadata is kept by table, and the next one takes the place of the last.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._kept: OrderedDict[Identifier, _Known] = OrderedDict()
        self._bytes = 0

    def get(self, table: Identifier, location: str) -> TableMetadata | None:
        """The metadata that the file at this location holds, if it was read last and is still the same file."""
        with self._guard:
            known = self._kept.get(table)
            if known is not None:
                self._kept.move_to_end(table)
        return known.metadata if known and (known.location, known.state) == (location, _state(location)) else None

    def newest(self, table: Identifier) -> TableMetadata | None:
        """What was read last of a table, wherever that is by now."""
        with self._guard:
            known = self._kept.get(table)
        return known.metadata if known else None

    def put(self, table: Identifier, location: str, metadata: TableMetadata) -> None:
        """Keep what a table's newest file holds, in the place of the one before."""
        state = _state(location)
        with self._guard:
            self._forget(table)
            if state is None:
                return
            self._kept[table] = _Known(location, state, metadata)
            self._bytes += state[0]
            while len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES:
                self._forget(next(iter(self._kept)))

    def _forget(self, table: Identifier) -> None:
        known = self._kept.pop(table, None)
        self._bytes -= known.state[0] if known else 0


def _state(location: str) -> tuple[int, int] | None:
    """What tells whether a file is still the same; None if it can't be told."""
    try:
        facts = Path(unquote(urlsplit(location).path)).stat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns
