"""Whether a zone's table is as its own batches left it: what was done to it by hand stops a hop, and has a way back."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from lean_ops.lake.snapshots import BATCH_ID_PROPERTY
from lean_ops.model.errors import TerminalError
from lean_ops.operate.intent import last_batch

if TYPE_CHECKING:
    from lean_ops.lake.snapshots import History, Snapshot
    from lean_ops.state.port import Checkpoint

_HOW: Final = "docs/runbook-faults.md shows how"


class TouchedError(TerminalError):
    """A table that somebody wrote to, moved or replaced; a batch on top of that would make it worse."""


def table_gone(table: str) -> TouchedError:
    """What is told of a table that had batches and is not in the catalog any more."""
    return TouchedError(
        "the table is gone from the catalog",
        where=table,
        expected="the table that the state store has checkpoints of",
        remedy=f"If it was dropped, register its newest metadata file again ({_HOW}); else restore a backup.",
    )


def refuse_touched(table: History) -> None:
    """TouchedError unless main is where the table's last batch, or maintenance after it, left it."""
    foreign = [one for one in takewhile(_is_foreign, table.ancestors(table.head)) if one.operation != "replace"]
    if foreign:
        raise _written(table, foreign[-1])
    last = last_batch(table)
    made = [one for one in table.snapshots.values() if last and _is_of(one, last.batch.batch_id)]
    if made and not any(_is_of(one, made[0].summary[BATCH_ID_PROPERTY]) for one in table.ancestors(table.head)):
        raise _moved(table, max(made, key=lambda one: one.timestamp_ms))


def _is_foreign(snapshot: Snapshot) -> bool:
    """Whether no batch made it; the empty snapshot that a table is made with has no rows and nothing before it."""
    is_first = snapshot.parent_id is None and not snapshot.count("total-records")
    return BATCH_ID_PROPERTY not in snapshot.summary and not is_first


def _written(table: History, first: Snapshot) -> TouchedError:
    return TouchedError(
        "somebody else has written to it",
        where=table.table,
        found=f"snapshot {first.snapshot_id} ({first.operation}), which no batch made",
        expected=f"main at snapshot {first.parent_id}",
        remedy=f"Move main back to snapshot {first.parent_id}; {_HOW}.",
    )


def _is_of(snapshot: Snapshot, batch_id: str) -> bool:
    return snapshot.summary.get(BATCH_ID_PROPERTY) == batch_id


def _moved(table: History, last: Snapshot) -> TouchedError:
    return TouchedError(
        "main was moved by hand",
        where=table.table,
        found=f"main at snapshot {table.head}",
        expected=f"main at snapshot {last.snapshot_id}, which its last batch made",
        remedy=f"Move main to snapshot {last.snapshot_id} again; {_HOW}.",
    )


def refuse_behind(name: str, table: History | None, source: History, stored: Checkpoint | None) -> None:
    """TouchedError if the state store knows of batches that the table does not show: an older one is in its place."""
    known = stored.last_snapshot_id if stored else None
    checkpoint = table.checkpoint() if table else None
    shown = checkpoint.to_snapshot if checkpoint else None
    if known is None or shown == known:
        return
    if shown is None or shown in {snapshot.snapshot_id for snapshot in source.ancestors(known)}:
        raise TouchedError(
            "the table lacks batches that were published",
            where=name,
            found=f"batches up to snapshot {shown} of {source.table}" if shown else "no batch at all",
            expected=f"batches up to snapshot {known} of {source.table}, as the state store has it",
            remedy=f"If it was made anew, drop it and register the old one ({_HOW}); else restore a backup.",
        )
