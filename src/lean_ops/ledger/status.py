"""Where every topic stands, read off the catalog's and the state's files by the standard library alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from lean_ops.lake.catalog_file import read_history
from lean_ops.lake.snapshots import BATCH_ID_PROPERTY, TO_SNAPSHOT_PROPERTY
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.state.port import Checkpoint, CheckpointReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from lean_ops.lake.catalog_file import CatalogFile
    from lean_ops.lake.snapshots import History
    from lean_ops.model.tables import Names


class StateReader(CheckpointReader, Protocol):
    """What reading asks of the state store."""

    def item(self, topic: str) -> RegistryItem | None:
        """What is known of a topic."""

    def items(self) -> dict[str, RegistryItem]:
        """Every topic known, by name."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What RAW holds after a checkpoint; `problem` says why it can't be counted."""

    records: int | None = 0
    snapshots: int | None = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic: its gate, its rows in each zone, what waits, and who works on it."""

    topic: str
    gate: str
    raw_rows: int | None
    standardized_rows: int | None
    pending: int | None
    snapshots_waiting: int | None
    checkpoint_at: datetime | None
    open_batch: str | None
    failures: int
    lease: str | None
    problem: str | None


def topics_of(catalog: CatalogFile, names: Names, state: StateReader | None) -> list[str]:
    """Every topic there is: registered, or with a RAW table."""
    registered = state.items() if state else {}
    return sorted({*registered, *catalog.raw_locations(names)})


def lake_status(
    catalog: CatalogFile, names: Names, state: StateReader | None, holders: Mapping[str, str]
) -> tuple[TopicStatus, ...]:
    """Every topic's status, by name; each metadata file is read once."""
    items, checkpoints = (state.items(), state.checkpoints()) if state else ({}, {})
    raw, standardized = catalog.raw_locations(names), catalog.locations(names.standardized_database)

    def status(topic: str) -> TopicStatus:
        item = items.get(topic, RegistryItem(topic))
        stored = checkpoints.get(pipeline_id(Zone.STANDARDIZED, topic), Checkpoint(topic))
        try:
            histories = (
                _history(str(names.raw(topic)), raw.get(topic)),
                _history(str(names.standardized(topic)), standardized.get(topic)),
            )
        except LeanOpsError as error:  # one damaged table must not hide the others
            return _unreadable(item, stored, holders.get(topic), str(error))
        return topic_status(item, *histories, stored, holders.get(topic))

    return tuple(status(topic) for topic in sorted({*items, *raw}))


def topic_status(
    item: RegistryItem, raw: History | None, standardized: History | None, stored: Checkpoint, lease: str | None
) -> TopicStatus:
    """One topic's status. The Standardized table's own history says how far it is; the store is its cache."""
    published = standardized.checkpoint() if standardized else None
    waiting = waiting_after(raw, published.to_snapshot if published else None)
    return TopicStatus(
        topic=item.topic_name,
        gate=gate_words(item),
        raw_rows=raw.total_records if raw else 0,
        standardized_rows=standardized.total_records if standardized else 0,
        pending=waiting.records,
        snapshots_waiting=waiting.snapshots,
        checkpoint_at=_checkpoint_time(standardized),
        open_batch=stored.intent.batch.batch_id if stored.intent else None,
        failures=stored.failures,
        lease=lease,
        problem=waiting.problem,
    )


def waiting_after(raw: History | None, checkpoint: int | None) -> Waiting:
    """RAW's records and appends after a checkpoint (None: from the beginning)."""
    if raw is None or raw.head is None:
        return Waiting()
    try:
        appends = [snapshot for snapshot in raw.between(checkpoint, raw.head) if snapshot.operation == "append"]
        return Waiting(raw.records_between(checkpoint, raw.head), len(appends))
    except LeanOpsError as error:
        return Waiting(None, None, str(error))


def gate_words(item: RegistryItem) -> str:
    """`open`, or why it is shut."""
    if item.processing_enabled:
        return "open" if item.status is Status.READY else f"open ({item.status})"
    words = [] if item.status in {Status.READY, Status.REBUILDING} else [str(item.status)]
    if item.status is Status.ERROR and item.last_error:
        words = [f"{item.status}: {item.last_error}"]
    if item.flow is Flow.PAUSED:
        words.append(f"PAUSED: {item.flow_reason or 'no reason given'}")
    return ", ".join(words)


def lease_holders(state_file: Path, now: datetime, is_gone: Callable[[str], bool]) -> dict[str, str]:
    """Who works on which topic at this moment; expired leases and those of ended processes don't count."""
    if not state_file.is_file():
        return {}
    with closing(sqlite3.connect(f"{state_file.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'locks'").fetchone():
            return {}
        leases = db.execute("SELECT topic_name, owner, expires_at FROM locks WHERE owner IS NOT NULL").fetchall()
    return {
        topic: owner
        for topic, owner, expires_at in leases
        if datetime.fromisoformat(expires_at) > now and not is_gone(owner)
    }


def _history(table: str, location: str | None) -> History | None:
    return read_history(table, location) if location else None


def _checkpoint_time(standardized: History | None) -> datetime | None:
    """When the checkpoint got where it is; maintenance carries it on, so the oldest snapshot that has it counts."""
    published = standardized.checkpoint() if standardized else None
    if standardized is None or published is None:
        return None
    words = {BATCH_ID_PROPERTY: published.batch_id, TO_SNAPSHOT_PROPERTY: str(published.to_snapshot)}
    carriers = [
        snapshot.timestamp_ms
        for snapshot in standardized.ancestors(standardized.head)
        if words.items() <= snapshot.summary.items()
    ]
    return datetime.fromtimestamp(carriers[-1] / 1000, UTC)


def _unreadable(item: RegistryItem, stored: Checkpoint, lease: str | None, problem: str) -> TopicStatus:
    return TopicStatus(
        topic=item.topic_name,
        gate=gate_words(item),
        raw_rows=None,
        standardized_rows=None,
        pending=None,
        snapshots_waiting=None,
        checkpoint_at=None,
        open_batch=stored.intent.batch.batch_id if stored.intent else None,
        failures=stored.failures,
        lease=lease,
        problem=problem,
    )
