"""Curated tables that outgrew their layout, or have too many files: written anew beside, counted, then switched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from lean_ops.lake.layout import TRIES_PROPERTY, begin_move, buckets_of, finish_move
from lean_ops.lake.snapshots import LAYOUT_PROPERTY, ROWS_PROPERTY, count_in_head, history_of
from lean_ops.lake.staging import commit_properties, staged_snapshots
from lean_ops.model.curated_layout import by_key, layout_in_words
from lean_ops.model.errors import TerminalError
from lean_ops.operate.intent import published_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.layout import LayoutMove
    from lean_ops.lake.snapshots import History, Snapshot
    from lean_ops.ledger.books import Books
    from lean_ops.model.batch import Batch
    from lean_ops.model.curated_layout import LayoutRule
    from lean_ops.model.schema import Schema
    from lean_ops.operate.batch import Listener
    from lean_ops.state.port import Lease, LeaseStore

_MOVE: Final = "REWRITE_LAYOUT"
_GATHER: Final = "REWRITE_FILES"
# A move may be what ends Spark, or a machine may be switched off every night: then it is not tried with every batch.
_TRIES_IN_A_ROW: Final = 3
_PATIENCE: Final = timedelta(days=1)
_log: Any = structlog.get_logger("lean_ops.layout")


@dataclass(frozen=True, slots=True)
class Relayout:
    """Looks after a topic's Curated batches whether their table has outgrown its layout, and moves it then.

    A small table of many files is moved to the layout it has: its rows then lie in one.

    `write_anew` copies all rows, by Spark if they are many. `rule` is None where a setting fixes the buckets.
    """

    lake: Lake
    books: Books
    state: LeaseStore
    schema_of: Callable[[str, str], Schema]
    write_anew: Callable[[LayoutMove, int, Mapping[str, str]], None]
    rule: LayoutRule | None
    clock: Callable[[], datetime]
    on_step: Listener

    def look_after(self, topic: str, schema_version: str, lease: Lease, run_id: str) -> None:
        """Move the topic's table if it is due; whoever killed an earlier try, it begins again from what main is."""
        table = self.lake.load(self.lake.names.curated(topic))
        buckets = self._due(table)
        last = published_batch(history_of(table)) if buckets is not None else None
        if buckets is None or last is None or self.schema_of(topic, schema_version).partitioning is not None:
            return
        tries = _Tries.of(table, buckets)
        now = self.clock()
        if tries.allow(now):
            action = _GATHER if buckets == buckets_of(table) else _MOVE
            self._recorded(_Task(last.batch, lease, run_id, now, action), table, buckets, tries.one_more(now))

    def _due(self, table: Table) -> int | None:
        """The buckets that the table wants, told by what is at hand: this is asked after every batch of every topic."""
        rows, present = int(table.properties.get(ROWS_PROPERTY, 0)), buckets_of(table)
        if self.rule is None or present is None:
            return None
        buckets = self.rule.next_layout(rows, present)
        if buckets is None and present == 0 and self.rule.has_many_files(".".join(table.name()), rows, _files(table)):
            return present
        names = {field.name for field in table.schema().fields}
        return None if buckets is None or names & {field.name for field in by_key(buckets)} else buckets

    def _recorded(self, task: _Task, table: Table, buckets: int, tries: str) -> None:
        before, name = history_of(table), self.lake.names.curated(task.batch.topic)
        try:
            after = self._moved(task, before, begin_move(self.lake, name, buckets, tries))
        except Exception as error:
            self._record(task, before, None, str(error))
            raise
        self._record(task, before, after, None)
        topic, words = task.batch.topic, layout_in_words(buckets)
        _log.info("table written anew", topic=topic, action=task.action, rows=before.live_rows, layout=words)

    def _moved(self, task: _Task, before: History, move: LayoutMove) -> Snapshot:
        """The table's new snapshot, which carries its last batch on: to the books nothing has happened."""
        self._done(task, "layout begun")
        carried = {**commit_properties(task.batch), LAYOUT_PROPERTY: layout_in_words(move.buckets)}
        self.write_anew(move, before.live_rows, carried)
        self._done(task, "layout written")
        (snapshot,) = staged_snapshots(self.lake, move.stage)
        _refuse_other_rows(before, snapshot)
        finish_move(self.lake, move, snapshot.snapshot_id)
        self._done(task, "layout switched")
        return snapshot

    def _done(self, task: _Task, step: str) -> None:
        self.on_step(task.batch, step)
        self.state.confirm(task.lease, self.clock())

    def _record(self, task: _Task, before: History, after: Snapshot | None, error: str | None) -> None:
        now, head = self.clock(), before.snapshots[before.head or -1]
        row = {
            "run_id": task.run_id,
            "topic_name": task.batch.topic,
            "table_name": before.table,
            "action": task.action,
            **_size("before", head),
            **(_size("after", after) if after else {}),
            "status": "FAILED" if error else "SUCCEEDED",
            "error_message": error,
            "duration_ms": round((now - task.began).total_seconds() * 1000),
            "run_at": task.began,
        }
        self.books.append("maintenance_log", row)


@dataclass(frozen=True, slots=True)
class _Task:
    """A move at work: the batch that main shows, the lease it is done under, by which run since when, and what for."""

    batch: Batch
    lease: Lease
    run_id: str
    began: datetime
    action: str


@dataclass(frozen=True, slots=True)
class _Tries:
    """How often a move to so many buckets was begun, and when last; kept in the table, since a try may kill us."""

    buckets: int
    number: int = 0
    last: datetime | None = None

    @classmethod
    def of(cls, table: Table, buckets: int) -> _Tries:
        words = table.properties.get(TRIES_PROPERTY, "").split()
        if len(words) != 3 or words[0] != str(buckets):
            return cls(buckets)
        return cls(buckets, int(words[1]), datetime.fromisoformat(words[2]))

    def allow(self, now: datetime) -> bool:
        return self.number < _TRIES_IN_A_ROW or self.last is None or now - self.last >= _PATIENCE

    def one_more(self, now: datetime) -> str:
        return f"{self.buckets} {self.number + 1} {now.isoformat()}"


def _files(table: Table) -> int:
    return sum(count_in_head(table, f"total-{kind}-files") for kind in ("data", "delete"))


def _size(when: str, snapshot: Snapshot) -> dict[str, int]:
    files = snapshot.count("total-data-files") + snapshot.count("total-delete-files")
    return {f"files_{when}": files, f"bytes_{when}": snapshot.count("total-files-size")}


def _refuse_other_rows(before: History, written: Snapshot) -> None:
    """TerminalError unless what was written anew has just as many rows as the table has."""
    found = (written.count("total-records"), written.count("added-records"), written.count("total-delete-files"))
    if found != (before.live_rows, before.live_rows, 0):
        raise TerminalError(
            "the table that was written anew does not have the rows of the live one, and did not take its place",
            where=before.table,
            found=f"{found[0]} rows, {found[1]} of them new, with {found[2]} delete files",
            expected=f"{before.live_rows} rows, all of them new, and no delete file",
            remedy="Nothing was changed. `lean-ops reconcile --recount` tells whether the table's own count is right.",
        )
