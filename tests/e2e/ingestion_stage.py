"""Everything between a Pub/Sub and the lake, running: the bridge's process, the queues, the functions, the stream."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.aws_local.cloud import LocalAws
from tests.aws_local.faults import Faults
from tests.aws_local.firehose import DeliveryStream
from tests.aws_local.poller import SeenMessages
from tests.aws_local.sink import IcebergSink
from tests.e2e.ingestion_story import ALL_TOPICS, FRAGILE_TOPIC, POISON, TOPICS, Direct, Published
from tests.integration.aws.bridge_scene import BridgeScene
from tests.servers.process import ServerProcess, start

_VISIBLE_AGAIN: Final = 20
_VISIBLE_AGAIN_FRAGILE: Final = 6
_FUNCTION_SECONDS: Final = 18.0
_BRIDGE: Final = {"REST_SECONDS_MAX": "2", "MAX_BYTES": str(64 * 1024 * 1024)}


def wait_until(condition: Callable[[], object], seconds: float, what: Callable[[], str]) -> None:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what()}"
        time.sleep(0.2)


@dataclass
class Stage:
    """The running parts. `published` has every message by its Pub/Sub id, `sent` every direct body by its SQS id."""

    aws: LocalAws
    scene: BridgeScene
    faults: Faults
    seen: SeenMessages = field(default_factory=SeenMessages)
    letters_seen: SeenMessages = field(default_factory=SeenMessages)
    published: dict[str, Published] = field(default_factory=dict)
    sent: dict[str, Direct] = field(default_factory=dict)
    queues: dict[str, tuple[str, str]] = field(default_factory=dict)
    _bridges: list[ServerProcess] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """All functions and queues but the late one's; nothing is left of them afterwards."""
        aws = self.aws
        self.sink = IcebergSink(lambda: aws.lake.catalog, aws.s3, aws.bucket, self.faults)
        transform = aws.function("firehose_transform", 1, _FUNCTION_SECONDS)
        try:
            with DeliveryStream(sink=self.sink, faults=self.faults, transform=transform) as self.stream:
                self._open_queues()
                try:
                    yield
                finally:
                    self.end_bridge()
                    aws.close()
        finally:
            transform.close()

    def _open_queues(self) -> None:
        aws = self.aws
        letters = aws.function("dlq_processor", 2, 60)
        self.dlq = aws.make_queue(aws.deployment.dead_letter_queue, _VISIBLE_AGAIN)
        for _ in range(2):
            aws.poll(
                self.dlq,
                letters,
                self.letters_seen,
                visibility_seconds=_VISIBLE_AGAIN,
                window_seconds=3.0,
                fault_share=0.35,
            )
        self._processor = aws.function("sqs_processor", 3, _FUNCTION_SECONDS, self.stream.environ())
        for topic in (*TOPICS, FRAGILE_TOPIC):
            self.open_queue(topic)

    def open_queue(self, topic: str) -> None:
        """A topic's queue, with what reads it."""
        aws = self.aws
        seconds = _VISIBLE_AGAIN_FRAGILE if topic == FRAGILE_TOPIC else _VISIBLE_AGAIN
        self.queues[topic] = aws.make_queue(aws.deployment.queue(topic), seconds, self.dlq[1])
        one = {"batch_size": 1, "is_poison": _is_poison, "fault_share": 0.05} if topic == FRAGILE_TOPIC else {}
        for _ in range(2):
            aws.poll(self.queues[topic], self._processor, self.seen, visibility_seconds=seconds, **one)

    # the bridge

    def start_bridge(self) -> None:
        command = [sys.executable, "-m", "lean_ops.entrypoints.bridge"]
        environ = {**self.scene.environ(**_BRIDGE), "LEAN_OPS_ARCHIVE_BUCKET": self.aws.bucket}
        self._bridges.append(start(f"bridge-{len(self._bridges)}", command, self.aws.folder, environ))

    def kill_bridge(self) -> None:
        """SIGKILL in the middle of its work."""
        self.end_bridge()
        self.faults.count("the bridge is killed")

    def bridge_told(self, event: str) -> list[dict[str, Any]]:
        lines = [line for bridge in self._bridges for line in bridge.said().splitlines() if line.startswith("{")]
        told = [json.loads(line) for line in lines if line.endswith("}")]
        return [line for line in told if line["event"] == event]

    @property
    def is_pulling(self) -> bool:
        """Whether the bridge that runs now has begun its work."""
        return '"event": "pulling"' in self._bridges[-1].said()

    def end_bridge(self) -> None:
        """It sends nothing any more; a second call does nothing."""
        if self._bridges:
            self._bridges[-1].stop()  # its guard kills it

    # what comes in

    def publish(self, messages: Sequence[Published]) -> None:
        for topic in ALL_TOPICS:
            own = [message for message in messages if message.topic == topic]
            ids = self.scene.publish(topic, [message.as_message() for message in own])
            self.published.update(zip(ids, own, strict=True))

    def send(self, bodies: Sequence[Direct]) -> None:
        for one in bodies:
            answer = self.aws.sqs.send_message(QueueUrl=self.queues[one.topic][0], MessageBody=one.body)
            self.sent[answer["MessageId"]] = one

    # what there is now

    def arrived(self) -> int:
        """How many published messages any function has seen."""
        return len(self.seen.copies().keys() & self.published.keys())

    def in_queues(self) -> int:
        return sum(self.aws.waiting(url) for url, _ in (*self.queues.values(), self.dlq))

    def broken(self) -> list[BaseException]:
        """What went wrong in the stand-ins themselves."""
        return [*self.stream.broken, *(error for poller in self.aws.pollers for error in poller.broken)]


def _is_poison(body: str) -> bool:
    return POISON in body
