"""The home's state file: its tables, a connection for each thread, and transactions."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from lean_ops.sqlite_file import BUSY_SECONDS, can_be_written, database_error, open_to_read, use_wal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS checkpoints (
    pipeline_id TEXT PRIMARY KEY, checkpoint_type TEXT NOT NULL, last_snapshot_id INTEGER,
    last_ingestion_ts INTEGER, updated_at TEXT NOT NULL, intent TEXT, failures INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS locks (
    topic_name TEXT PRIMARY KEY, owner TEXT, fence INTEGER NOT NULL, expires_at TEXT);
CREATE TABLE IF NOT EXISTS settlements (topic_name TEXT PRIMARY KEY, snapshot_id INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS rebuilds (topic_name TEXT PRIMARY KEY, note TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS schema_registry (
    topic_name TEXT PRIMARY KEY, processing_enabled INTEGER NOT NULL, status TEXT NOT NULL, flow TEXT NOT NULL,
    flow_reason TEXT, schema_version TEXT, curated INTEGER NOT NULL DEFAULT 0, schema_path TEXT, error_path TEXT,
    last_error TEXT, source_name TEXT, updated_at TEXT);
CREATE TABLE IF NOT EXISTS idempotency_keys (id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS idempotency_keys_by_end ON idempotency_keys (expires_at);
CREATE TABLE IF NOT EXISTS error_tracker (
    error_id TEXT PRIMARY KEY, topic_name TEXT NOT NULL, message_id TEXT, error_type TEXT NOT NULL,
    archive_path TEXT NOT NULL, status TEXT NOT NULL, recorded_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS error_tracker_by_topic ON error_tracker (topic_name, recorded_at);
CREATE INDEX IF NOT EXISTS error_tracker_by_time ON error_tracker (recorded_at);
"""
WITHOUT_BACKUP: Final = (
    "without one move it away: the tables have the checkpoints, every schema must be submitted again."
)


class StateFile:
    """The state in `file`; one connection per thread, opened when first used."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._local = threading.local()
        self._turn = threading.Lock()

    def rows(self, select: str, *values: object) -> list[sqlite3.Row]:
        """What a query finds."""
        with self.told():
            return self.connection().execute(select, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection with the only right to write; all that the block does happens, or nothing."""
        with self.told(), self._in_turn():
            db = self.connection()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # some errors, a full disk among them, have ended it already
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """One thread at a time: to wait for another, SQLite sleeps and asks again, up to a tenth of a second late."""
        is_mine = self._turn.acquire(timeout=BUSY_SECONDS)  # if not, SQLite will say why
        try:
            yield
        finally:
            if is_mine:
                self._turn.release()

    @contextmanager
    def told(self) -> Iterator[None]:
        """What the database's own errors mean."""
        try:
            yield
        except sqlite3.Error as error:
            raise database_error(self._file, error, WITHOUT_BACKUP) from error

    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            read_only = self._file.is_file() and not can_be_written(self._file)
            connection = open_to_read(self._file) if read_only else self._made()
            connection.row_factory = sqlite3.Row
            self._local.connection = connection
        return connection

    def _made(self) -> sqlite3.Connection:
        """A connection to the file, which is made or brought up to date if it has to be."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self._file, timeout=BUSY_SECONDS, isolation_level=None)
        use_wal(connection)
        connection.executescript(_SCHEMA)
        _add_missing_columns(connection)
        return connection


def _add_missing_columns(connection: sqlite3.Connection) -> None:
    """A store that an earlier release made gets the columns that came since."""
    known = {row[1] for row in connection.execute("PRAGMA table_info(schema_registry)")}  # cid, name, …
    if "curated" not in known:
        try:
            connection.execute("ALTER TABLE schema_registry ADD COLUMN curated INTEGER NOT NULL DEFAULT 0")
        except sqlite3.OperationalError as error:
            if "duplicate column" not in str(error):  # otherwise another process was faster
                raise
