"""The embedded state store: one SQLite file, shared by every process on the machine."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lean_ops.model.registry import RegistryItem
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Checkpoint, Held, Lease
from lean_ops.state.rules import claimed, utc_text
from lean_ops.state.sqlite_connection import StateFile
from lean_ops.state.sqlite_rows import checkpoint_of, item_of, lease_of, put_item

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lean_ops.model.batch import Intent


class SqliteStateStore:
    """Checkpoints, leases and the registry in `file`, which is opened when it is first used."""

    def __init__(self, file: Path, lease_seconds: int, is_gone: Callable[[str], bool]) -> None:
        self._file = StateFile(file)
        self._lease_time = timedelta(seconds=lease_seconds)
        self._is_gone = is_gone

    # checkpoints

    def checkpoint(self, pipeline_id: str) -> Checkpoint:
        """A hop's checkpoint; an empty one if it never ran."""
        rows = self._file.rows("SELECT * FROM checkpoints WHERE pipeline_id = ?", pipeline_id)
        return checkpoint_of(rows[0]) if rows else Checkpoint(pipeline_id)

    def checkpoints(self) -> dict[str, Checkpoint]:
        """All checkpoints by pipeline id."""
        rows = self._file.rows("SELECT * FROM checkpoints")
        return {row["pipeline_id"]: checkpoint_of(row) for row in rows}

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
        with self._file.transaction() as db:
            row = db.execute("SELECT * FROM locks WHERE topic_name = ?", (topic,)).fetchone()
            if row and row["owner"] and not self._is_free(row, now):
                return Held(lease_of(row))
            lease = Lease(topic, owner, (row["fence"] if row else 0) + 1, now + self._lease_time)
            db.execute(
                "INSERT OR REPLACE INTO locks (topic_name, owner, fence, expires_at) VALUES (?, ?, ?, ?)",
                (topic, owner, lease.fence, utc_text(lease.expires_at)),
            )
            return lease

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """The same lease with a later end, or LostLeaseError."""
        renewed = replace(lease, expires_at=now + self._lease_time)
        with self._as_holder(lease, now) as db:
            db.execute(
                "UPDATE locks SET expires_at = ? WHERE topic_name = ?", (utc_text(renewed.expires_at), lease.topic)
            )
        return renewed

    def confirm(self, lease: Lease, now: datetime) -> None:
        """LostLeaseError unless the lease is still the current one; nothing is written."""
        with self._file.told():
            _refuse_lost(self._file.connection(), lease, now)

    def release(self, lease: Lease) -> None:
        """Give the lease back; nothing happens if it was lost meanwhile."""
        with self._file.transaction() as db:
            db.execute(
                "UPDATE locks SET owner = NULL, expires_at = NULL WHERE topic_name = ? AND owner = ? AND fence = ?",
                (lease.topic, lease.owner, lease.fence),
            )

    def _is_free(self, row: sqlite3.Row, now: datetime) -> bool:
        return datetime.fromisoformat(row["expires_at"]) <= now or self._is_gone(row["owner"])

    @contextmanager
    def _as_holder(self, lease: Lease, now: datetime) -> Iterator[sqlite3.Connection]:
        """A transaction that happens only while `lease` is current: same owner, same fence, not expired."""
        with self._file.transaction() as db:
            _refuse_lost(db, lease, now)
            yield db

    # settlements

    def settled_up_to(self, topic: str) -> int | None:
        """The RAW snapshot up to which the ledger is known to have every flush; None if nothing is known."""
        rows = self._file.rows("SELECT snapshot_id FROM settlements WHERE topic_name = ?", topic)
        return int(rows[0]["snapshot_id"]) if rows else None

    def settle_up_to(self, topic: str, snapshot_id: int) -> None:
        """Remember a snapshot, in the place of an earlier one."""
        with self._file.transaction() as db:
            db.execute("INSERT OR REPLACE INTO settlements VALUES (?, ?)", (topic, snapshot_id))

    # rebuilds

    def rebuild_note(self, topic: str) -> str | None:
        """What a rebuild of a topic left here; None if none is under way."""
        rows = self._file.rows("SELECT note FROM rebuilds WHERE topic_name = ?", topic)
        return str(rows[0]["note"]) if rows else None

    def note_rebuild(self, topic: str, note: str | None) -> None:
        """Keep a note in the place of an earlier one, or none any more."""
        with self._file.transaction() as db:
            if note is None:
                db.execute("DELETE FROM rebuilds WHERE topic_name = ?", (topic,))
            else:
                db.execute("INSERT OR REPLACE INTO rebuilds VALUES (?, ?)", (topic, note))

    # registry

    def item(self, topic: str) -> RegistryItem | None:
        """What is known of a topic."""
        rows = self._file.rows("SELECT * FROM schema_registry WHERE topic_name = ?", topic)
        return item_of(rows[0]) if rows else None

    def items(self) -> dict[str, RegistryItem]:
        """Every topic known, by name."""
        rows = self._file.rows("SELECT * FROM schema_registry ORDER BY topic_name")
        return {row["topic_name"]: item_of(row) for row in rows}

    def update_item(self, topic: str, change: Callable[[RegistryItem], RegistryItem]) -> RegistryItem:
        """Change a topic's item (a new one if it is unknown) with nobody writing in between; the new item."""
        return self._replaced(topic, lambda known: change(known or RegistryItem(topic)))

    def claim_name(self, topic: str, source_name: str, now: datetime) -> None:
        """Tie a topic to the source name it came under; another name for the same topic is a WrongUseError."""
        self._replaced(topic, lambda known: claimed(known, topic, source_name, now))

    def _replaced(self, topic: str, change: Callable[[RegistryItem | None], RegistryItem]) -> RegistryItem:
        with self._file.transaction() as db:
            row = db.execute("SELECT * FROM schema_registry WHERE topic_name = ?", (topic,)).fetchone()
            known = item_of(row) if row else None
            item = change(known)
            if item != known:
                put_item(db, item)
        return item


def _refuse_lost(db: sqlite3.Connection, lease: Lease, now: datetime) -> None:
    row = db.execute(
        "SELECT 1 FROM locks WHERE topic_name = ? AND owner = ? AND fence = ? AND expires_at > ?",
        (lease.topic, lease.owner, lease.fence, utc_text(now)),
    ).fetchone()
    if row is None:
        raise LostLeaseError(lease)
