"""Pub/Sub by gRPC: hundreds of streams in one loop, without a thread for any of them.

Google's own subscriber keeps several threads for each subscription, and its limits are for one subscription each; here
they are for all of them together, so the streams are read by ourselves.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import google.auth
import grpc.aio  # type: ignore[import-untyped]  # grpcio ships no types
from google.api_core.retry import AsyncRetry, if_exception_type
from google.auth.exceptions import GoogleAuthError
from google.pubsub_v1.services.subscriber.async_client import SubscriberAsyncClient
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcAsyncIOTransport
from google.pubsub_v1.types import StreamingPullRequest

from lean_ops.bridge.ports import FoundSubscription
from lean_ops.bridge.pubsub_faults import WORTH_ANOTHER_CALL, answered, error_of
from lean_ops.bridge.pubsub_stream import PubSubStream
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.auth.credentials import Credentials
    from google.pubsub_v1.types import Subscription

    from lean_ops.bridge.ports import Outstanding

# A connection to Google carries a hundred streams; more of them would wait without a word.
_STREAMS_PER_CHANNEL: Final = 50
_CALL_SECONDS: Final = 10.0
_RETRY_SECONDS: Final = 20.0
_MOST_SUBSCRIPTIONS: Final = 10_000
_PAGE: Final = 1000
_OPTIONS: Final = (
    # A message has at most 10 MB, and an answer holds few of that size.
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.max_metadata_size", 4 * 1024 * 1024),
    ("grpc.keepalive_time_ms", 30_000),
    # Otherwise channels to the same host share one connection, and its limit of streams.
    ("grpc.use_local_subchannel_pool", 1),
)
_RETRY: Final = AsyncRetry(
    predicate=if_exception_type(*WORTH_ANOTHER_CALL),
    initial=0.1,
    maximum=5.0,
    multiplier=2.0,
    timeout=_RETRY_SECONDS,
)


@dataclass(slots=True)
class _Channel:
    """A connection and how many streams it carries."""

    connection: grpc.aio.Channel
    client: SubscriberAsyncClient
    streams: int = 0

    def left(self) -> None:
        self.streams -= 1


@dataclass(slots=True)
class PubSubSource:
    """The subscriptions of a project: those that are named, or all whose names begin with the prefix.

    `emulator` is the address of a server that asks for no credentials.
    """

    gcp_project: str
    names: Sequence[str]
    prefix: str
    ack_deadline_seconds: int
    client_id: str
    emulator: str | None = None
    _channels: list[_Channel] = field(default_factory=list)
    _credentials: Credentials | None = None

    async def subscriptions(self) -> list[FoundSubscription]:
        """The subscriptions that the bridge is there for."""
        client = (await self._channel()).client
        if self.names:
            paths = [f"projects/{self.gcp_project}/subscriptions/{name}" for name in self.names]
            return [await answered(path, _named(client, path)) for path in paths]
        return await answered(f"projects/{self.gcp_project}", self._listed(client))

    async def open(self, subscription: str, outstanding: Outstanding) -> PubSubStream:
        """Start pulling; whether Pub/Sub agrees shows with the first read."""
        channel = await self._channel()
        channel.streams += 1
        stream = PubSubStream(subscription, channel.client.transport.streaming_pull, channel.left)
        await stream.start(
            StreamingPullRequest(
                subscription=subscription,
                stream_ack_deadline_seconds=self.ack_deadline_seconds,
                client_id=self.client_id,
                max_outstanding_messages=outstanding.messages,
                max_outstanding_bytes=outstanding.bytes,
            )
        )
        return stream

    async def acknowledge(self, subscription: str, ack_ids: Sequence[str]) -> None:
        """The messages are done with."""
        client = (await self._channel()).client
        request = {"subscription": subscription, "ack_ids": list(ack_ids)}
        await answered(subscription, client.acknowledge(request, retry=_RETRY, timeout=_CALL_SECONDS))

    async def lease(self, subscription: str, ack_ids: Sequence[str], seconds: int) -> None:
        """Nobody gets the messages before that time has passed; with 0 seconds anybody may, now."""
        client = (await self._channel()).client
        request = {"subscription": subscription, "ack_ids": list(ack_ids), "ack_deadline_seconds": seconds}
        await answered(subscription, client.modify_ack_deadline(request, retry=_RETRY, timeout=_CALL_SECONDS))

    async def close(self) -> None:
        """Close every connection."""
        channels, self._channels = self._channels, []
        for channel in channels:
            await channel.connection.close()

    async def _listed(self, client: SubscriberAsyncClient) -> list[FoundSubscription]:
        project = f"projects/{self.gcp_project}"
        request = {"project": project, "page_size": _PAGE}
        found, seen = [], 0
        async for subscription in await client.list_subscriptions(request, retry=_RETRY, timeout=_CALL_SECONDS):
            seen += 1
            if seen > _MOST_SUBSCRIPTIONS:
                expected = f"at most {_MOST_SUBSCRIPTIONS}"
                raise TerminalError(
                    "more subscriptions than the bridge looks through", where=project, expected=expected
                )
            if subscription.name.startswith(f"{project}/subscriptions/{self.prefix}"):
                found.append(_found(subscription))
        return found

    async def _channel(self) -> _Channel:
        """The connection with the fewest streams; a new one if all have their share."""
        free = min(self._channels, key=lambda channel: channel.streams, default=None)
        if free is None or free.streams >= _STREAMS_PER_CHANNEL:
            free = await self._new_channel()
            self._channels.append(free)
        return free

    async def _new_channel(self) -> _Channel:
        transport = SubscriberGrpcAsyncIOTransport
        if self.emulator:
            connection = grpc.aio.insecure_channel(self.emulator, options=_OPTIONS)
        else:
            if self._credentials is None:
                self._credentials = await asyncio.to_thread(_default_credentials, transport.AUTH_SCOPES)
            connection = transport.create_channel(credentials=self._credentials, options=_OPTIONS)
        return _Channel(connection, SubscriberAsyncClient(transport=transport(channel=connection)))


def _default_credentials(scopes: Sequence[str]) -> Any:
    """What the environment gives; Google looks for it in files and on the network."""
    try:
        return google.auth.default(scopes=scopes)[0]
    except GoogleAuthError as error:
        raise error_of("Google Cloud", error) from error


async def _named(client: SubscriberAsyncClient, path: str) -> FoundSubscription:
    return _found(await client.get_subscription(subscription=path, retry=_RETRY, timeout=_CALL_SECONDS))


def _found(subscription: Subscription) -> FoundSubscription:
    elsewhere = (
        subscription.push_config.push_endpoint,
        subscription.bigquery_config.table,
        subscription.cloud_storage_config.bucket,
    )
    return FoundSubscription(subscription.name, subscription.topic, pushes=any(elsewhere))
