"""The embedded state store: one SQLite file, shared by every process on the machine."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lean_ops.model.batch import Intent
from lean_ops.model.errors import WrongUseError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.sqlite_file import BUSY_SECONDS, can_be_written, database_error, open_to_read
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Checkpoint, Held, Lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS checkpoints (
    pipeline_id TEXT PRIMARY KEY, checkpoint_type TEXT NOT NULL, last_snapshot_id INTEGER,
    last_ingestion_ts INTEGER, updated_at TEXT NOT NULL, intent TEXT, failures INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS locks (
    topic_name TEXT PRIMARY KEY, owner TEXT, fence INTEGER NOT NULL, expires_at TEXT);
CREATE TABLE IF NOT EXISTS settlements (topic_name TEXT PRIMARY KEY, snapshot_id INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS schema_registry (
    topic_name TEXT PRIMARY KEY, processing_enabled INTEGER NOT NULL, status TEXT NOT NULL, flow TEXT NOT NULL,
    flow_reason TEXT, schema_version TEXT, curated INTEGER NOT NULL DEFAULT 0, schema_path TEXT, error_path TEXT,
    last_error TEXT, source_name TEXT, updated_at TEXT);
"""
WITHOUT_BACKUP = "without one move it away: the tables have the checkpoints, every schema must be submitted again."
_ITEM_COLUMNS = tuple(field.name for field in fields(RegistryItem))


class SqliteStateStore:
    """Checkpoints, leases and the registry in `file`; one connection per thread, opened when first used."""

    def __init__(self, file: Path, lease_seconds: int, is_gone: Callable[[str], bool]) -> None:
        self._file = file
        self._lease_time = timedelta(seconds=lease_seconds)
        self._is_gone = is_gone
        self._local = threading.local()

    # checkpoints

    def checkpoint(self, pipeline_id: str) -> Checkpoint:
        """A hop's checkpoint; an empty one if it never ran."""
        rows = self._rows("SELECT * FROM checkpoints WHERE pipeline_id = ?", pipeline_id)
        return _checkpoint(rows[0]) if rows else Checkpoint(pipeline_id)

    def checkpoints(self) -> dict[str, Checkpoint]:
        """All checkpoints by pipeline id."""
        rows = self._rows("SELECT * FROM checkpoints")
        return {row["pipeline_id"]: _checkpoint(row) for row in rows}

    def save_intent(self, intent: Intent, lease: Lease, now: datetime) -> None:
        """Store the open batch."""
        with self._as_holder(lease, now) as db:
            db.execute(
                "INSERT INTO checkpoints (pipeline_id, checkpoint_type, updated_at, intent)"
                " VALUES (?, 'iceberg_snapshot', ?, ?)"
                " ON CONFLICT (pipeline_id) DO UPDATE SET intent = excluded.intent, updated_at = excluded.updated_at",
                (intent.batch.pipeline_id, now.isoformat(), json.dumps(intent.to_dict())),
            )

    def close_batch(self, intent: Intent, lease: Lease, now: datetime) -> None:
        """Move the checkpoint to the batch's end, forget the intent and the failures."""
        with self._as_holder(lease, now) as db:
            db.execute(
                "INSERT INTO checkpoints"
                " (pipeline_id, checkpoint_type, last_snapshot_id, last_ingestion_ts, updated_at)"
                " VALUES (?, 'iceberg_snapshot', ?, ?, ?) ON CONFLICT (pipeline_id) DO UPDATE SET"
                " last_snapshot_id = excluded.last_snapshot_id, updated_at = excluded.updated_at,"
                " last_ingestion_ts = coalesce(excluded.last_ingestion_ts, last_ingestion_ts),"
                " intent = NULL, failures = 0",
                (intent.batch.pipeline_id, intent.batch.to_snapshot, intent.last_ingestion_ts, now.isoformat()),
            )

    def count_failure(self, pipeline_id: str, lease: Lease, now: datetime) -> int:
        """One more failure in a row; the number of them."""
        with self._as_holder(lease, now) as db:
            row = db.execute(
                "INSERT INTO checkpoints (pipeline_id, checkpoint_type, updated_at, failures)"
                " VALUES (?, 'iceberg_snapshot', ?, 1) ON CONFLICT (pipeline_id)"
                " DO UPDATE SET failures = failures + 1, updated_at = excluded.updated_at RETURNING failures",
                (pipeline_id, now.isoformat()),
            ).fetchone()
        return int(row["failures"])

    # leases

    def acquire(self, topic: str, owner: str, now: datetime) -> Lease | Held:
        """Take the lease if it is free, expired or its process is gone."""
        with self._transaction() as db:
            row = db.execute("SELECT * FROM locks WHERE topic_name = ?", (topic,)).fetchone()
            if row and row["owner"] and not self._is_free(row, now):
                return Held(_lease(row))
            lease = Lease(topic, owner, (row["fence"] if row else 0) + 1, now + self._lease_time)
            db.execute(
                "INSERT OR REPLACE INTO locks (topic_name, owner, fence, expires_at) VALUES (?, ?, ?, ?)",
                (topic, owner, lease.fence, _utc_text(lease.expires_at)),
            )
            return lease

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """The same lease with a later end, or LostLeaseError."""
        renewed = replace(lease, expires_at=now + self._lease_time)
        with self._as_holder(lease, now) as db:
            db.execute(
                "UPDATE locks SET expires_at = ? WHERE topic_name = ?", (_utc_text(renewed.expires_at), lease.topic)
            )
        return renewed

    def confirm(self, lease: Lease, now: datetime) -> None:
        """LostLeaseError unless the lease is still the current one; nothing is written."""
        with self._told():
            _refuse_lost(self._db(), lease, now)

    def release(self, lease: Lease) -> None:
        """Give the lease back; nothing happens if it was lost meanwhile."""
        with self._transaction() as db:
            db.execute(
                "UPDATE locks SET owner = NULL, expires_at = NULL WHERE topic_name = ? AND owner = ? AND fence = ?",
                (lease.topic, lease.owner, lease.fence),
            )

    def _is_free(self, row: sqlite3.Row, now: datetime) -> bool:
        return datetime.fromisoformat(row["expires_at"]) <= now or self._is_gone(row["owner"])

    @contextmanager
    def _as_holder(self, lease: Lease, now: datetime) -> Iterator[sqlite3.Connection]:
        """A transaction that happens only while `lease` is current: same owner, same fence, not expired."""
        with self._transaction() as db:
            _refuse_lost(db, lease, now)
            yield db

    # settlements

    def settled_up_to(self, topic: str) -> int | None:
        """The RAW snapshot up to which the ledger is known to have every flush; None if nothing is known."""
        rows = self._rows("SELECT snapshot_id FROM settlements WHERE topic_name = ?", topic)
        return int(rows[0]["snapshot_id"]) if rows else None

    def settle_up_to(self, topic: str, snapshot_id: int) -> None:
        """Remember a snapshot, in the place of an earlier one."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO settlements VALUES (?, ?)", (topic, snapshot_id))

    # registry

    def item(self, topic: str) -> RegistryItem | None:
        """What is known of a topic."""
        rows = self._rows("SELECT * FROM schema_registry WHERE topic_name = ?", topic)
        return _item(rows[0]) if rows else None

    def items(self) -> dict[str, RegistryItem]:
        """Every topic known, by name."""
        rows = self._rows("SELECT * FROM schema_registry ORDER BY topic_name")
        return {row["topic_name"]: _item(row) for row in rows}

    def update_item(self, topic: str, change: Callable[[RegistryItem], RegistryItem]) -> RegistryItem:
        """Change a topic's item (a new one if it is unknown) with nobody writing in between; the new item."""
        with self._transaction() as db:
            row = db.execute("SELECT * FROM schema_registry WHERE topic_name = ?", (topic,)).fetchone()
            item = change(_item(row) if row else RegistryItem(topic))
            _put(db, item)
        return item

    def claim_name(self, topic: str, source_name: str, now: datetime) -> None:
        """Tie a topic to the source name it came under; another name for the same topic is a WrongUseError."""
        with self._transaction() as db:
            row = db.execute("SELECT * FROM schema_registry WHERE topic_name = ?", (topic,)).fetchone()
            item = _item(row) if row else RegistryItem(topic)
            if source_name in {topic, item.source_name} and row:
                return
            if source_name != topic and item.source_name not in {None, topic, source_name}:
                raise WrongUseError(
                    f"this name and {item.source_name!r} both become topic {topic!r}",
                    where=f"topic {source_name!r}",
                    remedy="Rename one of the two: mixed in one table they could not be told apart.",
                )
            _put(db, replace(item, source_name=source_name, updated_at=now.isoformat()))

    # the connection

    def _db(self) -> sqlite3.Connection:
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
        _use_wal(connection)
        connection.executescript(_SCHEMA)
        _add_missing_columns(connection)
        return connection

    def _rows(self, select: str, *values: str) -> list[sqlite3.Row]:
        with self._told():
            return self._db().execute(select, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._told():
            db = self._db()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # some errors, a full disk among them, have ended it already
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the database's own errors mean."""
        try:
            yield
        except sqlite3.Error as error:
            raise database_error(self._file, error, WITHOUT_BACKUP) from error


def _use_wal(connection: sqlite3.Connection) -> None:
    """Go over to write-ahead logging; unlike other statements this one does not wait by itself for who is faster."""
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


def _refuse_lost(db: sqlite3.Connection, lease: Lease, now: datetime) -> None:
    row = db.execute(
        "SELECT 1 FROM locks WHERE topic_name = ? AND owner = ? AND fence = ? AND expires_at > ?",
        (lease.topic, lease.owner, lease.fence, _utc_text(now)),
    ).fetchone()
    if row is None:
        raise LostLeaseError(lease)


def _add_missing_columns(connection: sqlite3.Connection) -> None:
    """A store that an earlier release made gets the columns that came since."""
    known = {row[1] for row in connection.execute("PRAGMA table_info(schema_registry)")}  # cid, name, …
    if "curated" not in known:
        try:
            connection.execute("ALTER TABLE schema_registry ADD COLUMN curated INTEGER NOT NULL DEFAULT 0")
        except sqlite3.OperationalError as error:
            if "duplicate column" not in str(error):  # otherwise another process was faster
                raise


def _utc_text(time: datetime) -> str:
    """A time as text that sorts as the time does, whatever zone it came in."""
    return time.astimezone(UTC).isoformat()


def _put(db: sqlite3.Connection, item: RegistryItem) -> None:
    values: dict[str, Any] = {name: getattr(item, name) for name in _ITEM_COLUMNS}
    columns = ", ".join((*_ITEM_COLUMNS, "processing_enabled"))
    marks = ", ".join("?" * (len(_ITEM_COLUMNS) + 1))
    db.execute(
        f"INSERT OR REPLACE INTO schema_registry ({columns}) VALUES ({marks})",  # noqa: S608  our own column names
        (*values.values(), int(item.processing_enabled)),
    )


def _item(row: sqlite3.Row) -> RegistryItem:
    values = {name: row[name] for name in _ITEM_COLUMNS}
    typed = {"status": Status(values["status"]), "flow": Flow(values["flow"]), "curated": bool(values["curated"])}
    return RegistryItem(**{**values, **typed})


def _checkpoint(row: sqlite3.Row) -> Checkpoint:
    intent = Intent.from_dict(json.loads(row["intent"])) if row["intent"] else None
    return Checkpoint(
        row["pipeline_id"],
        row["last_snapshot_id"],
        row["last_ingestion_ts"],
        intent,
        row["failures"],
        row["updated_at"],
    )


def _lease(row: sqlite3.Row) -> Lease:
    expires_at = datetime.fromisoformat(row["expires_at"]).astimezone(UTC)
    return Lease(row["topic_name"], row["owner"], row["fence"], expires_at)
