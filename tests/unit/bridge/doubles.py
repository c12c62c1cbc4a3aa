"""Pub/Sub and queues in memory: they remember what was asked of them, and fail as they are told to."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from lean_ops.aws.letters import Letter
from lean_ops.aws.sending import Patience
from lean_ops.aws.topic_queues import QueueGoneError, Verdict
from lean_ops.bridge.bridge import Bridge, Pulse
from lean_ops.bridge.envelope import PulledMessage
from lean_ops.bridge.metrics import Metrics
from lean_ops.bridge.ports import FoundSubscription, Outstanding
from lean_ops.bridge.post import Post
from lean_ops.bridge.settings import BridgeSettings
from lean_ops.model.errors import LeanOpsError

PROJECT = "projects/p"
# The ack deadline: a lease of that length keeps a message, any other one gives it back.
KEPT = 600


def path_of(topic: str) -> str:
    return f"{PROJECT}/subscriptions/{topic}-sub"


@dataclass
class FakeStream:
    """Messages put into it come out of it."""

    outstanding: Outstanding
    arriving: asyncio.Queue[list[PulledMessage] | LeanOpsError | None] = field(default_factory=asyncio.Queue)
    is_closed: bool = False

    async def read(self) -> list[PulledMessage] | None:
        if self.is_closed:
            return None
        item = await self.arriving.get()
        if isinstance(item, LeanOpsError):
            raise item
        return None if self.is_closed else item

    def close(self) -> None:
        self.is_closed = True
        self.arriving.put_nowait(None)


class FakeSource:
    """A Pub/Sub that hands unacknowledged messages out again: what is given back, after its delay; the rest, never.

    Of an ordering key the next message is handed out when the one before it is acknowledged, as Pub/Sub has it.
    """

    def __init__(self, *topics: str, kept_seconds: int = KEPT) -> None:
        self._kept_seconds = kept_seconds
        self.found = [FoundSubscription(path_of(topic), f"{PROJECT}/topics/{topic}") for topic in topics]
        self.streams: dict[str, FakeStream] = {}
        self.opened: list[tuple[str, Outstanding]] = []
        self.acked: list[str] = []
        self.leases: list[tuple[tuple[str, ...], int]] = []
        self.handed_out: defaultdict[str, list[str]] = defaultdict(list)
        self.faults: dict[str, LeanOpsError] = {}
        self._waiting: defaultdict[str, list[PulledMessage]] = defaultdict(list)
        self._out: dict[str, tuple[str, PulledMessage]] = {}
        self._numbers = itertools.count()

    def publish(self, topic: str, *messages: PulledMessage) -> None:
        self._waiting[path_of(topic)] += messages
        self._hand_out(path_of(topic))

    def break_stream(self, topic: str, error: LeanOpsError | None = None) -> None:
        stream = self.streams.pop(path_of(topic))
        stream.arriving.put_nowait(error)

    @property
    def unsettled(self) -> set[str]:
        """Ids of messages that are neither acknowledged nor waiting to be handed out."""
        return {message.message_id for _, message in self._out.values()}

    async def subscriptions(self) -> list[FoundSubscription]:
        if "list" in self.faults:
            raise self.faults.pop("list")
        return list(self.found)

    async def open(self, subscription: str, outstanding: Outstanding) -> FakeStream:
        if "open" in self.faults:
            raise self.faults["open"]
        self.opened.append((subscription, outstanding))
        stream = self.streams[subscription] = FakeStream(outstanding)
        self._hand_out(subscription)
        return stream

    async def acknowledge(self, subscription: str, ack_ids: Sequence[str]) -> None:
        if "acknowledge" in self.faults:
            raise self.faults["acknowledge"]
        for ack_id in ack_ids:
            self.acked.append(self._out.pop(ack_id)[1].message_id)
        self._hand_out(subscription)

    async def lease(self, subscription: str, ack_ids: Sequence[str], seconds: int) -> None:
        if "lease" in self.faults:
            raise self.faults["lease"]
        self.leases.append((tuple(self._out[ack_id][1].message_id for ack_id in ack_ids), seconds))
        if seconds != self._kept_seconds:
            for ack_id in ack_ids:
                asyncio.get_running_loop().call_later(seconds / 100, self._again, subscription, ack_id)

    def _again(self, subscription: str, ack_id: str) -> None:
        _, message = self._out.pop(ack_id)
        self._waiting[subscription].insert(0, message)
        self._waiting[subscription].sort(key=lambda one: int(one.message_id))
        self._hand_out(subscription)

    def _hand_out(self, subscription: str) -> None:
        stream = self.streams.get(subscription)
        if stream is None or stream.is_closed:
            return
        busy = {message.ordering_key for path, message in self._out.values() if path == subscription} - {""}
        ready, later = [], []
        for message in self._waiting[subscription]:
            if message.ordering_key in busy:
                later.append(message)
            else:
                ready.append(self._numbered(subscription, message))
                busy |= {message.ordering_key} - {""}
        self._waiting[subscription] = later
        if ready:
            stream.arriving.put_nowait(ready)

    def _numbered(self, subscription: str, message: PulledMessage) -> PulledMessage:
        ack_id = f"ack-{next(self._numbers)}"
        self._out[ack_id] = (subscription, message)
        self.handed_out[subscription].append(message.message_id)
        return PulledMessage(
            message.message_id,
            message.published,
            message.data,
            message.attributes,
            message.ordering_key,
            ack_id,
            message.attempt,
        )


class FakeQueues:
    """Queues that take everything, unless `judge` says otherwise for a topic and a message id."""

    def __init__(self) -> None:
        self.taken: defaultdict[str, list[str]] = defaultdict(list)
        self.batches: list[tuple[str, list[str]]] = []
        self.lookups: list[str] = []
        self.missing: set[str] = set()
        self.faults: dict[str, LeanOpsError] = {}
        self.judge: Callable[[str, str], Verdict | None] = lambda *_: None
        self.before: Callable[[str], None] = lambda _: None
        self._guard = threading.Lock()

    def url(self, topic: str) -> str:
        with self._guard:
            self.lookups.append(topic)
            if topic in self.missing:
                raise QueueGoneError("there is no such queue", where=topic)
            return f"queue-of-{topic}"

    def send(self, url: str, topic: str, bodies: Sequence[str]) -> list[Verdict]:
        assert url == f"queue-of-{topic}"
        self.before(topic)
        with self._guard:
            ids = [json.loads(body)["message_id"] for body in bodies]
            self.batches.append((topic, ids))
            if topic in self.faults:
                raise self.faults[topic]
            verdicts = [self.judge(topic, message_id) or Verdict(taken=True) for message_id in ids]
            self.taken[topic] += [name for name, verdict in zip(ids, verdicts, strict=True) if verdict.taken]
            return verdicts


class FakeLetters:
    """A dead letter queue."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.faults: list[str] = []

    def send(self, letters: Sequence[Letter], patience: Patience) -> dict[int, str]:
        assert patience.has_time()
        if self.faults:
            return dict.fromkeys(range(len(letters)), self.faults.pop())
        self.letters += letters
        return {}


def message(number: int, key: str = "", data: bytes = b"{}") -> PulledMessage:
    return PulledMessage(str(number), (1_770_113_730, 0), data, {}, key)


def quick(**changes: Any) -> BridgeSettings:
    """Settings under which nothing takes long; with the doubles a delay of a second takes a hundredth of it."""
    values = {
        "project": "lean-ops",
        "environment": "dev",
        "archive_bucket": "archive",
        "gcp_project": "events-project",
        "linger_seconds": 0.01,
        "retry_seconds": 0.01,
        "retry_seconds_max": 0.02,
        "rest_seconds": 0.02,
        "rest_seconds_max": 0.1,
        "send_attempts": 3,
        "shutdown_seconds": 5,
        "ack_deadline_seconds": KEPT,
    }
    return BridgeSettings(**{**values, **changes})


class Scene:
    """A bridge between the doubles, and what it says while it runs."""

    def __init__(self, *topics: str, **changes: Any) -> None:
        self.settings = quick(**changes)
        self.source = FakeSource(*topics, kept_seconds=self.settings.ack_deadline_seconds)
        self.queues = FakeQueues()
        self.letters = FakeLetters()
        self.metrics = Metrics()
        self.pulse = Pulse()
        self.said: list[dict[str, Any]] = []
        self.stop: asyncio.Event
        self.run: asyncio.Task[bool]

    async def start(self) -> None:
        post = Post(self.queues, self.letters, self.settings.senders, 5, lambda: 0.5)
        log = structlog.wrap_logger(None, processors=[self._remember])
        self.stop = asyncio.Event()
        bridge = Bridge(self.settings, self.source, post, self.metrics, log, lambda: 0.5, self.pulse)
        self.run = asyncio.create_task(bridge.run(self.stop))

    async def end(self) -> bool:
        self.stop.set()
        return await self.run

    def told(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.said if line["event"] == event]

    def count(self, name: str, topic: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"lean_ops_bridge_{name}", {"topic": topic, **labels}) or 0

    def _remember(self, _: Any, level: str, line: Any) -> Any:
        self.said.append({**line, "level": level})
        raise structlog.DropEvent


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


def play(story: Callable[[Scene], Awaitable[None]], *topics: str, **changes: Any) -> Scene:
    """A bridge for these topics, a story with it, and its end; what is left to look at."""
    scene = Scene(*topics, **changes)

    async def played() -> None:
        await scene.start()
        try:
            await asyncio.wait_for(story(scene), 200)
        finally:
            if not scene.run.done():
                await scene.end()

    asyncio.run(played())
    return scene
