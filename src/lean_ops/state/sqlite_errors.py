"""The index of dead letters, in the home's state file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lean_ops.state.rules import errors_since, utc_text
from lean_ops.state.sqlite_connection import StateFile
from lean_ops.state.sqlite_rows import error_of

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from lean_ops.state.port import TrackedError


class SqliteErrorTracker:
    """Errors in `file`, which is opened when it is first used; those past their days are deleted by the next write."""

    def __init__(self, file: Path) -> None:
        self._file = StateFile(file)

    def put(self, error: TrackedError) -> bool:
        """Book an error; False, and nothing changes, if its id is known already."""
        recorded_at = utc_text(error.recorded_at)
        with self._file.transaction() as db:
            db.execute("DELETE FROM error_tracker WHERE recorded_at <= ?", (errors_since(error.recorded_at),))
            booked = db.execute(
                "INSERT INTO error_tracker"
                " (error_id, topic_name, message_id, error_type, archive_path, status, recorded_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (error_id) DO NOTHING",
                (
                    error.error_id,
                    error.topic_name,
                    error.message_id,
                    error.error_type,
                    error.archive_path,
                    error.status,
                    recorded_at,
                ),
            )
            return booked.rowcount == 1

    def mark(self, error_id: str, status: str, now: datetime) -> bool:
        """Change an error's status; False if nobody knows it."""
        with self._file.transaction() as db:
            marked = db.execute(
                "UPDATE error_tracker SET status = ? WHERE error_id = ? AND recorded_at > ?",
                (status, error_id, errors_since(now)),
            )
            return marked.rowcount == 1

    def get(self, error_id: str, now: datetime) -> TrackedError | None:
        """What is known of an error."""
        rows = self._file.rows(
            "SELECT * FROM error_tracker WHERE error_id = ? AND recorded_at > ?", error_id, errors_since(now)
        )
        return error_of(rows[0]) if rows else None

    def newest(self, topic: str, now: datetime, limit: int = 100) -> list[TrackedError]:
        """A topic's errors, newest first, at most `limit`."""
        rows = self._file.rows(
            "SELECT * FROM error_tracker WHERE topic_name = ? AND recorded_at > ? ORDER BY recorded_at DESC LIMIT ?",
            topic,
            errors_since(now),
            limit,
        )
        return [error_of(row) for row in rows]
