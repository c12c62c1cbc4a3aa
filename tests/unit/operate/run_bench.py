"""A run with fake batches and books on a real store, and plans to give it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest

from lean_ops.ledger.books import Alert, RunStatus
from lean_ops.model.batch import Batch, Counts, Zone, pipeline_id
from lean_ops.model.errors import TransientError
from lean_ops.model.registry import Gate
from lean_ops.operate.hop_run import BatchOutcome, RunParts
from lean_ops.operate.leases import LeaseKeeper
from lean_ops.operate.plan import HopPlan, PlannedBatch, RunPlan, TopicPlan
from lean_ops.operate.run import Run, TopicOutcome
from lean_ops.state.port import Lease
from lean_ops.state.sqlite import SqliteStateStore
from lean_ops.state.sqlite_connection import StateFile

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
OPEN = Gate(open=True, reason="", schema_version="1.0.0", declared=("/a",))
COUNTS = Counts(records_in=5, inserted=3, duplicates=1, errors=1)
Act = Callable[[PlannedBatch, Lease], Counts]


def done(_: PlannedBatch, __: Lease) -> Counts:
    return COUNTS


def fails(error: BaseException) -> Act:
    def act(_: PlannedBatch, __: Lease) -> Counts:
        raise error

    return act


class FakeStanding(NamedTuple):
    """Says of every plan whether it still holds."""

    allowed: bool

    def allows(self, _: PlannedBatch) -> bool:
        return self.allowed


class FakeBatches:
    """Runs batches by what the test says of a topic, or of one of its hops; remembers which."""

    def __init__(self) -> None:
        self.acts: dict[str | tuple[str, Zone], Act] = {}
        self.outdated: set[str] = set()
        self.ran: list[PlannedBatch] = []

    def standing(self, batch: Batch) -> FakeStanding:
        return FakeStanding(batch.topic not in self.outdated)

    def run(self, planned: PlannedBatch, standing: FakeStanding, gate: Gate, lease: Lease, run_id: str) -> Counts:
        assert standing.allowed
        topic, zone = planned.batch.topic, planned.batch.zone
        assert gate == OPEN
        assert lease.topic == topic
        assert run_id
        self.ran.append(planned)
        return self.acts.get((topic, zone), self.acts.get(topic, done))(planned, lease)


class FakeBooks:
    """Keeps rows and alerts; refuses those of the topics in `broken_for`."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.alerts: list[Alert] = []
        self.broken_for: set[str] = set()

    def append(self, table: str, row: dict[str, Any]) -> None:
        assert table == "job_run_history"
        if row["topic_name"] in self.broken_for:
            raise TransientError("20 commits in a row lost")
        self.rows.append(row)

    def raise_alert(self, alert: Alert, now: datetime, repeated: bool = False) -> None:
        assert (now, repeated) == (NOW, False)
        self.alerts.append(alert)


class FakePlanner:
    """Plans hops that follow by what the test says of a topic; remembers after how many batches it was asked."""

    def __init__(self, ran: list[PlannedBatch]) -> None:
        self.hops: dict[str, HopPlan] = {}
        self.asked: list[tuple[str, Zone, Gate, int]] = []
        self._ran = ran

    def plan_hop(self, topic: str, zone: Zone, gate: Gate) -> HopPlan:
        self.asked.append((topic, zone, gate, len(self._ran)))
        return self.hops.get(topic, HopPlan(zone))


class QuickFile(StateFile):
    """The store's file without waiting for the disk."""

    def connection(self) -> sqlite3.Connection:
        db = super().connection()
        db.execute("PRAGMA synchronous = OFF")
        return db


def quick_store(file: Path) -> SqliteStateStore:
    """The embedded store, on such a file."""
    store = SqliteStateStore(file, 300, lambda _: False)
    store._file = QuickFile(file)
    return store


class Bench:
    """A run with fake batches and books, and a real store and lease keeper."""

    def __init__(self, folder: Path) -> None:
        self.state = quick_store(folder / "state.db")
        self.state.items()
        self.batches = FakeBatches()
        self.planner = FakePlanner(self.batches.ran)
        self.books = FakeBooks()
        self.gates: dict[str, Gate] = {}
        self.settled: list[str] = []
        self.tidied: list[tuple[str, int]] = []
        self.gathered: list[int] = []
        self.ask_gate: Callable[[str], Gate] = lambda topic: self.gates.get(topic, OPEN)
        self.settle: Callable[[str], object] = self.settled.append
        self.cancelled = Event()
        self.keeper: type[LeaseKeeper] = LeaseKeeper

    def new_run(self, workers: int = 2, run_id: str = "run") -> Run:
        batches: Any = self.batches
        books: Any = self.books
        parts = RunParts(
            batches,
            books,
            self.state,
            self.keeper(self.state, "ann", lambda: NOW, 60),
            self.ask_gate,
            self.planner.plan_hop,
            self.settle,
            self.cancelled.set,
            lambda: NOW,
            gathering=self.gathering,
            tidy=lambda run_id: self.tidied.append((run_id, len(self.batches.ran))),
        )
        return Run(parts, workers, 3, run_id)

    @contextmanager
    def gathering(self) -> Iterator[None]:
        yield
        self.gathered.append(len(self.batches.ran))

    def run(self, *plans: TopicPlan, **how: Any) -> dict[str, TopicOutcome]:
        outcomes = list(self.new_run(**how).execute(RunPlan(plans)))
        assert len(outcomes) == len(plans)
        return {outcome.topic: outcome for outcome in outcomes}

    def failures(self, topic: str, zone: Zone = Zone.STANDARDIZED) -> int:
        return self.state.checkpoint(pipeline_id(zone, topic)).failures

    def is_free(self, topic: str) -> bool:
        return isinstance(self.state.acquire(topic, "looking", NOW), Lease)


def hop_of(topic: str, *ends: int, zone: Zone = Zone.STANDARDIZED) -> HopPlan:
    """A hop whose batches end at the given snapshots of its source."""
    starts = (None, *ends[:-1])
    batches = (Batch(topic, zone, start, end, "1.0.0") for start, end in zip(starts, ends, strict=True))
    return HopPlan(zone, tuple(PlannedBatch(batch, 5) for batch in batches))


def to_do(topic: str, *ends: int) -> TopicPlan:
    return TopicPlan(topic, OPEN, (hop_of(topic, *(ends or (1,))),))


def batches_of(plan: TopicPlan) -> list[PlannedBatch]:
    return [planned for hop in plan.hops for planned in hop.batches]


def succeeded(plan: TopicPlan) -> TopicOutcome:
    outcomes = (BatchOutcome(one.batch.batch_id, one.batch.zone, COUNTS) for one in batches_of(plan))
    return TopicOutcome(plan.topic, RunStatus.SUCCEEDED, None, tuple(outcomes))


def lose(bench: Bench, topic: str) -> Lease:
    """Another runner takes the topic over, as after a long sleep of this one."""
    taken = bench.state.acquire(topic, "bob", NOW + timedelta(hours=1))
    assert isinstance(taken, Lease)
    return taken


def interrupt(outcomes: Iterator[TopicOutcome]) -> None:
    """What Ctrl-C does to whoever waits for the next outcome."""
    generator: Any = outcomes
    with pytest.raises(KeyboardInterrupt):
        generator.throw(KeyboardInterrupt())
