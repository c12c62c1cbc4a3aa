"""Landing a flush: dead letters to the archive, one append to RAW, then the error rows and the ledger's row.

The append is the commit point, and its snapshot says what the flush was. Whatever a crash leaves undone behind
it is finished by `recovery`, so every message that was taken gets its fate into the books.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lean_ops.ingest.flush import (
    ERRORS_PROPERTY,
    FLUSH_ID_PROPERTY,
    OWNER_PROPERTY,
    RECORDS_IN_PROPERTY,
    REPLAY_ID_PROPERTY,
    SETTLED_PROPERTY,
    Flush,
    OpenFlush,
)
from lean_ops.lake.append import append_files, write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lean_ops.ingest.archive import Archive
    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.shared import SharedTables
    from lean_ops.state.port import Settlements


@dataclass(frozen=True, slots=True)
class Committed:
    """A flush that is in RAW, and its rows for `dlq_errors`."""

    flush: Flush
    error_rows: tuple[dict[str, Any], ...]


class Landing:
    """Commits flushes and writes their books. Safe to share between threads."""

    def __init__(
        self,
        lake: Lake,
        shared: SharedTables,
        archive: Archive,
        settlements: Settlements,
        announce: Callable[[], str],
        clock: Callable[[], datetime],
    ) -> None:
        self._lake = lake
        self._shared = shared
        self._archive = archive
        self._settlements = settlements
        self._announce = announce
        self._clock = clock
        self._guard = threading.Lock()
        self._open: set[str] = set()
        self._settled: dict[str, int | None] = {}

    @property
    def owner(self) -> str:
        """The name of this process, under which its flushes are committed."""
        return self._announce()

    def land(self, gathered: OpenFlush, on_commit: Callable[[Committed], None]) -> None:
        """Bring a flush into the lake and the books; `on_commit` is told as soon as it can't be lost any more."""
        with self._guard:
            self._open.add(gathered.flush_id)
        try:
            committed = self._commit(gathered)
            on_commit(committed)
            self.settle(committed)
        finally:
            with self._guard:
                self._open.discard(gathered.flush_id)

    def is_open(self, flush_id: str) -> bool:
        """Whether a thread of this process is landing that flush right now."""
        with self._guard:
            return flush_id in self._open

    def settle(self, committed: Committed) -> None:
        """Write a committed flush into the books: its dead letters, then its line in the ledger."""
        flush = committed.flush
        self._shared.append_rows(self._lake.names.dlq_errors, committed.error_rows)
        self._shared.append_rows(self._lake.names.ops("reconciliation_log"), [flush.ledger_row(self._clock())])
        with self._guard:
            follows = self._settled.get(flush.topic, -1) == flush.parent_id
        if follows:
            self.all_settled_up_to(flush.topic, flush.snapshot_id)

    def all_settled_up_to(self, topic: str, snapshot_id: int | None) -> None:
        """Remember that every flush up to a snapshot is in the ledger; None stands for the table's beginning."""
        with self._guard:
            self._settled[topic] = snapshot_id
        if snapshot_id is not None and snapshot_id != self._settlements.settled_up_to(topic):
            self._settlements.settle_up_to(topic, snapshot_id)

    def _commit(self, gathered: OpenFlush) -> Committed:
        now = self._clock()
        error_rows = tuple(
            self._archive.put(gathered.topic, gathered.flush_id, number, refused, now)
            for number, refused in enumerate(gathered.refused, start=1)
        )
        table = self._lake.ensure_raw(gathered.topic)
        files = write_files(table, gathered.rows.table(table.schema().as_arrow()))
        snapshot_id = append_files(table, files, self._summary(gathered))
        snapshot = table.refresh().metadata.snapshot_by_id(snapshot_id)
        parent_id = snapshot.parent_snapshot_id if snapshot else None
        facts = (snapshot_id, parent_id, gathered.records, len(error_rows), gathered.replay_id)
        return Committed(Flush(gathered.topic, gathered.flush_id, *facts), error_rows)

    def _summary(self, gathered: OpenFlush) -> dict[str, str]:
        summary = {
            FLUSH_ID_PROPERTY: gathered.flush_id,
            RECORDS_IN_PROPERTY: str(gathered.records),
            ERRORS_PROPERTY: str(len(gathered.refused)),
            OWNER_PROPERTY: self.owner,
        }
        if gathered.replay_id is not None:
            summary[REPLAY_ID_PROPERTY] = gathered.replay_id
        with self._guard:
            settled = self._settled.get(gathered.topic)
        return summary if settled is None else {**summary, SETTLED_PROPERTY: str(settled)}
