"""Deliveries that were done with, in the home's state file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lean_ops.state.rules import delivery_end
from lean_ops.state.sqlite_connection import StateFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path


class SqliteDeliveries:
    """Deliveries in `file`, which is opened when it is first used; forgotten ones are deleted by the next write."""

    def __init__(self, file: Path) -> None:
        self._file = StateFile(file)

    def seen(self, ids: Iterable[str], now: datetime) -> set[str]:
        """Those of the ids that are remembered."""
        rows = self._file.rows(
            "SELECT id FROM idempotency_keys WHERE expires_at > ? AND id IN (SELECT value FROM json_each(?))",
            now.timestamp(),
            json.dumps(list(ids)),
        )
        return {row["id"] for row in rows}

    def remember(self, ids: Iterable[str], now: datetime) -> None:
        """Remember the ids for 24 hours from now on."""
        end = delivery_end(now)
        with self._file.transaction() as db:
            db.execute("DELETE FROM idempotency_keys WHERE expires_at <= ?", (now.timestamp(),))
            db.executemany("INSERT OR REPLACE INTO idempotency_keys VALUES (?, ?)", ((id_, end) for id_ in ids))
