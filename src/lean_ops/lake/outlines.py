"""Outlines of tables: what an idle run and `status` ask of a table, without reading its whole history every time.

A metadata file never changes, so what was once read off it stays true. Outlines are kept in a file beside the
catalog, each with its metadata file's place, size and time: another place, or a file that somebody touched, is
read anew. The file is a cache and nothing else: when it is lost, locked or damaged, answers take longer.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from lean_ops.lake.metadata_file import damaged_metadata, metadata_path
from lean_ops.lake.snapshots import Outline, TableCheckpoint

if TYPE_CHECKING:
    from pathlib import Path

# A number for the form: what an older release kept in another one is left alone.
_TABLE: Final = "outlines_1"
_BUSY_SECONDS: Final = 0.5  # others have it for milliseconds; reading the metadata takes not much longer


class _Kept(NamedTuple):
    """An outline as text, and the metadata file that it was read off."""

    location: str
    size: int
    changed_ns: int
    outline: str


class Outlines:
    """The outlines of one home. Reading keeps what is new in memory, `keep` in the file. Safe to share."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._guard = threading.Lock()
        self._new: dict[str, _Kept] = {}

    def outline(self, table: str, location: str) -> Outline:
        """A table's outline; TerminalError if its metadata file is missing or can't be understood."""
        path = metadata_path(table, location)
        try:
            found = path.stat()
        except OSError as error:
            raise damaged_metadata(table, location, error) from error
        kept = self._new.get(table) or self._kept.get(table)
        if kept is not None and kept[:3] == (location, found.st_size, found.st_mtime_ns):
            return _from_text(kept.outline)
        from lean_ops.lake.outline_reader import read_outline

        outline = read_outline(table, path)
        self._new[table] = _Kept(location, found.st_size, found.st_mtime_ns, _to_text(outline))
        return outline

    def keep(self) -> None:
        """Write down what is new; nobody has to know if that can't be done, because it only saves time."""
        with self._guard:
            new, self._new = self._new, {}
            if not new:
                return
            self._kept.update(new)
            try:
                self._write(new)
            except sqlite3.OperationalError:  # locked, full or not to be written
                return
            except sqlite3.DatabaseError:  # damaged: the next one is made anew
                with suppress(OSError):
                    self._file.unlink()

    @cached_property
    def _kept(self) -> dict[str, _Kept]:
        """What the file has, read once."""
        if not self._file.is_file():
            return {}
        try:
            address = f"{self._file.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)) as db:
                rows = db.execute(f"SELECT * FROM {_TABLE}")  # noqa: S608  our own name
                return {name: _Kept(*values) for name, *values in rows}
        except sqlite3.Error:
            return {}

    def _write(self, new: dict[str, _Kept]) -> None:
        with closing(sqlite3.connect(self._file, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
            # Nothing is lost with it, so it need not wait for the disk, nor leave a journal behind.
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA journal_mode = MEMORY")
            db.execute(
                f"CREATE TABLE IF NOT EXISTS {_TABLE} (name TEXT PRIMARY KEY, location TEXT NOT NULL,"
                " size INTEGER NOT NULL, changed_ns INTEGER NOT NULL, outline TEXT NOT NULL)"
            )
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                f"INSERT OR REPLACE INTO {_TABLE} VALUES (?, ?, ?, ?, ?)",  # noqa: S608  our own name
                [(name, *kept) for name, kept in new.items()],
            )
            db.execute("COMMIT")


def _to_text(outline: Outline) -> str:
    checkpoint = outline.checkpoint
    published = None if checkpoint is None else (checkpoint.batch_id, checkpoint.to_snapshot)
    return json.dumps((outline.head, outline.rows, published, outline.checkpoint_ms))


def _from_text(text: str) -> Outline:
    head, rows, published, checkpoint_ms = json.loads(text)
    return Outline(head, rows, TableCheckpoint(*published) if published else None, checkpoint_ms)
