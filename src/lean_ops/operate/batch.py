"""One batch from intent to checkpoint. Whatever step a crash follows, the next run finishes the same batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from lean_ops.lake.damage import naming_damage
from lean_ops.lake.staging import publish
from lean_ops.ledger.books import REBUILT, Attempt, Entry, RunStatus, error_rate_alert, history_row
from lean_ops.model.batch import Batch, Counts, Intent, Zone
from lean_ops.model.errors import TerminalError
from lean_ops.model.ledger import ledger_row
from lean_ops.operate.intent import last_batch_property, open_batch, published_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.snapshots import History
    from lean_ops.lake.staging import Staged
    from lean_ops.ledger.books import Books
    from lean_ops.model.registry import Gate
    from lean_ops.operate.plan import PlannedBatch
    from lean_ops.state.port import Checkpoint, Lease, StateStore


class Hop(Protocol):
    """A zone's way of staging a batch."""

    def stage(self, intent: Intent, resumed: bool, on_step: Callable[[str], None]) -> Staged:
        """Write the batch on a branch, with its errors; return it balanced."""


Listener: TypeAlias = "Callable[[Batch, str], None]"


def no_step(_: Batch, __: str) -> None:
    """Nobody listens to the steps."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a hop has come: by its store, and by its table if there is one."""

    checkpoint: Checkpoint
    table: History | None

    def allows(self, planned: PlannedBatch) -> bool:
        """Whether the plan still holds: nobody has done or begun this batch meanwhile."""
        begun = open_batch(self.checkpoint, self.table)
        if planned.resumes:
            return begun is not None and begun.batch == planned.batch
        published = self.table.checkpoint() if self.table else None
        return begun is None and (published.to_snapshot if published else None) == planned.batch.from_snapshot


class BatchRunner:
    """Takes a batch through its steps: intent, stage, balance, publish, ledger, checkpoint.

    `on_step` hears the batch and the name of each step once it is done.
    """

    def __init__(
        self,
        lake: Lake,
        books: Books,
        state: StateStore,
        hops: Mapping[Zone, Hop],
        clock: Callable[[], datetime],
        on_step: Listener = no_step,
    ) -> None:
        self._lake = lake
        self._books = books
        self._state = state
        self._hops = hops
        self._clock = clock
        self._on_step = on_step

    def run(self, planned: PlannedBatch, standing: Standing, gate: Gate, lease: Lease, run_id: str) -> Counts:
        """Do a planned batch, or finish what an earlier run began of it; its books."""
        stored, table = standing.checkpoint, standing.table
        # A store that knows nothing of the topic may have been lost: then rows of this batch may be there too.
        repeated = planned.resumes or stored.last_snapshot_id is None
        published = published_batch(table)
        if published is not None and published.batch == planned.batch:
            return self._book(published, repeated, lease, run_id)
        intent = open_batch(stored, table)
        if intent is None or intent.batch != planned.batch:
            intent = Intent(planned.batch, gate.declared, self._clock().isoformat())
            self._state.save_intent(intent, lease, self._clock())
            self._done(planned.batch, "intent stored", lease)
        return self._book(self._published(intent, repeated, lease), repeated, lease, run_id)

    def _published(self, intent: Intent, repeated: bool, lease: Lease) -> Intent:
        """Stage, balance and publish; the intent with its counts, as the commit keeps it."""
        batch = intent.batch
        with naming_damage(lambda: self._read_tables(batch)):
            staged = self._hops[batch.zone].stage(intent, repeated, lambda step: self._done(batch, step, lease))
        self._done(batch, "balanced", lease)
        done = replace(intent, counts=staged.counts, last_ingestion_ts=staged.last_ingestion_ts)
        publish(self._lake, staged.stage, staged.head, {**staged.table_properties, **last_batch_property(done)})
        self._done(batch, "published", lease)
        return done

    def _done(self, batch: Batch, step: str, lease: Lease) -> None:
        """Tell of a step, then make sure of the lease: whoever lost it must leave the next write to its new holder."""
        self._on_step(batch, step)
        self._state.confirm(lease, self._clock())

    def _read_tables(self, batch: Batch) -> Iterator[Table]:
        """The tables whose files staging a batch reads: where it comes from, where it goes, and what it refuses."""
        names, topic = self._lake.names, batch.topic
        errors = names.parse_errors if batch.zone is Zone.STANDARDIZED else names.curated_errors
        for name in (names.of_zone(batch.zone.source, topic), names.of_zone(batch.zone, topic), errors):
            yield self._lake.load(name)

    def standing(self, batch: Batch) -> Standing:
        """How far the batch's hop has come, now that the lease is ours."""
        return Standing(self._state.checkpoint(batch.pipeline_id), self._table(batch))

    def _table(self, batch: Batch) -> History | None:
        return self._lake.file.history(self._lake.names.of_zone(batch.zone, batch.topic))

    def _book(self, intent: Intent, resumed: bool, lease: Lease, run_id: str) -> Counts:
        """Everything that follows publication; each row once per batch, however often this is repeated."""
        batch, counts = intent.batch, intent.counts
        if counts is None:
            raise TerminalError(
                "the batch is published but its commit did not keep its counts",
                where=f"topic {batch.topic!r}, batch {batch.batch_id}",
                remedy="A property of the table was altered by hand: give it the value of the metadata file before.",
            )
        now = self._clock()
        self._books.append_once(
            (_ledger_entry(batch, counts, now), _history_entry(intent, counts, run_id, now)), resumed
        )
        self._done(batch, "ledger written", lease)
        alert = error_rate_alert(batch, counts)
        if alert is not None:
            self._books.raise_alert(alert, now, resumed)
        self._done(batch, "history written", lease)
        self._state.close_batch(intent, lease, self._clock())
        self._on_step(batch, "checkpoint moved")
        return counts


def _ledger_entry(batch: Batch, counts: Counts, now: datetime) -> Entry:
    snapshots = (batch.from_snapshot, batch.to_snapshot)
    row = ledger_row(batch.topic, batch.zone, batch.batch_id, snapshots, counts, now)
    return Entry("reconciliation_log", {**row, "kind": batch.kind}, ("topic_name", "batch_id"))


def _history_entry(intent: Intent, counts: Counts, run_id: str, now: datetime) -> Entry:
    batch = intent.batch
    attempt = Attempt(run_id, batch.topic, batch.zone, batch.batch_id, datetime.fromisoformat(intent.started_at))
    reason = None if intent.rebuilt is None else REBUILT
    row = history_row(attempt, RunStatus.SUCCEEDED, reason, intent.rebuilt or counts, now)
    return Entry("job_run_history", row, ("topic_name", "batch_id", "status"))
