"""One topic's way from its subscription to its queue.

A lane pulls while its queue takes what it brings. When the queue is gone or takes nothing for a while, the lane gives
back all that it has, closes its stream and rests, longer each time; other lanes go on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.aws.topic_queues import QueueGoneError
from lean_ops.bridge.budget import Room
from lean_ops.bridge.hold import Hold
from lean_ops.bridge.keys import AwaitedKeys
from lean_ops.bridge.parcel import parcel_of
from lean_ops.bridge.ports import Outstanding
from lean_ops.bridge.sending import Sending
from lean_ops.bridge.settlement import Settlement
from lean_ops.model.errors import LeanOpsError, TransientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from structlog.typing import FilteringBoundLogger

    from lean_ops.aws.topic_queues import Verdict
    from lean_ops.bridge.backoff import Backoff
    from lean_ops.bridge.budget import Budget
    from lean_ops.bridge.envelope import PulledMessage
    from lean_ops.bridge.metrics import Metrics
    from lean_ops.bridge.parcel import Parcel
    from lean_ops.bridge.ports import Source, Stream
    from lean_ops.bridge.post import Post
    from lean_ops.bridge.sending import SendLimits
    from lean_ops.bridge.subscriptions import Route

_REMEMBERED_REFUSALS: Final = 10_000
_NAMED: Final = 5
# Of a queue that took nothing: Pub/Sub counts deliveries, so few messages find out whether it takes something again.
_PROBE: Final = Outstanding(10, 1024 * 1024)


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """What a lane may hold and how long it waits."""

    messages: int
    bytes: int
    outstanding: Outstanding
    ack_deadline_seconds: int
    rest: Backoff
    send: SendLimits


@dataclass(frozen=True, slots=True)
class LaneParts:
    """What all lanes share."""

    source: Source
    post: Post
    budget: Budget
    metrics: Metrics
    log: FilteringBoundLogger


class Lane:
    """One subscription's messages on their way to one queue."""

    def __init__(self, route: Route, limits: LaneLimits, parts: LaneParts) -> None:
        self.route = route
        self._limits = limits
        self._source = parts.source
        self._post = parts.post
        self._log = parts.log.bind(topic=route.topic, subscription=route.subscription)
        self._clock = asyncio.get_running_loop().time
        self._metrics = parts.metrics.of_topic(route.topic)
        self._settlement = Settlement(parts.source, route.subscription, self._metrics, self._log)
        own = Room(limits.messages, limits.bytes)
        self._hold = Hold(parts.budget, own, self._settlement, self._metrics, self._clock)
        self._sending = Sending(limits.send, self, self._log)
        self._keys = AwaitedKeys(limits.ack_deadline_seconds, self._clock)
        self._stop = asyncio.Event()
        self._stream: Stream | None = None
        self._url: str | None = None
        self._trouble: LeanOpsError | None = None
        self._rests = 0
        self._is_doubtful = False
        self._refusals: dict[str, int] = {}

    async def run(self) -> None:
        """Bring messages until the lane is stopped, whatever goes wrong in between."""
        while not self._stop.is_set():
            started = self._clock()
            try:
                await self._flow()
            except LeanOpsError as error:
                if self._clock() - started > self._limits.rest.most:
                    self._rests = 0  # it went well for long: this is not one more failure in a row
                await self._rest(error)

    def stop(self) -> None:
        """Pull no more; what was let in is still sent."""
        self._stop.set()
        self._close_stream()
        self._sending.flush()

    async def finish(self) -> None:
        """Wait until everything that was let in is settled, and Pub/Sub knows it."""
        await self._sending.finish()
        await self._settlement.finish()

    async def abandon(self) -> None:
        """Wait for no queue any more: give everything back at once."""
        self._sending.cancel()
        self._hold.give_all_back()
        await self._settlement.finish()

    def keep_leases(self) -> None:
        """Make sure that nobody else gets what the lane still has."""
        self._hold.keep_leases(self._limits.ack_deadline_seconds)

    @property
    def held(self) -> int:
        """How many messages the lane has."""
        return len(self._hold)

    # pulling

    async def _flow(self) -> None:
        """Pull until the stream ends or the queue makes trouble; that trouble, or the stream's, is raised."""
        if self._url is None:
            self._url = await self._post.url(self.route.topic)
        self._trouble, probes = None, self._is_doubtful
        outstanding = _PROBE if probes else self._limits.outstanding
        stream = self._stream = await self._source.open(self.route.subscription, outstanding)
        if self._stop.is_set():
            stream.close()
        self._log.info("pulling", queue=self._url, probe=probes)
        if not probes:
            self._metrics.flows()
        try:
            while (messages := await stream.read()) is not None:
                await self._take(messages)
        finally:
            self._stream = None
            stream.close()
        if self._trouble is not None:
            raise self._trouble
        if not self._stop.is_set() and self._is_doubtful == probes:
            raise TransientError("the stream ended", where=self.route.subscription)

    async def _take(self, messages: Sequence[PulledMessage]) -> None:
        """Let messages in one after the other; whichever can't come in goes back."""
        now = self._clock()
        leased_until = now + self._limits.ack_deadline_seconds
        parcels = [parcel_of(message, self.route.topic, now, leased_until) for message in messages]
        self._hold.came(parcels)
        for position, parcel in enumerate(parcels):
            if self._is_closed() or not await self._hold.let_in(parcel) or self._is_closed():
                self._give_back(parcels[position:], 0 if self._stop.is_set() else self._rest_seconds())
                return
            if self._keys.is_too_early(parcel):  # asked now: an earlier one may have gone back since it came
                self._give_back([parcel], self._limits.rest.first)
            else:
                self._sending.add(parcel)

    def _is_closed(self) -> bool:
        return self._stop.is_set() or self._trouble is not None

    def _close_stream(self) -> None:
        self._hold.turn_away()
        if self._stream is not None:
            self._stream.close()

    async def _rest(self, error: LeanOpsError) -> None:
        seconds = self._rest_seconds()
        self._rests += 1
        passing = isinstance(error, TransientError)
        self._metrics.rested("passing" if passing else "queue_gone" if isinstance(error, QueueGoneError) else "other")
        (self._log.info if passing else self._log.error)("resting", seconds=round(seconds, 1), error=str(error))
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return

    def _rest_seconds(self) -> float:
        return self._limits.rest.seconds(self._rests + 1)

    def _give_back(self, parcels: Sequence[Parcel], seconds: float) -> None:
        self._keys.went_back(parcels, seconds)
        self._hold.give_back(parcels, seconds)

    # what the sending side asks and tells

    async def send(self, batch: Sequence[Parcel]) -> list[Verdict]:
        """Make one call to the topic's queue."""
        if self._url is None:
            self._url = await self._post.url(self.route.topic)
        return await self._post.send(self._url, self.route.topic, batch)

    def confirmed(self, parcels: Sequence[Parcel]) -> None:
        """The queue has them."""
        self._hold.confirmed(parcels)
        for parcel in parcels:
            self._refusals.pop(parcel.message_id, None)
        self._rests = 0
        if self._is_doubtful:
            self._is_doubtful = False
            self._metrics.flows()
            self._close_stream()  # it was a probe: the next stream is a whole one

    def refused(self, results: Sequence[tuple[Parcel, Verdict]]) -> None:
        """The queue did not take these this time; a line tells of all of them, a queue may refuse many."""
        for _, verdict in results:
            self._metrics.refused(verdict.for_good)
        self._log.warning(
            "refused",
            messages=len(results),
            message_ids=[parcel.message_id for parcel, _ in results[:_NAMED]],
            reasons=sorted({verdict.reason for _, verdict in results})[:_NAMED],
            senders_fault=sum(verdict.for_good for _, verdict in results),
        )

    def given_up(self, parcels: Sequence[Parcel], fault: LeanOpsError | None) -> None:
        """They go back; if the queue as a whole is the reason, so does everything else, and the lane rests."""
        if fault is None:
            self._give_back(parcels, self._limits.rest.seconds(max(map(self._count_refusal, parcels))))
            return
        seconds = self._rest_seconds()
        self._give_back([*parcels, *self._sending.take_all()], seconds)
        if self._trouble is None:
            self._trouble = fault
            self._is_doubtful = True
            self._url = None
            self._close_stream()

    def _count_refusal(self, parcel: Parcel) -> int:
        """How often a message went back, as far as it is remembered."""
        count = self._refusals.pop(parcel.message_id, 0) + 1
        self._refusals[parcel.message_id] = count
        if len(self._refusals) > _REMEMBERED_REFUSALS:
            del self._refusals[next(iter(self._refusals))]
        return count
