"""Batches of a topic on their way to its queue: gathered for a moment, sent, and what was refused sent again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lean_ops.bridge.waiting import Waiting
from lean_ops.model.errors import LeanOpsError, TerminalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structlog.typing import FilteringBoundLogger

    from lean_ops.aws.topic_queues import Verdict
    from lean_ops.bridge.backoff import Backoff
    from lean_ops.bridge.parcel import Parcel


@dataclass(frozen=True, slots=True)
class SendLimits:
    """How long to gather, how many batches of a topic are under way, and how often each is tried."""

    linger_seconds: float
    at_a_time: int
    attempts: int
    retry: Backoff


class Outcome(Protocol):
    """Where the topic's lane is told what became of its parcels; each is told once, by one of these."""

    async def send(self, batch: Sequence[Parcel]) -> list[Verdict]:
        """Make one call."""

    def confirmed(self, parcels: Sequence[Parcel]) -> None:
        """The queue has them."""

    def refused(self, results: Sequence[tuple[Parcel, Verdict]]) -> None:
        """The queue did not take these this time."""

    def given_up(self, parcels: Sequence[Parcel], fault: LeanOpsError | None) -> None:
        """They were tried often enough; with a fault the queue as a whole is the reason."""


class Sending:
    """One topic's outgoing side."""

    def __init__(self, limits: SendLimits, outcome: Outcome, log: FilteringBoundLogger) -> None:
        self._limits = limits
        self._outcome = outcome
        self._log = log
        self._waiting = Waiting()
        self._under_way: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False
        self._is_shaky = False

    def add(self, parcel: Parcel) -> None:
        """Take a parcel; it is on its way at the latest after the linger, if the queue keeps up."""
        self._waiting.add(parcel)
        self._pump()

    def flush(self) -> None:
        """Gather no longer."""
        self._is_due = True
        self._pump()

    def take_all(self) -> list[Parcel]:
        """What is not under way yet, out of here."""
        return self._waiting.take_all()

    async def finish(self) -> None:
        """Wait until nothing is left to send."""
        while len(self._waiting) or self._under_way:
            self.flush()
            await asyncio.wait(self._under_way)

    def cancel(self) -> None:
        """Wait for no answer any more."""
        self._stop_timer()
        for task in self._under_way:
            task.cancel()

    def _pump(self) -> None:
        """Start as many batches as may be under way; one that is not full only if gathering is over."""
        at_a_time = 1 if self._is_shaky else self._limits.at_a_time
        while len(self._under_way) < at_a_time and (self._waiting.is_full or self._is_due):
            batch = self._waiting.next_batch()
            if not batch:
                break
            task = asyncio.get_running_loop().create_task(self._deliver(batch))
            self._under_way.add(task)
            task.add_done_callback(self._ended)
        self._gather()

    def _gather(self) -> None:
        """Let the timer run while something is ready and not due; nothing is due once nothing is ready."""
        if not self._waiting.has_ready:
            self._is_due = False
            self._stop_timer()
        elif self._timer is None and not self._is_due:
            self._timer = asyncio.get_running_loop().call_later(self._limits.linger_seconds, self._linger_is_over)

    def _linger_is_over(self) -> None:
        self._timer = None
        self.flush()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.result()  # a fault of ours is raised here, where the loop's handler sees it at once
            self._pump()

    async def _deliver(self, batch: Sequence[Parcel]) -> None:
        """Bring a batch to the queue; just what was refused is tried again, and nothing of its keys passes it."""
        left, fault = batch, None
        for tries in range(1, self._limits.attempts + 1):
            left, fault = await self._attempt(left)
            self._is_shaky = fault is not None
            if not left or isinstance(fault, TerminalError):
                break
            if tries < self._limits.attempts:
                await asyncio.sleep(self._limits.retry.seconds(tries))
        if left:
            self._give_up(left, fault)

    async def _attempt(self, batch: Sequence[Parcel]) -> tuple[Sequence[Parcel], LeanOpsError | None]:
        """One call; the parcels to try again, and what was wrong with the call as a whole."""
        try:
            verdicts = await self._outcome.send(batch)
        except LeanOpsError as error:
            return batch, error
        except Exception as error:
            self._log.exception("delivery_failed")  # a fault of ours must not lose messages either
            return batch, TerminalError("the call could not be made", found=f"{type(error).__name__}: {error}")
        return self._judged(list(zip(batch, verdicts, strict=True))), None

    def _judged(self, results: Sequence[tuple[Parcel, Verdict]]) -> list[Parcel]:
        """Settle what the queue took and what it will never take; the rest."""
        taken = [parcel for parcel, verdict in results if verdict.taken]
        if taken:
            self._outcome.confirmed(taken)
        for parcel in taken:
            self._waiting.settled(parcel)
        refused = [(parcel, verdict) for parcel, verdict in results if not verdict.taken]
        if refused:
            self._outcome.refused(refused)
        hopeless = [parcel for parcel, verdict in refused if verdict.for_good]
        if hopeless:
            self._give_up(hopeless, None)
        return [parcel for parcel, verdict in refused if not verdict.for_good]

    def _give_up(self, parcels: Sequence[Parcel], fault: LeanOpsError | None) -> None:
        self._outcome.given_up([*parcels, *self._waiting.returned(parcels)], fault)
