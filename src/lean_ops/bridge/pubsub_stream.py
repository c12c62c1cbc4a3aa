"""One streaming pull of Pub/Sub, as a thing to read from."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import grpc.aio  # type: ignore[import-untyped]  # the same
from google.pubsub_v1.types import StreamingPullRequest, StreamingPullResponse

from lean_ops.bridge.envelope import PulledMessage
from lean_ops.bridge.pubsub_faults import error_of
from lean_ops.model.errors import LeanOpsError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

_HEARTBEAT_SECONDS: Final = 30.0
_WRITE_SECONDS: Final = 10.0


class PubSubStream:
    """A stream of a subscription's messages; `left` is called once, when it is closed."""

    def __init__(self, subscription: str, open_call: Callable[..., Any], left: Callable[[], None]) -> None:
        self._subscription = subscription
        self._open_call = open_call
        self._left = left
        self._call: Any = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._is_closed = False

    async def start(self, request: StreamingPullRequest) -> None:
        """Say what is wanted; whether Pub/Sub agrees shows with the first read."""
        # Streaming calls carry no routing of their own: Google finds the subscription's servers by this.
        metadata = (("x-goog-request-params", f"subscription={self._subscription}"),)
        self._call = self._open_call(metadata=metadata)
        try:
            await self._write(request)
        except LeanOpsError:
            self.close()
            raise
        self._heartbeat = asyncio.create_task(self._beat())

    async def read(self) -> list[PulledMessage] | None:
        """The next messages; None when the stream has ended."""
        try:
            response = await self._call.read()
        except grpc.RpcError as error:
            if self._is_closed:
                return None
            raise error_of(self._subscription, error) from error
        except asyncio.CancelledError:
            # gRPC says so of a call that was closed here, and asyncio of a task that somebody cancels.
            task = asyncio.current_task()
            if self._is_closed and not (task and task.cancelling()):
                return None
            raise
        if response is grpc.aio.EOF:
            return None
        return [_pulled(received) for received in StreamingPullResponse.pb(response).received_messages]

    def close(self) -> None:
        """End it; a read that waits returns None."""
        if self._is_closed:
            return
        self._is_closed = True
        self._left()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._call is not None:
            self._call.cancel()

    async def _beat(self) -> None:
        """Pub/Sub closes a stream on which its client is silent; a broken one is the reader's to tell."""
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            try:
                await self._write(StreamingPullRequest())
            except LeanOpsError:
                return

    async def _write(self, request: StreamingPullRequest) -> None:
        try:
            await asyncio.wait_for(self._call.write(request), _WRITE_SECONDS)
        except TimeoutError as error:
            raise TransientError("Pub/Sub can't be reached", where=self._subscription) from error
        except (grpc.RpcError, asyncio.InvalidStateError) as error:
            raise error_of(self._subscription, error) from error


def _pulled(received: Any) -> PulledMessage:
    """A message out of protobuf, with nothing of its time rounded."""
    message = received.message
    time = message.publish_time
    return PulledMessage(
        message_id=message.message_id,
        published=(time.seconds, time.nanos) if message.HasField("publish_time") else None,
        data=message.data,
        attributes=dict(message.attributes),
        ordering_key=message.ordering_key,
        ack_id=received.ack_id,
        attempt=max(1, received.delivery_attempt),
    )
