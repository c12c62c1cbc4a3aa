"""Finishing what a crash left: flushes that are in RAW but not in the books yet."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from lean_ops.ingest.flush import FLUSH_ID_PROPERTY, OWNER_PROPERTY, SETTLED_PROPERTY, Flush
from lean_ops.ingest.landing import Committed
from lean_ops.lake.snapshots import history_of
from lean_ops.model.batch import Zone
from lean_ops.model.errors import TerminalError
from lean_ops.state.port import Held

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lean_ops.ingest.archive import Archive
    from lean_ops.ingest.landing import Landing
    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.shared import SharedTables
    from lean_ops.lake.snapshots import History, Snapshot
    from lean_ops.state.port import StateStore

# Whether another machine's process lives can't be seen from here; its books take seconds, not minutes.
_FOREIGN_PATIENCE: Final = timedelta(minutes=10)


class FlushRecovery:
    """Finds and finishes the unfinished flushes of a topic."""

    def __init__(
        self,
        lake: Lake,
        shared: SharedTables,
        archive: Archive,
        landing: Landing,
        state: StateStore,
        is_gone: Callable[[str], bool],
        clock: Callable[[], datetime],
    ) -> None:
        self._lake = lake
        self._shared = shared
        self._archive = archive
        self._landing = landing
        self._state = state
        self._is_gone = is_gone
        self._clock = clock

    def finish_flushes(self, topic: str) -> int:
        """Write the books of every flush whose process is gone; how many there were. Twice changes nothing."""
        name = self._lake.names.raw(topic)
        if not self._lake.exists(name):
            self._refuse_dropped(topic)
            self._landing.all_settled_up_to(topic, None)
            return 0
        history = history_of(self._lake.load(name))
        flushes = unsettled_snapshots(history, self._state.settled_up_to(topic))
        in_progress = [snapshot for snapshot in flushes if self._is_in_progress(snapshot)]
        # Asked after that: a process that ended in between has written its books before.
        ended = [snapshot for snapshot in flushes if snapshot not in in_progress]
        finished = self._finish(topic, self._not_in_ledger(topic, ended))
        if finished is not None:
            oldest = in_progress[-1].parent_id if in_progress else history.head
            self._landing.all_settled_up_to(topic, oldest)
        return finished or 0

    def _refuse_dropped(self, topic: str) -> None:
        """A RAW table that the ledger has flushes of must not be made anew: what it held would be forgotten."""
        ledger, raw = self._lake.names.ops("reconciliation_log"), self._lake.names.raw(topic)
        has_flushes = self._lake.exists(ledger) and self._shared.count(ledger, topic_name=topic, zone=str(Zone.RAW))
        # Asked again after that look: another process may have made the table and written to it meanwhile.
        if has_flushes and not self._lake.exists(raw):
            raise TerminalError(
                "the table is gone from the catalog",
                where=str(raw),
                expected="the table that the ledger has flushes of",
                remedy="If it was dropped, register its newest metadata file again (docs/runbook-faults.md shows how);"
                " else restore a backup.",
            )

    def _finish(self, topic: str, left: list[Snapshot]) -> int | None:
        """Finish flushes, oldest first; None if another process is at it."""
        if not left:
            return 0
        lease = self._state.acquire(f"ingest:{topic}", self._landing.owner, self._clock())
        if isinstance(lease, Held):
            return None
        try:
            still_left = self._not_in_ledger(topic, left)  # another process may have been faster
            for snapshot in reversed(still_left):
                flush = Flush.of_snapshot(topic, snapshot)
                self._landing.settle(Committed(flush, self._missing_error_rows(flush)))
            return len(still_left)
        finally:
            self._state.release(lease)

    def _is_in_progress(self, snapshot: Snapshot) -> bool:
        """Whether the flush's own process may still be writing its books."""
        owner = snapshot.summary.get(OWNER_PROPERTY, "")
        if owner == self._landing.owner:
            return self._landing.is_open(snapshot.summary[FLUSH_ID_PROPERTY])
        if not owner or self._is_gone(owner):
            return False
        is_foreign = owner.partition("/")[0] != self._landing.owner.partition("/")[0]
        age = self._clock().timestamp() - snapshot.timestamp_ms / 1000
        return not (is_foreign and age > _FOREIGN_PATIENCE.total_seconds())

    def _not_in_ledger(self, topic: str, snapshots: list[Snapshot]) -> list[Snapshot]:
        ledger = self._lake.names.ops("reconciliation_log")
        return [
            snapshot
            for snapshot in snapshots
            if not self._shared.rows_of_batch(ledger, topic, snapshot.summary[FLUSH_ID_PROPERTY])
        ]

    def _missing_error_rows(self, flush: Flush) -> tuple[dict[str, Any], ...]:
        """The rows of the flush's archived dead letters that `dlq_errors` lacks."""
        from pyiceberg.expressions import And, EqualTo, Reference, StartsWith
        from pyiceberg.expressions.literals import literal

        rows = self._archive.rows_of_flush(flush.topic, flush.flush_id) if flush.errors else []
        present: set[str] = set()
        table = self._lake.load(self._lake.names.dlq_errors)
        for prefix in {f"{row['archive_path'].rpartition('/')[0]}/{flush.flush_id}-" for row in rows}:
            row_filter = And(
                EqualTo(term=Reference("topic_name"), value=literal(flush.topic)),
                StartsWith(term=Reference("archive_path"), value=literal(prefix)),
            )
            scan = table.scan(row_filter=row_filter, selected_fields=("archive_path",))
            present.update(scan.to_arrow().column("archive_path").to_pylist())
        return tuple(row for row in rows if row["archive_path"] not in present)


def unsettled_snapshots(history: History, settled_up_to: int | None = None) -> list[Snapshot]:
    """The flushes on main that the ledger may lack, newest first.

    A flush in the ledger says nothing of older ones: another process may have died before it. Only a snapshot up to
    which all was settled ends the search; a snapshot after it says which one, or the state store (`settled_up_to`).
    """
    boundaries = {settled_up_to}
    flushes: list[Snapshot] = []
    for snapshot in history.ancestors(history.head):
        if snapshot.snapshot_id in boundaries:
            break
        if SETTLED_PROPERTY in snapshot.summary:
            boundaries.add(int(snapshot.summary[SETTLED_PROPERTY]))
        if FLUSH_ID_PROPERTY in snapshot.summary:
            flushes.append(snapshot)
    return flushes
