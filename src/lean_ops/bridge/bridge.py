"""The bridge: a lane for every topic, from the moment its subscription is found until the process is told to end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.bridge.backoff import Backoff
from lean_ops.bridge.budget import FLOOR_MESSAGES, Budget, Room
from lean_ops.bridge.lane import Lane, LaneLimits, LaneParts
from lean_ops.bridge.ports import Outstanding
from lean_ops.bridge.sending import SendLimits
from lean_ops.bridge.subscriptions import Route, routes_of
from lean_ops.model.errors import LeanOpsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from structlog.typing import FilteringBoundLogger

    from lean_ops.bridge.metrics import Metrics
    from lean_ops.bridge.ports import Source
    from lean_ops.bridge.post import Post
    from lean_ops.bridge.settings import BridgeSettings

_GIVE_BACK_SECONDS: Final = 5.0
# Bytes are what memory is made of; so many messages in a moment are what a busy topic has.
_LEAST_OUTSTANDING: Final = Outstanding(1000, 1024 * 1024)
_PULSE_SECONDS: Final = 1.0


@dataclass(slots=True)
class Pulse:
    """What others may know of the bridge: when its loop last turned, and whether it takes messages."""

    last_beat: float = 0.0
    is_ready: bool = False


class Bridge:
    """All lanes of a process. `chance` is in [0, 1)."""

    def __init__(
        self,
        settings: BridgeSettings,
        source: Source,
        post: Post,
        metrics: Metrics,
        log: FilteringBoundLogger,
        chance: Callable[[], float],
        pulse: Pulse,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._log = log
        self._chance = chance
        self._pulse = pulse
        self._parts = LaneParts(source, post, Budget(Room(settings.max_messages, settings.max_bytes)), metrics, log)
        self._lanes: dict[str, tuple[Lane, asyncio.Task[None]]] = {}
        self._refused: dict[str, str] = {}
        self._fault: BaseException | None = None

    async def run(self, stop: asyncio.Event) -> bool:
        """Bring messages until `stop`; whether in the end everything was either confirmed or given back.

        A fault of the bridge's own ends it too, and is raised after all that it held was given back.
        """
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self._broke(context, stop))
        upkeep = [asyncio.create_task(work) for work in (self._refresh(stop), self._keep_leases(), self._beat())]
        for task in upkeep:
            task.add_done_callback(lambda task: self._ended(task, stop))
        await stop.wait()
        self._pulse.is_ready = False
        clean = await self._shut_down(list(self._lanes.values()))
        for task in upkeep:
            task.cancel()
        if self._fault is not None:
            raise self._fault
        return clean

    # lanes

    async def _refresh(self, stop: asyncio.Event) -> None:
        """Look for subscriptions again and again; the first look may take as many tries as it needs."""
        settings, failures = self._settings, 0
        backoff = Backoff(settings.rest_seconds, settings.rest_seconds_max, self._chance)
        while not stop.is_set():
            try:
                await self._look_around(stop)
                failures = 0
            except LeanOpsError as error:
                failures += 1
                self._log.error("subscriptions_not_listed", error=str(error))
            await asyncio.sleep(backoff.seconds(failures) if failures else settings.refresh_seconds)

    async def _look_around(self, stop: asyncio.Event) -> None:
        """Start a lane for each new subscription, and end those whose subscription is gone."""
        found = await self._parts.source.subscriptions()
        routes = routes_of(found, {topic: lane.route for topic, (lane, _) in self._lanes.items()})
        self._tell_refused(dict(routes.refused))
        if not routes.routes:
            self._log.warning("no_subscription_found")
        gone = [lane for topic, (lane, _) in self._lanes.items() if routes.routes.get(topic) != lane.route]
        await self._end(gone)
        if not stop.is_set():
            limits = self._limits(len(routes.routes))
            for topic in routes.routes.keys() - self._lanes.keys():
                self._start(routes.routes[topic], limits, stop)
        self._pulse.is_ready = not stop.is_set()

    def _start(self, route: Route, limits: LaneLimits, stop: asyncio.Event) -> None:
        lane = Lane(route, limits, self._parts)
        task = asyncio.create_task(lane.run())
        task.add_done_callback(lambda task: self._ended(task, stop))
        self._lanes[route.topic] = (lane, task)

    async def _end(self, lanes: Iterable[Lane]) -> None:
        for lane in lanes:
            self._log.warning("subscription_gone", topic=lane.route.topic, subscription=lane.route.subscription)
            lane.stop()
            await lane.abandon()
            del self._lanes[lane.route.topic]
            self._metrics.forget(lane.route.topic)

    def _limits(self, lanes: int) -> LaneLimits:
        """The limits of a lane among so many; Pub/Sub is asked for no more than its share of what can be held."""
        settings, least = self._settings, _LEAST_OUTSTANDING
        outstanding = Outstanding(
            min(settings.topic_messages, max(least.messages, settings.max_messages // max(1, lanes))),
            min(settings.topic_bytes, max(least.bytes, settings.max_bytes // max(1, lanes))),
        )
        send = SendLimits(
            settings.linger_seconds,
            settings.sends_per_topic,
            settings.send_attempts,
            Backoff(settings.retry_seconds, settings.retry_seconds_max, self._chance),
        )
        rest = Backoff(settings.rest_seconds, settings.rest_seconds_max, self._chance)
        return LaneLimits(
            max(FLOOR_MESSAGES, settings.topic_messages),
            settings.topic_bytes,
            outstanding,
            settings.ack_deadline_seconds,
            rest,
            send,
        )

    def _tell_refused(self, refused: dict[str, str]) -> None:
        for subscription, reason in refused.items():
            if self._refused.get(subscription) != reason:
                self._log.error("subscription_refused", subscription=subscription, reason=reason)
        self._refused = refused
        self._metrics.refused_subscriptions.set(len(refused))

    # upkeep

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._settings.ack_deadline_seconds / 6)
            for lane, _ in list(self._lanes.values()):
                lane.keep_leases()

    async def _beat(self) -> None:
        while True:
            self._pulse.last_beat = asyncio.get_running_loop().time()
            await asyncio.sleep(_PULSE_SECONDS)

    # the end

    async def _shut_down(self, running: list[tuple[Lane, asyncio.Task[None]]]) -> bool:
        """Stop pulling, give what is under way its time, then give the rest back."""
        lanes = [lane for lane, _ in running]
        self._log.info("stopping", in_flight=sum(lane.held for lane in lanes))
        for lane in lanes:
            lane.stop()
        finished = await _all_within(self._settings.shutdown_seconds, [_finish(*lane) for lane in running])
        left = sum(lane.held for lane in lanes)
        returned = await _all_within(_GIVE_BACK_SECONDS, [lane.abandon() for lane in lanes])
        self._parts.post.close()
        self._log.info("stopped", finished=finished, given_back=left)
        return returned

    def _ended(self, task: asyncio.Task[None], stop: asyncio.Event) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._broke({"exception": task.exception(), "message": "a task ended"}, stop)

    def _broke(self, context: dict[str, Any], stop: asyncio.Event) -> None:
        """Something happened that the bridge was not made for; a fresh start is safer than going on."""
        self._fault = self._fault or context.get("exception") or RuntimeError(str(context.get("message")))
        self._log.error("broken", error=str(context.get("message")), exc_info=context.get("exception"))
        stop.set()


async def _finish(lane: Lane, run: asyncio.Task[None]) -> None:
    await asyncio.wait([run])  # what is at the lane's door goes back before it ends
    await lane.finish()


async def _all_within(seconds: float, work: list[Any]) -> bool:
    """Do all of it at the same time; False if it was not done in time."""
    if not work:
        return True
    done, late = await asyncio.wait([asyncio.ensure_future(one) for one in work], timeout=seconds)
    for task in late:
        task.cancel()
    for error in filter(None, (task.exception() for task in done)):
        asyncio.get_running_loop().call_exception_handler({"message": "the end failed", "exception": error})
    return not late
