"""Where every topic stands, read off the catalog's and the state's files by the standard library alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.sqlite_file import database_error, open_to_read
from lean_ops.state.port import Checkpoint, CheckpointReader
from lean_ops.state.sqlite_connection import WITHOUT_BACKUP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.lake.snapshots import History, Outline
    from lean_ops.model.batch import Intent
    from lean_ops.model.tables import Names, TableName


class StateReader(CheckpointReader, Protocol):
    """What reading asks of the state store."""

    def item(self, topic: str) -> RegistryItem | None:
        """What is known of a topic."""

    def items(self) -> dict[str, RegistryItem]:
        """Every topic known, by name."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a zone's source holds after a checkpoint; `problem` says why it can't be counted."""

    records: int | None = 0
    snapshots: int | None = 0
    problem: str | None = None


class SeenTable(Protocol):
    """A topic's table in a zone, as far as its status is concerned; without an outline there is none."""

    @property
    def outline(self) -> Outline | None:
        """It in short."""

    @property
    def problem(self) -> str | None:
        """Why it can't be read."""

    @property
    def history(self) -> History | None:
        """All of its history, for what waits in it."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose history is read only if it must be."""

    name: str
    location: str | None
    catalog: CatalogReader
    outline: Outline | None = None
    problem: str | None = None

    @property
    def history(self) -> History | None:
        return self.catalog.read_history(self.name, self.location) if self.location else None


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic: its gate, its rows in each zone, what waits, and who works on it.

    What has no zone in its name is about the way to Standardized.
    """

    topic: str
    gate: str
    raw_rows: int | None
    standardized_rows: int | None
    curated_rows: int | None
    pending: int | None
    snapshots_waiting: int | None
    checkpoint_at: datetime | None
    open_batch: str | None
    failures: int
    curated_pending: int | None
    curated_checkpoint_at: datetime | None
    curated_open_batch: str | None
    curated_failures: int
    lease: str | None
    problem: str | None


def topics_of(catalog: CatalogReader, names: Names, state: StateReader | None) -> list[str]:
    """Every topic there is: registered, or with a RAW table."""
    registered = state.items() if state else {}
    return sorted({*registered, *catalog.raw_locations(names)})


def lake_status(
    catalog: CatalogReader, names: Names, state: StateReader | None, holders: Mapping[str, str]
) -> tuple[TopicStatus, ...]:
    """Every topic's status, by name; nothing is kept for the next time, because looking writes nothing."""
    items, checkpoints = (state.items(), state.checkpoints()) if state else ({}, {})
    curated, standardized = catalog.locations(names.curated_database), catalog.locations(names.standardized_database)
    raw = catalog.raw_locations(names)

    def status(topic: str) -> TopicStatus:
        return topic_status(
            items.get(topic, RegistryItem(topic)),
            _seen(catalog, names.raw(topic), raw.get(topic)),
            _seen(catalog, names.standardized(topic), standardized.get(topic)),
            _seen(catalog, names.curated(topic), curated.get(topic)),
            checkpoints,
            holders.get(topic),
        )

    return tuple(status(topic) for topic in sorted({*items, *raw}))


def _seen(catalog: CatalogReader, name: TableName, location: str | None) -> _Table:
    """The table at a metadata file; one that is damaged must not hide the others."""
    try:
        outline = catalog.outlines.outline(str(name), location) if location else None
    except LeanOpsError as error:
        return _Table(str(name), location, catalog, problem=str(error))
    return _Table(str(name), location, catalog, outline)


def topic_status(
    item: RegistryItem,
    raw: SeenTable,
    standardized: SeenTable,
    curated: SeenTable,
    checkpoints: Mapping[str, Checkpoint],
    lease: str | None,
) -> TopicStatus:
    """One topic's status. Each table's own history says how far it is; the store is its cache."""
    to_standardize = _waiting(raw, standardized)
    to_curate = _waiting(standardized, curated) if item.curated else Waiting(None, None)
    is_there = item.curated or curated.outline is not None  # else the topic's way ends at Standardized
    stored, stored_curated = (
        checkpoints.get(name, Checkpoint(name))
        for name in (pipeline_id(zone, item.topic_name) for zone in (Zone.STANDARDIZED, Zone.CURATED))
    )
    problems = (raw.problem, standardized.problem, curated.problem, to_standardize.problem, to_curate.problem)
    return TopicStatus(
        topic=item.topic_name,
        gate=gate_words(item),
        raw_rows=_rows(raw),
        standardized_rows=_rows(standardized),
        curated_rows=_rows(curated) if is_there else None,
        pending=to_standardize.records,
        snapshots_waiting=to_standardize.snapshots,
        checkpoint_at=_checkpoint_time(standardized.outline),
        open_batch=_open_batch(stored),
        failures=stored.failures,
        curated_pending=to_curate.records,
        curated_checkpoint_at=_checkpoint_time(curated.outline),
        curated_open_batch=_open_batch(stored_curated),
        curated_failures=stored_curated.failures,
        lease=lease,
        problem="; ".join(problem for problem in problems if problem) or None,
    )


def waiting_after(source: History | None, checkpoint: int | None) -> Waiting:
    """A source's records and appends after a checkpoint (None: from the beginning)."""
    if source is None or source.head is None:
        return Waiting()
    try:
        appends = [one for one in source.between(checkpoint, source.head) if one.operation == "append"]
        return Waiting(source.records_between(checkpoint, source.head), len(appends))
    except LeanOpsError as error:
        return Waiting(None, None, str(error))


def _waiting(source: SeenTable, target: SeenTable) -> Waiting:
    """What a zone's table has not read of its source; nobody can say if one of them can't be read."""
    if source.problem is not None or target.problem is not None:
        return Waiting(None, None)
    published = target.outline.checkpoint if target.outline else None
    checkpoint = published.to_snapshot if published else None
    if source.outline is None or source.outline.head == checkpoint:
        return Waiting()
    try:
        return waiting_after(source.history, checkpoint)
    except LeanOpsError as error:
        return Waiting(None, None, str(error))


def _rows(table: SeenTable) -> int | None:
    """Its live rows, by its own metadata; None if nobody can say."""
    if table.problem is not None:
        return None
    return table.outline.rows if table.outline else 0


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


def waits_because(item: RegistryItem, zone: Zone, checkpoint: int | None, begun: Intent | None) -> str:
    """Why a zone's batches have not read what its checkpoint does not cover."""
    if not item.processing_enabled:
        return f"gate shut: {gate_words(item)}"
    if begun is not None:
        return f"batch {begun.batch.batch_id} is open: the next run finishes it"
    if checkpoint is None:
        return f"no {'Curated ' if zone is Zone.CURATED else ''}batch of this topic has run yet"
    source = "Standardized" if zone is Zone.CURATED else "RAW"
    return f"newer than the checkpoint ({source} snapshot {checkpoint})"


def ends_because(item: RegistryItem, has_table: bool) -> str | None:
    """Why a topic does not go on from Standardized; None if it does, or if only its Curated table is there to tell."""
    if item.curated or (item.schema_version is None and has_table):
        return None
    if item.schema_version is None:
        return "no schema is known that leads to Curated"
    return f"schema {item.schema_version} ends at Standardized"


def lease_holders(state_file: Path, now: datetime, is_gone: Callable[[str], bool]) -> dict[str, str]:
    """Who works on which topic at this moment; expired leases and those of ended processes don't count."""
    if not state_file.is_file():
        return {}
    try:
        with closing(open_to_read(state_file)) as db:
            leases = _leases(db)
    except sqlite3.Error as error:
        raise database_error(state_file, error, WITHOUT_BACKUP) from error
    return {
        topic: owner
        for topic, owner, expires_at in leases
        if datetime.fromisoformat(expires_at) > now and not is_gone(owner)
    }


def _leases(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'locks'").fetchone():
        return []
    return db.execute("SELECT topic_name, owner, expires_at FROM locks WHERE owner IS NOT NULL").fetchall()


def _open_batch(stored: Checkpoint) -> str | None:
    return stored.intent.batch.batch_id if stored.intent else None


def _checkpoint_time(table: Outline | None) -> datetime | None:
    ms = table.checkpoint_ms if table else None
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
