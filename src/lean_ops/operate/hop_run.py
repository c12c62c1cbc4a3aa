"""One hop of a topic: its batches one after another, and what is recorded when they fail or have to wait."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import structlog

from lean_ops.lake.spark import SparkStartError
from lean_ops.ledger.books import Alert, Attempt, RunStatus, history_row
from lean_ops.model.batch import Counts, Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError, of_the_system
from lean_ops.state.errors import LostLeaseError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from datetime import datetime

    from lean_ops.lake.spark import SparkEndedError
    from lean_ops.ledger.books import Books
    from lean_ops.model.registry import Gate
    from lean_ops.operate.batch import BatchRunner, Standing
    from lean_ops.operate.leases import LeaseKeeper
    from lean_ops.operate.plan import HopPlan, PlannedBatch, TopicPlan
    from lean_ops.state.port import Lease, StateStore

_NO_ROOM: Final = os.strerror(errno.ENOSPC)
_INTERRUPTED: Final = "interrupted; the next run continues"


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """A batch that was done, and its books."""

    batch_id: str
    zone: Zone
    counts: Counts


@dataclass(frozen=True, slots=True)
class HopOutcome:
    """What became of one hop's part of the plan."""

    zone: Zone
    status: RunStatus
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run works with."""

    batches: BatchRunner
    books: Books
    state: StateStore
    leases: LeaseKeeper
    gate: Callable[[str], Gate]
    plan_hop: Callable[[str, Zone, Gate], HopPlan]
    settle_ingest: Callable[[str], object]
    cancel_jobs: Callable[[], None]
    clock: Callable[[], datetime]
    spark_failure: Callable[[], SparkEndedError | None] = lambda: None
    look_after_curated: Callable[[str, str, Lease, str], None] = lambda *_: None
    gathering: Callable[[], AbstractContextManager[None]] = nullcontext
    tidy: Callable[[str], None] = lambda _: None
    finish_rebuild: Callable[[str, Lease, str], bool] = lambda *_: False


@dataclass(slots=True)
class TopicAtWork:
    """A topic while its lease is held: `done` grows with each batch, `batch_id` is the one at hand.

    Of a topic that works `alone` it is known that Spark's end is its own doing.
    """

    plan: TopicPlan
    lease: Lease
    began: datetime
    zone: Zone
    batch_id: str | None
    done: list[BatchOutcome] = field(default_factory=list)
    alone: bool = False

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.plan.topic


class HopRun:
    """Takes the hops of one run; a failure is counted, told, and after too many of them pauses the topic."""

    def __init__(self, parts: RunParts, run_id: str, failures_before_pause: int, stopped: threading.Event) -> None:
        self._parts = parts
        self._run_id = run_id
        self._failures_before_pause = failures_before_pause
        self._stopped = stopped
        self._log: Any = structlog.get_logger("lean_ops.run")

    def take_all(self, work: TopicAtWork) -> list[HopOutcome]:
        """The topic's hops in their order; one that fails does not keep the next from what is already there.

        LostLeaseError, SparkStartError and, unless the topic is alone, SparkEndedError are the caller's: they end
        more than a hop.
        """
        try:
            self._parts.settle_ingest(work.topic)
            is_other = self._parts.finish_rebuild(work.topic, work.lease, self._run_id)
            gate = self._parts.gate(work.topic)
        except Exception as error:
            return [self._broken_off(work, error)]
        if not gate.open:
            return [self._skipped(work, gate.reason)]
        plan = planned_anew(work.plan) if is_other else work.plan
        return [self._take(work, hop, gate) for hop in plan.work]

    def _take(self, work: TopicAtWork, hop: HopPlan, gate: Gate) -> HopOutcome:
        work.began, work.zone, work.batch_id = self._parts.clock(), hop.zone, first_batch(hop)
        try:
            reason = self._batches(work, hop, gate)
            if reason is None and hop.zone is Zone.CURATED:
                self._parts.look_after_curated(work.topic, gate.schema_version, work.lease, self._run_id)
        except Exception as error:
            return self._broken_off(work, error)
        return HopOutcome(hop.zone, RunStatus.SUCCEEDED) if reason is None else self._skipped(work, reason)

    def _broken_off(self, work: TopicAtWork, error: Exception) -> HopOutcome:
        """An error is a failure of the hop, unless it ends the topic's work or comes of the run being stopped."""
        if isinstance(error, LostLeaseError | SparkStartError):
            raise error
        if self._stopped.is_set():
            return HopOutcome(work.zone, RunStatus.SKIPPED, _INTERRUPTED)
        ended = self._parts.spark_failure()
        if ended is not None and not work.alone:
            raise ended from error
        return self._failed(work, ended or error)

    def _batches(self, work: TopicAtWork, hop: HopPlan, gate: Gate) -> str | None:
        """Why the hop could not go on; None if it is done."""
        if hop.follows:
            hop = self._parts.plan_hop(work.topic, hop.zone, gate)
        if hop.problem is not None:
            raise hop.problem
        for planned in hop.batches:
            work.batch_id = planned.batch.batch_id
            standing = self._parts.batches.standing(planned.batch)
            reason = self._why_not(planned, standing, gate)
            if reason is not None:
                return reason
            counts = self._parts.batches.run(planned, standing, gate, work.lease, self._run_id)
            work.done.append(BatchOutcome(planned.batch.batch_id, hop.zone, counts))
        return None

    def _why_not(self, planned: PlannedBatch, standing: Standing, gate: Gate) -> str | None:
        if self._stopped.is_set():
            return _INTERRUPTED
        if not planned.resumes and planned.batch.schema_version != gate.schema_version:
            return "its schema changed since the plan; the next run takes the new one"
        if not standing.allows(planned):
            return "another run was faster; the next run takes what is left"
        return None

    def _skipped(self, work: TopicAtWork, reason: str) -> HopOutcome:
        if reason != _INTERRUPTED:
            self._record(work, RunStatus.SKIPPED, reason)
        return HopOutcome(work.zone, RunStatus.SKIPPED, reason)

    def _failed(self, work: TopicAtWork, error: Exception) -> HopOutcome:
        reason, zone = in_words(error), work.zone
        self._log.error("hop failed", topic=work.topic, zone=str(zone), exc_info=error)
        now = self._parts.clock()
        failures = self._parts.state.count_failure(pipeline_id(zone, work.topic), work.lease, now)
        self._record(work, RunStatus.FAILED, reason)
        kind = error.alert_kind if isinstance(error, LeanOpsError) else LeanOpsError.alert_kind
        self._alert(Alert(f"{self._run_id}-{zone}-{failures}", work.topic, kind, "critical", reason))
        if failures >= self._failures_before_pause:
            reason = self._pause(work.topic, zone, failures, reason)
        return HopOutcome(zone, RunStatus.FAILED, reason)

    def _pause(self, topic: str, zone: Zone, failures: int, reason: str) -> str:
        why = f"{failures} failures in a row, the last: {reason}"
        now = self._parts.clock().isoformat()
        self._parts.state.update_item(topic, lambda item: item.paused(why, now))
        self._alert(Alert(f"{self._run_id}-{zone}", topic, "TOPIC_PAUSED", "critical", why))
        return f"{reason} (paused after {failures} failures in a row; `lean-ops resume {topic}` once it is mended)"

    def _record(self, work: TopicAtWork, status: RunStatus, reason: str) -> None:
        self.record(Attempt(self._run_id, work.topic, work.zone, work.batch_id, work.began), status, reason)

    def record(self, attempt: Attempt, status: RunStatus, reason: str) -> None:
        """A history row for what was not done; a failure to write it must not hide what it would say."""
        try:
            row = history_row(attempt, status, reason, None, self._parts.clock())
            self._parts.books.append("job_run_history", row)
        except Exception as error:
            self._log.error("not recorded", topic=attempt.topic, status=str(status), reason=reason, exc_info=error)

    def _alert(self, alert: Alert) -> None:
        try:
            self._parts.books.raise_alert(alert, self._parts.clock())
        except Exception as error:
            self._log.error("alert not recorded", topic=alert.topic, message=alert.message, exc_info=error)


def planned_anew(plan: TopicPlan) -> TopicPlan:
    """The same topic, its batches to be found out when its turn comes."""
    return replace(plan, hops=tuple(replace(hop, batches=(), follows=True) for hop in plan.hops))


def first_batch(hop: HopPlan) -> str | None:
    """The id of the batch that the hop begins with, if the plan knows it."""
    return hop.batches[0].batch.batch_id if hop.batches else None


def in_words(error: Exception) -> str:
    """An error in a line; one of the JVM has its own words in the second line of Python's."""
    if _NO_ROOM in str(error) and not isinstance(error, LeanOpsError):  # Java has no error number for it
        error = OSError(errno.ENOSPC, _NO_ROOM)
    if isinstance(error, OSError) and error.errno is not None:
        error = of_the_system(error)
    if isinstance(error, LeanOpsError):
        return "; ".join(line.strip() for line in str(error).splitlines())[:2000]
    reason = f"{type(error).__name__}: {error}"
    first, *rest = reason.strip().splitlines() or [""]
    told_by_java = rest[0].removeprefix(":") if rest and rest[0].startswith(": ") else ""
    return f"{first}{told_by_java}"[:2000]
