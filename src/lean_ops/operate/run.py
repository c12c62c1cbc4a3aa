"""Carrying a plan out: several topics at once, one lease each; a topic that fails does not stop the others."""

from __future__ import annotations

import gc
import threading
import uuid
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import structlog

from lean_ops.lake.spark import SparkEndedError, SparkStartError
from lean_ops.ledger.books import Attempt, RunStatus
from lean_ops.operate.hop_run import (
    BatchOutcome,
    HopOutcome,
    HopRun,
    RunParts,
    TopicAtWork,
    first_batch,
    in_words,
    planned_anew,
)
from lean_ops.operate.room import Room
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Held, Lease

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from lean_ops.operate.plan import RunPlan, TopicPlan

_CANCEL_AGAIN_SECONDS: Final = 0.2
# Tables' metadata is kept, and there is much of it: looking through all of it at the usual rate took three of a hundred
# seconds of seven hundred topics. Hardly any of what a run leaves behind refers to itself.
_COLLECTED_AFTER: Final = (20_000, 20, 50)


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """What became of a topic's part of the plan."""

    topic: str
    status: RunStatus
    reason: str | None = None
    batches: tuple[BatchOutcome, ...] = ()


@dataclass
class Run:
    """One execution of one plan."""

    parts: RunParts
    workers: int
    failures_before_pause: int
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _broken_off: list[tuple[TopicPlan, list[BatchOutcome]]] = field(default_factory=list)
    _log: Any = field(default_factory=lambda: structlog.get_logger("lean_ops.run"))

    @cached_property
    def _hops(self) -> HopRun:
        return HopRun(self.parts, self.run_id, self.failures_before_pause, self._stopped)

    def execute(self, plan: RunPlan) -> Iterator[TopicOutcome]:
        """Each topic's outcome as it comes. An interrupt stops between commits: the next run continues.

        Topics that Spark was working on when it ended are tried once more, each alone with a new one: so an end
        that was nobody's fault does no harm, and a topic that brings Spark down is found out.
        """
        room = Room(self.workers)
        with _seldom_collected(), self.parts.leases.running(), ThreadPoolExecutor(room.places, "topic") as pool:
            begun = (pool.submit(self._in_turn, room, topic) for topic in plan.work)
            waited_for = _until_few_are_left(len(plan.work), room.places)
            with closing(self._outcomes(begun)) as outcomes:  # whoever goes away early ends the work, too
                with self.parts.gathering() if waited_for else nullcontext():
                    yield from islice(outcomes, waited_for)
                yield from outcomes
            for topic, done in self._broken_off:
                yield from self._outcomes([pool.submit(self._topic, planned_anew(topic), done, True)])
            self.parts.tidy(self.run_id)

    def _outcomes(self, begun: Iterable[Future[TopicOutcome | None]]) -> Generator[TopicOutcome]:
        waiting: set[Future[TopicOutcome | None]] = set()
        try:
            for future in begun:  # one by one: whoever interrupts this must find those that have begun
                waiting.add(future)
            for future in as_completed(waiting):
                waiting.discard(future)
                if (outcome := future.result()) is not None:
                    yield outcome
        except BaseException:
            self._stopped.set()
            for future in waiting:
                future.cancel()
            while waiting:  # a thread between two jobs would begin another one
                self.parts.cancel_jobs()
                _, waiting = wait(waiting, timeout=_CANCEL_AGAIN_SECONDS)
            raise

    def _in_turn(self, room: Room, plan: TopicPlan) -> TopicOutcome | None:
        with room.of(plan):
            return self._topic(plan, [], False)

    def _topic(self, plan: TopicPlan, done: list[BatchOutcome], alone: bool) -> TopicOutcome | None:
        """The topic's outcome, `done` before included; None if Spark ended and it is yet to be tried alone."""
        try:
            with self.parts.leases.lease(plan.topic) as lease:
                if isinstance(lease, Held):
                    return self._left_to_another(plan, lease.by)
                hop = plan.work[0]
                work = TopicAtWork(plan, lease, self.parts.clock(), hop.zone, first_batch(hop), done, alone)
                return _outcome(plan.topic, self._hops.take_all(work), done)
        except SparkEndedError as error:
            self._log.warning("Spark ended", topic=plan.topic, reason=str(error))
            self._broken_off.append((plan, done))
            return None
        except SparkStartError as error:
            self._stopped.set()  # no other topic would fare better, and none is to blame
            return TopicOutcome(plan.topic, RunStatus.FAILED, str(error), tuple(done))
        except LostLeaseError as error:
            return TopicOutcome(plan.topic, RunStatus.FAILED, str(error), tuple(done))
        except Exception as error:
            # The edge of a topic: even what could not be recorded is told, and the other topics go on.
            self._log.error("topic failed", topic=plan.topic, exc_info=error)
            return TopicOutcome(plan.topic, RunStatus.FAILED, in_words(error), tuple(done))

    def _left_to_another(self, plan: TopicPlan, holder: Lease) -> TopicOutcome:
        hop, until = plan.work[0], holder.expires_at.isoformat(timespec="seconds")
        reason = f"the lease is held by {holder.owner} until {until}"
        attempt = Attempt(self.run_id, plan.topic, hop.zone, first_batch(hop), self.parts.clock())
        self._hops.record(attempt, RunStatus.SKIPPED, reason)
        return TopicOutcome(plan.topic, RunStatus.SKIPPED, reason)


def _until_few_are_left(topics: int, places: int) -> int:
    """After how many outcomes nobody should wait for another's rows any more; who works alone never should."""
    return max(0, topics - 2 * places) if places > 1 else 0


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Garbage that refers to itself is looked for less often than usual during the block."""
    usual = gc.get_threshold()
    gc.set_threshold(*_COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _outcome(topic: str, hops: Sequence[HopOutcome], done: Sequence[BatchOutcome]) -> TopicOutcome:
    """A topic is as well as its worst hop; the reasons say which hop they are of if both have one."""
    status = next(
        (each for each in (RunStatus.FAILED, RunStatus.SKIPPED) if each in {hop.status for hop in hops}),
        RunStatus.SUCCEEDED,
    )
    reasons = [(hop.zone, hop.reason) for hop in hops if hop.status is status and hop.reason]
    words = dict.fromkeys(reason for _, reason in reasons)
    if len(words) > 1:
        words = dict.fromkeys(f"{zone}: {reason}" for zone, reason in reasons)
    return TopicOutcome(topic, status, "; ".join(words) or None, tuple(done))
