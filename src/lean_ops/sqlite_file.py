"""The home's SQLite files: opened to be read wherever they lie, and what their errors mean to a person."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError

if TYPE_CHECKING:
    from pathlib import Path

BUSY_SECONDS: Final = 30
_RESTORE: Final = "Restore the file from a backup"
# By the beginning of SQLite's own name of an error: whether it passes, what it means, and what to do.
_MEANINGS: Final[dict[str, tuple[type[LeanOpsError], str, str]]] = {
    "SQLITE_BUSY": (TransientError, "another process keeps it locked", "Do the same again once that one is done."),
    "SQLITE_LOCKED": (TransientError, "another process keeps it locked", "Do the same again once that one is done."),
    "SQLITE_FULL": (TransientError, "the disk is full", "Free some room and do the same again."),
    "SQLITE_IOERR": (
        TransientError,
        "the disk does not do its part, or is full",
        "Free some room and do the same again.",
    ),
    "SQLITE_READONLY": (TerminalError, "it can't be written", "Make the home a folder that you can write to."),
    "SQLITE_CANTOPEN": (TerminalError, "it can't be opened", "Make the home a folder that you can read and write."),
    "SQLITE_CORRUPT": (TerminalError, "it is damaged", f"{_RESTORE}."),
    "SQLITE_NOTADB": (TerminalError, "it is damaged", f"{_RESTORE}."),
}


def open_to_read(file: Path) -> sqlite3.Connection:
    """A connection that only reads, also where nothing can be written: there SQLite must be told not to try."""
    immutable = "" if can_be_written(file) or _has_open_log(file) else "&immutable=1"
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro{immutable}", uri=True, timeout=BUSY_SECONDS)


def use_wal(connection: sqlite3.Connection) -> None:
    """Go over to write-ahead logging, which stays with the file: readers never wait for a writer.

    Unlike other statements this one does not wait by itself for who is faster.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def can_be_written(file: Path) -> bool:
    """Whether SQLite could write the file, which needs its folder too."""
    return os.access(file.parent, os.W_OK) and (not file.exists() or os.access(file, os.W_OK))


def _has_open_log(file: Path) -> bool:
    """Whether commits lie beside the file: an immutable one would be read without them."""
    log = file.with_name(f"{file.name}-wal")
    return log.exists() and log.stat().st_size > 0


def database_error(file: Path, error: sqlite3.Error, remedy_if_damaged: str | None = None) -> LeanOpsError:
    """An error of one of the home's databases in words; `remedy_if_damaged` is another way than a backup."""
    name: str = getattr(error, "sqlite_errorname", "")
    for beginning, (kind, what, remedy) in _MEANINGS.items():
        if name.startswith(beginning):
            more = f"{_RESTORE}; {remedy_if_damaged}" if remedy_if_damaged and what == "it is damaged" else remedy
            return kind(what, where=str(file), found=str(error), remedy=more)
    remedy = "`lean-ops doctor` looks at disk, home, catalog and state."
    return TerminalError("the database can't be used", where=str(file), found=str(error), remedy=remedy)
