"""What is said to Pub/Sub on the wire, and what its answers mean; against a server that says what it is told to."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError, RefreshError
from google.protobuf.empty_pb2 import Empty
from google.pubsub_v1 import types
from tests.unit.bridge.doubles import until

from lean_ops.bridge import pubsub, pubsub_stream
from lean_ops.bridge.envelope import PulledMessage
from lean_ops.bridge.ports import FoundSubscription, Outstanding
from lean_ops.bridge.pubsub import PubSubSource
from lean_ops.bridge.pubsub_faults import error_of
from lean_ops.model.errors import TerminalError, TransientError

SUBSCRIPTION = "projects/p-project/subscriptions/lean-ops-events"
UNAVAILABLE, NOT_FOUND = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND


class Script:
    """What the server does with the next stream, and what it was asked."""

    def __init__(self) -> None:
        self.answers: queue.Queue[types.StreamingPullResponse | grpc.StatusCode | None] = queue.Queue()
        self.streams: list[tuple[types.StreamingPullRequest, dict[str, str], str]] = []
        self.beats: list[types.StreamingPullRequest] = []
        self.calls: list[Any] = []
        self.failures: list[grpc.StatusCode] = []
        self.found: list[types.Subscription] = []
        self.ended = 0

    def streaming_pull(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        metadata = {pair.key: str(pair.value) for pair in context.invocation_metadata()}
        self.streams.append((next(requests), metadata, context.peer()))
        listening = ThreadPoolExecutor(1)
        listening.submit(lambda: self.beats.extend(iter_quietly(requests)))
        while context.is_active():
            try:
                answer = self.answers.get(timeout=0.05)
            except queue.Empty:
                continue
            if isinstance(answer, grpc.StatusCode):
                context.abort(answer, "as it was told to")
            if answer is None:
                return
            yield answer
        self.ended += 1

    def unary(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls.append(request)
        if self.failures:
            context.abort(self.failures.pop(0), "as it was told to")
        return Empty()

    def get(self, request: Any, context: grpc.ServicerContext) -> Any:
        for one in self.found:
            if one.name == request.subscription:
                return one
        return context.abort(NOT_FOUND, "no such subscription")

    def listed(self, request: Any, _: grpc.ServicerContext) -> Any:
        start = int(request.page_token or 0)
        rest = start + request.page_size
        token = str(rest) if rest < len(self.found) else ""
        return types.ListSubscriptionsResponse(subscriptions=self.found[start:rest], next_page_token=token)


def iter_quietly(requests: Iterator[Any]) -> Iterator[Any]:
    with suppress(Exception):  # the stream was cancelled, in whichever way gRPC says so
        yield from requests


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def address(script: Script) -> Iterator[str]:
    handlers = {
        "StreamingPull": grpc.stream_stream_rpc_method_handler(
            script.streaming_pull, types.StreamingPullRequest.deserialize, types.StreamingPullResponse.serialize
        ),
        "Acknowledge": grpc.unary_unary_rpc_method_handler(
            script.unary, types.AcknowledgeRequest.deserialize, Empty.SerializeToString
        ),
        "ModifyAckDeadline": grpc.unary_unary_rpc_method_handler(
            script.unary, types.ModifyAckDeadlineRequest.deserialize, Empty.SerializeToString
        ),
        "GetSubscription": grpc.unary_unary_rpc_method_handler(
            script.get, types.GetSubscriptionRequest.deserialize, types.Subscription.serialize
        ),
        "ListSubscriptions": grpc.unary_unary_rpc_method_handler(
            script.listed, types.ListSubscriptionsRequest.deserialize, types.ListSubscriptionsResponse.serialize
        ),
    }
    server = grpc.server(ThreadPoolExecutor(70))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("google.pubsub.v1.Subscriber", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(0).wait(10)


def ask(address: str, story: Callable[[PubSubSource], Coroutine[Any, Any, None]], names: tuple[str, ...] = ()) -> None:
    async def asked() -> None:
        source = PubSubSource("p-project", names, "lean-ops-", 30, "client-1", address)
        try:
            await asyncio.wait_for(story(source), 120)
        finally:
            await source.close()

    asyncio.run(asked())


def test_a_stream_says_what_it_wants_and_its_messages_come_out_unchanged(script: Script, address: str) -> None:
    message = types.PubsubMessage(
        data=b"\xff\x00", message_id="7", attributes={"idempotency_key": "k"}, ordering_key="o"
    )
    types.PubsubMessage.pb(message).publish_time.FromNanoseconds(1_770_113_730_120_456_789)
    received = types.ReceivedMessage(ack_id="ack-7", message=message, delivery_attempt=3)
    timeless = types.ReceivedMessage(ack_id="ack-8", message=types.PubsubMessage(message_id="8"))
    script.answers.put(types.StreamingPullResponse(received_messages=[received, timeless]))

    async def story(source: PubSubSource) -> None:
        stream = await source.open(SUBSCRIPTION, Outstanding(77, 8888))
        assert await stream.read() == [
            PulledMessage("7", (1_770_113_730, 120_456_789), b"\xff\x00", {"idempotency_key": "k"}, "o", "ack-7", 3),
            PulledMessage("8", None, b"", {}, "", "ack-8", 1),
        ]
        stream.close()

    ask(address, story)
    request, metadata, _ = script.streams[0]
    assert (request.subscription, request.stream_ack_deadline_seconds, request.client_id) == (
        SUBSCRIPTION,
        30,
        "client-1",
    )
    assert (request.max_outstanding_messages, request.max_outstanding_bytes) == (77, 8888)
    assert metadata["x-goog-request-params"] == f"subscription={SUBSCRIPTION}"


@pytest.mark.parametrize(("answer", "error"), [(None, None), (UNAVAILABLE, TransientError), (NOT_FOUND, TerminalError)])
def test_the_end_of_a_stream_is_told_apart(script: Script, address: str, answer: Any, error: Any) -> None:
    script.answers.put(answer)

    async def story(source: PubSubSource) -> None:
        stream = await source.open(SUBSCRIPTION, Outstanding(1, 1))
        if error is None:
            assert await stream.read() is None
        else:
            with pytest.raises(error, match="as it was told to"):
                await stream.read()
        stream.close()

    ask(address, story)


def test_a_reader_that_waits_is_let_go_when_the_stream_is_closed(script: Script, address: str) -> None:
    async def story(source: PubSubSource) -> None:
        stream = await source.open(SUBSCRIPTION, Outstanding(1, 1))
        reading = asyncio.create_task(stream.read())
        await until(lambda: script.streams)
        stream.close()
        stream.close()
        assert await reading is None
        assert await stream.read() is None
        await until(lambda: script.ended == 1)

    ask(address, story)


def test_a_reader_that_is_cancelled_is_cancelled(script: Script, address: str) -> None:
    async def story(source: PubSubSource) -> None:
        stream = await source.open(SUBSCRIPTION, Outstanding(1, 1))
        reading = asyncio.create_task(stream.read())
        await until(lambda: script.streams)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        stream.close()

    ask(address, story)


def test_an_idle_stream_is_kept_alive(script: Script, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pubsub_stream, "_HEARTBEAT_SECONDS", 0.05)

    async def story(source: PubSubSource) -> None:
        stream = await source.open(SUBSCRIPTION, Outstanding(1, 1))
        await until(lambda: len(script.beats) >= 3)
        stream.close()

    ask(address, story)
    assert set(map(str, script.beats)) == {""}


def test_streams_are_spread_over_connections_and_leave_their_places_free(
    script: Script, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pubsub, "_STREAMS_PER_CHANNEL", 3)

    async def story(source: PubSubSource) -> None:
        streams = [await source.open(SUBSCRIPTION, Outstanding(1, 1)) for _ in range(7)]
        await until(lambda: len(script.streams) == 7)
        peers = [peer for _, _, peer in script.streams]
        assert sorted(map(peers.count, set(peers))) == [1, 3, 3]
        for stream in streams[:3]:
            stream.close()
        streams += [await source.open(SUBSCRIPTION, Outstanding(1, 1)) for _ in range(3)]
        await until(lambda: len(script.streams) == 10)
        assert {peer for _, _, peer in script.streams} == set(peers)
        for stream in streams:
            stream.close()

    ask(address, story)


def test_acknowledgements_and_leases_are_sent_and_what_passes_is_sent_again(script: Script, address: str) -> None:
    script.failures += [UNAVAILABLE, grpc.StatusCode.INTERNAL]

    async def story(source: PubSubSource) -> None:
        await source.acknowledge(SUBSCRIPTION, ["a", "b"])
        await source.lease(SUBSCRIPTION, ["c"], 45)
        script.failures.append(NOT_FOUND)
        with pytest.raises(TerminalError, match="Make the subscription"):
            await source.acknowledge(SUBSCRIPTION, ["d"])

    ask(address, story)
    acknowledged = types.AcknowledgeRequest(subscription=SUBSCRIPTION, ack_ids=["a", "b"])
    assert script.calls[:3] == [acknowledged] * 3
    lease = types.ModifyAckDeadlineRequest(subscription=SUBSCRIPTION, ack_ids=["c"], ack_deadline_seconds=45)
    assert script.calls[3] == lease
    assert len(script.calls) == 5


def test_subscriptions_are_listed_over_pages_and_chosen_by_their_prefix(
    script: Script, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pubsub, "_PAGE", 2)
    names = ["lean-ops-a", "other-b", "lean-ops-c", "lean-ops-d", "xlean-ops-e"]
    script.found = [
        types.Subscription(name=f"projects/p-project/subscriptions/{name}", topic=f"projects/p-project/topics/{name}")
        for name in names
    ]
    script.found[2].push_config.push_endpoint = "https://elsewhere"
    script.found[3].bigquery_config.table = "p.d.t"

    async def story(source: PubSubSource) -> None:
        begins = "projects/p-project"
        assert await source.subscriptions() == [
            FoundSubscription(f"{begins}/subscriptions/{name}", f"{begins}/topics/{name}", pushes=name != "lean-ops-a")
            for name in ("lean-ops-a", "lean-ops-c", "lean-ops-d")
        ]
        monkeypatch.setattr(pubsub, "_MOST_SUBSCRIPTIONS", 4)
        with pytest.raises(TerminalError, match="at most 4"):
            await source.subscriptions()

    ask(address, story)


def test_named_subscriptions_are_asked_for_one_by_one(script: Script, address: str) -> None:
    script.found = [types.Subscription(name="projects/p-project/subscriptions/one", topic="projects/x/topics/events")]

    async def story(source: PubSubSource) -> None:
        (found,) = await source.subscriptions()
        assert found == FoundSubscription("projects/p-project/subscriptions/one", "projects/x/topics/events")

    async def other_story(source: PubSubSource) -> None:
        with pytest.raises(TerminalError, match="subscriptions/two"):
            await source.subscriptions()

    ask(address, story, ("one",))
    ask(address, other_story, ("one", "two"))


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (exceptions.ServiceUnavailable("moved"), TransientError, "moved"),
        (exceptions.RetryError("too long", cause=None), TransientError, "too long"),
        (exceptions.PermissionDenied("no"), TerminalError, "docs/bridge.md"),
        (exceptions.Unauthenticated("who"), TerminalError, "credentials"),
        (DefaultCredentialsError("none"), TerminalError, "credentials"),
        (RefreshError("later", retryable=True), TransientError, "later"),
        (exceptions.NotFound("x\n\n" + "y" * 1000), TerminalError, "x yyy"),
    ],
)
def test_faults_are_told_in_words_and_bounded(error: Exception, kind: type[Exception], words: str) -> None:
    told = error_of("projects/p", error)
    assert isinstance(told, kind)
    assert words in str(told)
    assert len(str(told)) < 600
