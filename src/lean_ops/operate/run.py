"""Carrying a plan out: several topics at once, one lease each; a topic that fails does not stop the others."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog

from lean_ops.lake.spark import SparkStartError
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
    _began: dict[str, datetime] = field(default_factory=dict)
    _log: Any = field(default_factory=lambda: structlog.get_logger("lean_ops.run"))

    def execute(self, plan: RunPlan) -> Iterator[TopicOutcome]:
        """Each topic's outcome as it comes. An interrupt stops between commits: the next run continues."""
        with self.parts.leases.running(), ThreadPoolExecutor(self.workers, "topic") as pool:
            waiting: set[Future[TopicOutcome]] = set()
            try:
                waiting |= {pool.submit(self._topic, topic) for topic in plan.work}
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
        done: list[BatchOutcome] = []
        self._began[plan.topic] = self.parts.clock()
        try:
            with self.parts.leases.lease(plan.topic) as lease:
                if isinstance(lease, Held):
                    until = lease.by.expires_at.isoformat(timespec="seconds")
                    return self._skipped(plan, done, f"the lease is held by {lease.by.owner} until {until}")
                return self._with_lease(plan, lease, done)
        except SparkStartError as error:
            self._stopped.set()  # no other topic would fare better, and none is to blame
            return TopicOutcome(plan.topic, RunStatus.FAILED, str(error), tuple(done))
        except LostLeaseError as error:
            return TopicOutcome(plan.topic, RunStatus.FAILED, str(error), tuple(done))
        except Exception as error:
            # The edge of a topic: even what could not be recorded is told, and the other topics go on.
            self._log.error("topic failed", topic=plan.topic, exc_info=error)
            return TopicOutcome(plan.topic, RunStatus.FAILED, _in_words(error), tuple(done))

    def _with_lease(self, plan: TopicPlan, lease: Lease, done: list[BatchOutcome]) -> TopicOutcome:
        try:
            return self._work(plan, lease, done)
        except (LostLeaseError, SparkStartError):
            raise
        except Exception as error:
            if self._stopped.is_set():
                return self._interrupted(plan, done)
            return self._failed(plan, lease, done, error)

    def _work(self, plan: TopicPlan, lease: Lease, done: list[BatchOutcome]) -> TopicOutcome:
        if plan.problem is not None:
            raise plan.problem
        self.parts.settle_ingest(plan.topic)
        gate = self.parts.gate(plan.topic)
        if not gate.open:
            return self._skipped(plan, done, gate.reason)
        for planned in plan.batches:
            if self._stopped.is_set():
                return self._interrupted(plan, done)
            if not planned.resumes and planned.batch.schema_version != gate.schema_version:
                return self._skipped(plan, done, "its schema changed since the plan; the next run takes the new one")
            if not self.parts.batches.is_current(planned):
                return self._skipped(plan, done, "another run was faster; the next run takes what is left")
            done.append(self._batch(planned, gate, lease))
        return TopicOutcome(plan.topic, RunStatus.SUCCEEDED, None, tuple(done))

    def _batch(self, planned: PlannedBatch, gate: Gate, lease: Lease) -> BatchOutcome:
        counts = self.parts.batches.run(planned, gate, lease, self.run_id)
        return BatchOutcome(planned.batch.batch_id, planned.batch.zone, counts)

    def _interrupted(self, plan: TopicPlan, done: list[BatchOutcome]) -> TopicOutcome:
        return TopicOutcome(plan.topic, RunStatus.SKIPPED, "interrupted; the next run continues", tuple(done))

    def _skipped(self, plan: TopicPlan, done: list[BatchOutcome], reason: str) -> TopicOutcome:
        self._record(plan, done, RunStatus.SKIPPED, reason)
        return TopicOutcome(plan.topic, RunStatus.SKIPPED, reason, tuple(done))

    def _failed(self, plan: TopicPlan, lease: Lease, done: list[BatchOutcome], error: Exception) -> TopicOutcome:
        reason = _in_words(error)
        self._log.error("topic failed", topic=plan.topic, exc_info=error)
        failures = self.parts.state.count_failure(pipeline_id(Zone.STANDARDIZED, plan.topic), lease, self.parts.clock())
        self._record(plan, done, RunStatus.FAILED, reason)
        kind = error.alert_kind if isinstance(error, LeanOpsError) else LeanOpsError.alert_kind
        self._alert(Alert(f"{self.run_id}-{failures}", plan.topic, kind, "critical", reason))
        if failures >= self.failures_before_pause:
            reason = self._pause(plan.topic, failures, reason)
        return TopicOutcome(plan.topic, RunStatus.FAILED, reason, tuple(done))

    def _pause(self, topic: str, failures: int, reason: str) -> str:
        why = f"{failures} failures in a row, the last: {reason}"
        now = self.parts.clock().isoformat()
        self.parts.state.update_item(topic, lambda item: item.paused(why, now))
        self._alert(Alert(self.run_id, topic, "TOPIC_PAUSED", "critical", why))
        return f"{reason} (paused after {failures} failures in a row; `lean-ops resume {topic}` once it is mended)"

    def _record(self, plan: TopicPlan, done: list[BatchOutcome], status: RunStatus, reason: str) -> None:
        """A history row for the batch that was next; a failure to write it must not hide what it would say."""
        now = self.parts.clock()
        batch_id = plan.batches[len(done)].batch.batch_id if len(done) < len(plan.batches) else None
        began = self._began.get(plan.topic, now)
        attempt = Attempt(self.run_id, plan.topic, Zone.STANDARDIZED, batch_id, began)
        row = history_row(attempt, status, reason, None, now)
        try:
            self.parts.books.append("job_run_history", row)
        except Exception as error:
            self._log.error("not recorded", topic=plan.topic, status=str(status), reason=reason, exc_info=error)

    def _alert(self, alert: Alert) -> None:
        try:
            self.parts.books.raise_alert(alert, self.parts.clock())
        except Exception as error:
            self._log.error("alert not recorded", topic=alert.topic, message=alert.message, exc_info=error)


def _in_words(error: Exception) -> str:
    reason = str(error) if isinstance(error, LeanOpsError) else f"{type(error).__name__}: {error}"
    return reason.strip().partition("\n")[0][:2000]
