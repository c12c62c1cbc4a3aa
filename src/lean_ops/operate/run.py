"""Carrying a plan out: several topics at once, one lease each; a topic that fails does not stop the others."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from lean_ops.ledger.books import Alert, Attempt, RunStatus, history_row
from lean_ops.model.batch import Counts, Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Held, Lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from lean_ops.ledger.books import Books
    from lean_ops.model.registry import Gate
    from lean_ops.operate.batch import BatchRunner
    from lean_ops.operate.leases import LeaseKeeper
    from lean_ops.operate.plan import PlannedBatch, RunPlan, TopicPlan
    from lean_ops.state.port import StateStore


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """A batch that was done, and its books."""

    batch_id: str
    zone: Zone
    counts: Counts


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """What became of a topic's part of the plan."""

    topic: str
    status: RunStatus
    reason: str | None = None
    batches: tuple[BatchOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run works with."""

    batches: BatchRunner
    books: Books
    state: StateStore
    leases: LeaseKeeper
    gate: Callable[[str], Gate]
    settle_ingest: Callable[[str], object]
    cancel_jobs: Callable[[], None]
    clock: Callable[[], datetime]


@dataclass
class Run:
    """One execution of one plan."""

    parts: RunParts
    workers: int
    failures_before_pause: int
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def execute(self, plan: RunPlan) -> Iterator[TopicOutcome]:
        """Each topic's outcome as it comes. An interrupt stops between commits: the next run continues."""
        with self.parts.leases.running(), ThreadPoolExecutor(self.workers, "topic") as pool:
            waiting: set[Future[TopicOutcome]] = {pool.submit(self._topic, topic) for topic in plan.work}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            except BaseException:
                self._stopped.set()
                for future in waiting:
                    future.cancel()
                self.parts.cancel_jobs()
                raise

    def _topic(self, plan: TopicPlan) -> TopicOutcome:
        with self.parts.leases.lease(plan.topic) as lease:
            if isinstance(lease, Held):
                until = lease.by.expires_at.isoformat(timespec="seconds")
                return self._skipped(plan, f"the lease is held by {lease.by.owner} until {until}")
            try:
                return self._work(plan, lease)
            except LostLeaseError as error:
                return TopicOutcome(plan.topic, RunStatus.FAILED, str(error))
            except Exception as error:
                # The edge of a topic: whatever went wrong is recorded, and the other topics go on.
                if self._stopped.is_set():
                    return TopicOutcome(plan.topic, RunStatus.SKIPPED, "interrupted; the next run continues")
                return self._failed(plan, lease, error)

    def _work(self, plan: TopicPlan, lease: Lease) -> TopicOutcome:
        if plan.problem is not None:
            raise plan.problem
        self.parts.settle_ingest(plan.topic)
        gate = self.parts.gate(plan.topic)
        if not gate.open:
            return self._skipped(plan, gate.reason)
        done: list[BatchOutcome] = []
        for planned in plan.batches:
            if self._stopped.is_set():
                return TopicOutcome(plan.topic, RunStatus.SKIPPED, "interrupted; the next run continues", tuple(done))
            if not self.parts.batches.is_current(planned):
                return self._skipped(plan, "another run was faster; the next run takes what is left")
            done.append(self._batch(planned, gate, lease))
        return TopicOutcome(plan.topic, RunStatus.SUCCEEDED, None, tuple(done))

    def _batch(self, planned: PlannedBatch, gate: Gate, lease: Lease) -> BatchOutcome:
        counts = self.parts.batches.run(planned, gate, lease, self.run_id)
        return BatchOutcome(planned.batch.batch_id, planned.batch.zone, counts)

    def _skipped(self, plan: TopicPlan, reason: str) -> TopicOutcome:
        self._record(plan, RunStatus.SKIPPED, reason)
        return TopicOutcome(plan.topic, RunStatus.SKIPPED, reason)

    def _failed(self, plan: TopicPlan, lease: Lease, error: Exception) -> TopicOutcome:
        reason = str(error) if isinstance(error, LeanOpsError) else f"{type(error).__name__}: {error}"
        reason = reason.strip().partition("\n")[0][:2000]
        structlog.get_logger("lean_ops.run").error("topic failed", topic=plan.topic, exc_info=error)
        self._record(plan, RunStatus.FAILED, reason)
        failures = self.parts.state.count_failure(pipeline_id(Zone.STANDARDIZED, plan.topic), lease, self.parts.clock())
        key = f"{self.run_id}-{failures}"
        self.parts.books.raise_alert(Alert(key, plan.topic, "JOB_FAILED", "critical", reason), self.parts.clock())
        if failures >= self.failures_before_pause:
            reason = self._pause(plan.topic, failures, reason)
        return TopicOutcome(plan.topic, RunStatus.FAILED, reason)

    def _pause(self, topic: str, failures: int, reason: str) -> str:
        why = f"{failures} failures in a row, the last: {reason}"
        now = self.parts.clock()
        self.parts.state.update_item(topic, lambda item: item.paused(why, now.isoformat()))
        self.parts.books.raise_alert(Alert(self.run_id, topic, "TOPIC_PAUSED", "critical", why), now)
        return f"{reason} (paused after {failures} failures in a row; `lean-ops resume {topic}` once it is mended)"

    def _record(self, plan: TopicPlan, status: RunStatus, reason: str) -> None:
        now = self.parts.clock()
        batch_id = plan.batches[0].batch.batch_id if plan.batches else None
        attempt = Attempt(self.run_id, plan.topic, Zone.STANDARDIZED, batch_id, now)
        self.parts.books.append("job_run_history", history_row(attempt, status, reason, None, now))
