"""Pub/Sub topics, queues and the bridge's process between them, each under names of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import grpc
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport
from google.pubsub_v1.types import PubsubMessage
from tests.servers.pubsub import PROJECT
from tests.servers.server import Server

BUCKET = "bridge-archive"


def wait_until(condition: Callable[[], object], seconds: float = 90, what: str = "it") -> None:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in time"
        time.sleep(0.02)


@dataclass
class BridgeScene:
    """Topics with their subscriptions and queues; `environment` makes their names unique in this session."""

    pubsub: Server
    sqs: Any
    s3: Any
    topics: Sequence[str]
    servers: Sequence[Server]
    environment: str = field(default_factory=lambda: f"e{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        channel = grpc.insecure_channel(self.pubsub.address, options=[("grpc.max_send_message_length", -1)])
        self.publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        self.subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))

    def topic_path(self, topic: str) -> str:
        return f"projects/{PROJECT}-{self.environment}/topics/{topic}"

    def subscription(self, topic: str) -> str:
        return f"projects/{PROJECT}-{self.environment}/subscriptions/lean-ops-{topic}"

    def make_topics(self, ordering: bool = False) -> None:
        for topic in self.topics:
            self.publisher.create_topic(name=self.topic_path(topic))
            self.subscriber.create_subscription(
                request={
                    "name": self.subscription(topic),
                    "topic": self.topic_path(topic),
                    "ack_deadline_seconds": 10,
                    "enable_message_ordering": ordering,
                }
            )

    def make_queue(self, name: str) -> str:
        return str(self.sqs.create_queue(QueueName=f"lean-ops-{self.environment}-{name}")["QueueUrl"])

    def waiting_in(self, url: str) -> int:
        """How many messages nobody has taken out of a queue."""
        name = "ApproximateNumberOfMessages"
        return int(self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])

    def publish(self, topic: str, messages: Sequence[PubsubMessage]) -> list[str]:
        """Publish in calls of a few; the ids, in order."""
        ids: list[str] = []
        for start in range(0, len(messages), 50):
            request = {"topic": self.topic_path(topic), "messages": messages[start : start + 50]}
            ids += self.publisher.publish(request=request, timeout=30).message_ids
        return ids

    def pull_rest(self, topic: str) -> set[str]:
        """The ids of all messages that anybody could have now."""
        ids: set[str] = set()
        request = {"subscription": self.subscription(topic), "max_messages": 1000, "return_immediately": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # waiting is what Google would rather have
            while received := self.subscriber.pull(request=request, timeout=30).received_messages:
                ids |= {one.message.message_id for one in received}
        return ids

    def environ(self, **settings: str) -> dict[str, str]:
        """The bridge's environment; nothing of the lake's settings is in it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEAN_OPS", "AWS"))}
        found = {name: value for server in self.servers for name, value in server.environ().items()}
        told = {
            "LEAN_OPS_PROJECT": "lean-ops",
            "LEAN_OPS_ENVIRONMENT": self.environment,
            "LEAN_OPS_ARCHIVE_BUCKET": BUCKET,
            "LEAN_OPS_BRIDGE_GCP_PROJECT": f"{PROJECT}-{self.environment}",
            "LEAN_OPS_BRIDGE_SUBSCRIPTION_PREFIX": "lean-ops-",
            "LEAN_OPS_BRIDGE_ACK_DEADLINE_SECONDS": "10",
            "LEAN_OPS_BRIDGE_HTTP_PORT": "0",
            **{f"LEAN_OPS_BRIDGE_{name}": value for name, value in settings.items()},
        }
        return {**kept, **found, **told}


class BridgeProcess:
    """A bridge in a process of its own; its log lines are gathered as they come."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "lean_ops.entrypoints.bridge"]
        self._process = subprocess.Popen(command, env=dict(environ), stdout=subprocess.PIPE, text=True)
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def told(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]

    def when(self, event: str) -> datetime:
        """The time of the first such line."""
        return datetime.fromisoformat(self.told(event)[0]["timestamp"])

    @property
    def port(self) -> int:
        wait_until(lambda: self.told("started"), what="the bridge's start")
        return int(self.told("started")[0]["http_port"])

    def kill(self) -> None:
        self._process.kill()
        self.wait()

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 60) -> int:
        code = self._process.wait(seconds)
        self._reader.join(10)
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self.lines += map(json.loads, lines)


@contextmanager
def bridge_process(environ: Mapping[str, str]) -> Iterator[BridgeProcess]:
    process = BridgeProcess(environ)
    try:
        yield process
    finally:
        process.kill()


class Drain:
    """Takes everything out of queues and remembers each copy."""

    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs
        self.messages: dict[str, list[dict[str, Any]]] = {}

    def take(self, url: str) -> int:
        """Take what is there now; how many there were."""
        taken = 0
        while True:
            answer = self._sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
            )
            found = answer.get("Messages", [])
            if not found:
                return taken
            entries = [{"Id": str(at), "ReceiptHandle": one["ReceiptHandle"]} for at, one in enumerate(found)]
            self._sqs.delete_message_batch(QueueUrl=url, Entries=entries)
            self.messages.setdefault(url, []).extend(found)
            taken += len(found)

    def bodies(self, url: str) -> dict[str, set[str]]:
        """The different bodies by Pub/Sub message id."""
        found: dict[str, set[str]] = {}
        for one in self.messages.get(url, []):
            message_id = re.match(r'\{"message_id":"([^"]+)"', one["Body"])  # a dead letter's body may break off
            assert message_id
            found.setdefault(message_id[1], set()).add(one["Body"])
        return found
