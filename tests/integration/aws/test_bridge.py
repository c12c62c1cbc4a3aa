"""The bridge between a Pub/Sub and queues that are real servers."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
import structlog
from google.pubsub_v1.types import PubsubMessage
from tests.integration.aws.bridge_scene import BUCKET, BridgeScene, Drain, bridge_process, wait_until
from tests.integration.aws.slow_proxy import slow_proxy
from tests.servers.server import Server

from lean_ops.aws.letters import BucketBodies, LetterBox
from lean_ops.aws.topic_queues import TopicQueues
from lean_ops.bridge.bridge import Bridge, Pulse
from lean_ops.bridge.metrics import Metrics
from lean_ops.bridge.post import Post
from lean_ops.bridge.pubsub import PubSubSource
from lean_ops.bridge.settings import BridgeSettings, load_bridge_settings
from lean_ops.ingest.body import decide
from lean_ops.model.envelope import DeadLetter, RawRow

TOPICS = ("events", "meters", "orders", "clicks", "alarms")
LARGE = 600_000
OVERSIZED = 1_200_000
LIMIT = 100 * 1024 * 1024


@pytest.fixture
def make_scene(pubsub: Server, elasticmq: Server, seaweed: Server) -> Callable[..., BridgeScene]:
    s3 = seaweed.client("s3")
    if BUCKET not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=BUCKET)

    def make(*topics: str, ordering: bool = False) -> BridgeScene:
        scene = BridgeScene(pubsub, elasticmq.client("sqs"), s3, topics, (pubsub, elasticmq, seaweed))
        scene.make_topics(ordering)
        return scene

    return make


def some_messages(count: int, seed: int) -> list[PubsubMessage]:
    """JSON, text and bytes; every tenth a copy of the one before it, some large, a few too large for a queue."""
    chance = random.Random(seed)  # noqa: S311  the same messages each time
    found: list[PubsubMessage] = []
    for number in range(count):
        data = json.dumps({"n": number, "text": "ä" * (number % 50)}).encode()
        if number % 10 == 1:
            data = chance.randbytes(50) + b"\xff"
        elif number % 10 == 2:
            data = f"plain text {number} \ufffe\x00".encode()
        elif number % 10 == 3:
            data = f"[{number}, 1.10]".encode()
        elif number % 100 == 55:
            data = json.dumps({"n": number, "filler": "x" * LARGE}).encode()
        elif number % 200 == 77:
            data = json.dumps({"n": number, "filler": "x" * OVERSIZED}).encode()
        elif number % 10 == 9:
            data = found[-1].data
        found.append(PubsubMessage(data=data, attributes={"idempotency_key": f"key-{seed}-{number}"}))
    return found


def ask(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def assert_holds(body: str, published: PubsubMessage, message_id: str) -> None:
    """Ingestion, or a dead letter, has exactly the data that were published."""
    outcome = decide(body.encode(), "events", 1, LIMIT)
    assert outcome.message_id == message_id
    if isinstance(outcome, RawRow):
        assert outcome.json_payload == published.data.decode()
        assert outcome.idempotency_key == published.attributes["idempotency_key"]
    else:
        assert isinstance(outcome, DeadLetter)
        assert base64.b64decode(json.loads(body)["payload_base64"]) == published.data


def test_everything_arrives_although_the_bridge_is_killed_in_between(make_scene: Callable[..., BridgeScene]) -> None:
    scene = make_scene(*TOPICS)
    urls = {topic: scene.make_queue(topic) for topic in TOPICS[:-1]}
    dlq = scene.make_queue("dlq")
    published: dict[str, dict[str, PubsubMessage]] = {}
    for seed, topic in enumerate(TOPICS):
        messages = some_messages(400, seed)
        published[topic] = dict(zip(scene.publish(topic, messages), messages, strict=True))
    drain = Drain(scene.sqs)

    def arrived() -> int:
        for url in (*urls.values(), dlq):
            drain.take(url)
        return sum(len(drain.bodies(url)) for url in drain.messages)

    settings = {"REST_SECONDS_MAX": "2", "MAX_BYTES": str(16 * 1024 * 1024)}
    with bridge_process(scene.environ(**settings)) as bridge:
        wait_until(lambda: arrived() >= 300, what="the first messages' arrival")
        bridge.kill()
    before_the_second = arrived()
    assert before_the_second < 2000
    with bridge_process(scene.environ(**settings)) as bridge:
        wait_until(lambda: bridge.told("resting"), what="the news that a queue is missing")
        assert {line["topic"] for line in bridge.told("resting")} == {TOPICS[-1]}
        urls[TOPICS[-1]] = scene.make_queue(TOPICS[-1])
        wait_until(lambda: arrived() == 2000, 120, "every message's arrival")
        wait_until(
            lambda: " 0.0" in _sample(ask(bridge.port, "/metrics")[1], "in_flight", "events"), what="the last ack"
        )
        bridge.terminate()
        assert bridge.wait() == 0

    oversized = 0
    for topic, of_topic in published.items():
        bodies = drain.bodies(urls[topic])
        for message_id, message in of_topic.items():
            if len(message.data) > OVERSIZED:
                assert message_id not in bodies
                oversized += 1
                continue
            (body,) = bodies.pop(message_id)  # copies are the same
            assert_holds(body, message, message_id)
        assert bodies == {}
        assert scene.pull_rest(topic) == set()
    letters = {one["MessageAttributes"]["message_id"]["StringValue"]: one for one in drain.messages[dlq]}
    assert len(letters) == oversized == 10
    for topic in TOPICS:
        for letter in (one for one in letters.values() if _attribute(one, "topic_name") == topic):
            message_id = _attribute(letter, "message_id")
            assert _attribute(letter, "error_type") == "OVERSIZED"
            assert _attribute(letter, "source") == "sqs"
            assert _attribute(letter, "body_ref") == f"oversized/{topic}/{message_id}.json"
            whole = scene.s3.get_object(Bucket=BUCKET, Key=_attribute(letter, "body_ref"))["Body"].read().decode()
            assert whole.startswith(letter["Body"])
            assert_holds(whole, published[topic][message_id], message_id)
    every = [one for url in urls.values() for one in drain.messages[url]]
    assert {_attribute(one, "topic_name") for one in every} == set(TOPICS)


def _attribute(message: dict[str, Any], name: str) -> str:
    return str(message["MessageAttributes"][name]["StringValue"])


def _sample(text: str, name: str, topic: str) -> str:
    begins = f'lean_ops_bridge_{name}{{topic="{topic}"}}'
    return next((line for line in text.splitlines() if line.startswith(begins)), "")


def test_the_process_tells_how_it_is(make_scene: Callable[..., BridgeScene]) -> None:
    scene = make_scene("events")
    url = scene.make_queue("events")
    scene.publish("events", [PubsubMessage(data=b"{}")])
    drain = Drain(scene.sqs)
    with bridge_process(scene.environ()) as bridge:
        port = bridge.port
        wait_until(lambda: ask(port, "/readyz")[0] == 200, what="readiness")
        assert ask(port, "/healthz") == (200, "ok\n")
        assert ask(port, "/other")[0] == 404
        wait_until(lambda: drain.take(url) == 1, what="the message's arrival")
        wait_until(lambda: _sample(ask(port, "/metrics")[1], "acked_total", "events").endswith(" 1.0"))
        metrics = ask(port, "/metrics")[1]
        for name in ("received_total", "sent_total", "topic_up"):
            assert _sample(metrics, name, "events").endswith(" 1.0"), name
        assert 'delivery_seconds_bucket{le="60.0",topic="events"} 1.0' in metrics
        bridge.terminate()
        assert bridge.wait() == 0
        assert [line["event"] for line in bridge.lines][-2:] == ["stopping", "stopped"]


def test_settings_that_are_wrong_end_the_process_with_words(make_scene: Callable[..., BridgeScene]) -> None:
    scene = make_scene("events")
    with bridge_process(scene.environ(MAX_MESSAGES="none")) as bridge:
        assert bridge.wait() == 2
        assert "LEAN_OPS_BRIDGE_MAX_MESSAGES" in bridge.told("not_started")[0]["error"]


def test_told_to_end_it_ends_in_time_and_has_acknowledged_only_what_is_in_the_queue(
    make_scene: Callable[..., BridgeScene], elasticmq: Server
) -> None:
    scene = make_scene("events")
    url = scene.make_queue("events")
    # About a hundred come each second: something is left to send whenever this process gets its turn.
    ids = set(scene.publish("events", [PubsubMessage(data=b'{"n":%d}' % n) for n in range(2000)]))
    drain = Drain(scene.sqs)
    with slow_proxy(elasticmq.address) as proxy:
        environ = {
            **scene.environ(SHUTDOWN_SECONDS="1", SEND_TIMEOUT_SECONDS="5", SENDS_PER_TOPIC="2"),
            "AWS_ENDPOINT_URL_SQS": f"http://{proxy.address}",
        }
        with bridge_process(environ) as bridge:
            wait_until(lambda: scene.waiting_in(url) >= 50, what="the first messages' arrival")
            proxy.hang()
            wait_until(lambda: proxy.hanging >= 2, what="two calls that hang")
            started = time.monotonic()
            bridge.terminate()
            assert bridge.wait() == 0
            took = time.monotonic() - started
    # A second to finish and the return of the rest; then what is left of the two calls' own time, and Python's end.
    assert bridge.when("stopped") - bridge.when("stopping") < timedelta(seconds=1 + 5)
    assert took < 1 + 5 + 5 + 20
    assert bridge.told("stopped")[0]["given_back"] >= 2
    drain.take(url)
    confirmed = set(drain.bodies(url))
    rest = scene.pull_rest("events")
    assert len(rest) >= bridge.told("stopped")[0]["given_back"]
    # What was on its way to the bridge when it hung up is still leased to it, until its deadline is over.
    wait_until(lambda: rest.update(scene.pull_rest("events")) or confirmed | rest == ids, 30, "the rest's return")
    assert len(rest) > 100


# with a client that refuses, in this process


class RefusingClient:
    """A client whose queue refuses some messages; what it was sent is remembered in order."""

    def __init__(self, real: Any, refuses: Callable[[str], bool | None]) -> None:
        self._real = real
        self._refuses = refuses
        self.tries: defaultdict[str, int] = defaultdict(int)
        self.confirmed: list[str] = []

    def get_queue_url(self, **given: Any) -> Any:
        return self._real.get_queue_url(**given)

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Any]) -> dict[str, Any]:  # noqa: N803  boto3's names
        ids = {entry["Id"]: json.loads(entry["MessageBody"])["message_id"] for entry in Entries}
        for message_id in ids.values():
            self.tries[message_id] += 1
        verdicts = {entry_id: self._refuses(message_id) for entry_id, message_id in ids.items()}
        taken = [entry for entry in Entries if verdicts[entry["Id"]] is None]
        answer = self._real.send_message_batch(QueueUrl=QueueUrl, Entries=taken) if taken else {}
        self.confirmed += [ids[one["Id"]] for one in answer.get("Successful", [])]
        failed = [
            {"Id": entry_id, "Code": "Refused", "SenderFault": fault}
            for entry_id, fault in verdicts.items()
            if fault is not None
        ]
        return {**answer, "Failed": failed}


def bridge_here(scene: BridgeScene, client: Any, settings: BridgeSettings, is_done: Callable[[], bool]) -> Metrics:
    """Run a bridge in this process until a condition holds."""
    metrics = Metrics()

    async def run() -> None:
        letters = LetterBox(client, settings.deployment.dead_letter_queue, BucketBodies(scene.s3, BUCKET))
        post = Post(TopicQueues(client, settings.deployment), letters, 8, 5, random.random)
        source = PubSubSource(
            settings.gcp_project,
            settings.subscriptions,
            settings.subscription_prefix,
            settings.ack_deadline_seconds,
            "tests",
            scene.pubsub.address,
        )
        log = structlog.wrap_logger(None, processors=[_silence])
        bridge = Bridge(settings, source, post, metrics, log, random.random, Pulse())
        stop = asyncio.Event()
        running = asyncio.create_task(bridge.run(stop))
        deadline = time.monotonic() + 90
        while not is_done() and not running.done():
            assert time.monotonic() < deadline, "it did not happen in time"
            await asyncio.sleep(0.02)
        stop.set()
        assert await running
        await source.close()

    asyncio.run(run())
    return metrics


def _silence(*_: Any) -> Any:
    raise structlog.DropEvent


def test_exactly_what_the_queue_refuses_is_handed_out_again(make_scene: Callable[..., BridgeScene]) -> None:
    scene = make_scene("events")
    url = scene.make_queue("events")
    ids = scene.publish("events", [PubsubMessage(data=b'{"n":%d}' % n) for n in range(200)])
    poison, busy = set(ids[3:200:40]), set(ids[5:200:40])
    client = RefusingClient(
        scene.sqs,
        lambda name: (
            True
            if name in poison and client.tries[name] < 3
            else False
            if name in busy and client.tries[name] < 3
            else None
        ),
    )
    settings = load_bridge_settings(scene.environ(REST_SECONDS="1", REST_SECONDS_MAX="1", RETRY_SECONDS="0.01"))
    metrics = bridge_here(scene, client, settings, lambda: len(set(client.confirmed)) == 200)
    drain = Drain(scene.sqs)
    drain.take(url)
    assert set(drain.bodies(url)) == set(ids)
    assert {name for name, tries in client.tries.items() if tries > 1} == poison | busy
    value = metrics.registry.get_sample_value
    # What the sender is to blame for went back to Pub/Sub each time; what the queue is to blame for never did.
    assert value("lean_ops_bridge_nacked_total", {"topic": "events"}) == 2 * len(poison)
    assert value("lean_ops_bridge_received_total", {"topic": "events"}) == 200 + 2 * len(poison)
    assert scene.pull_rest("events") == set()


def test_messages_of_an_ordering_key_are_confirmed_in_their_order(make_scene: Callable[..., BridgeScene]) -> None:
    scene = make_scene("events", ordering=True)
    scene.make_queue("events")
    ids: dict[str, list[str]] = defaultdict(list)
    for number in range(60):
        key = "abc"[number % 3]
        ids[key] += scene.publish("events", [PubsubMessage(data=b"{}", ordering_key=key)])
    client = RefusingClient(
        scene.sqs,
        lambda name: bool(int(name[1:]) % 2) if int(name[1:]) % 9 == 0 and client.tries[name] < 3 else None,
    )
    settings = load_bridge_settings(scene.environ(REST_SECONDS="0.1", REST_SECONDS_MAX="0.1", RETRY_SECONDS="0.01"))
    bridge_here(scene, client, settings, lambda: len(set(client.confirmed)) == 60)
    for of_key in ids.values():
        assert [name for name in client.confirmed if name in of_key] == of_key
    assert max(client.tries.values()) == 3
