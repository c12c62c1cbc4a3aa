"""What the bridge asks of the two clouds, whoever stands behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.aws.letters import Letter
    from lean_ops.aws.sending import Patience
    from lean_ops.aws.topic_queues import Verdict
    from lean_ops.bridge.envelope import PulledMessage


@dataclass(frozen=True, slots=True)
class Outstanding:
    """How much of a subscription Pub/Sub hands out before the first of it is acknowledged."""

    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FoundSubscription:
    """A subscription as Pub/Sub lists it, by full paths; one that pushes can't be pulled from."""

    path: str
    topic_path: str
    pushes: bool = False


class Stream(Protocol):
    """Messages of a subscription as they come."""

    async def read(self) -> list[PulledMessage] | None:
        """The next messages; None when the stream has ended. An error if it broke."""

    def close(self) -> None:
        """End it; a read that waits returns None."""


class Source(Protocol):
    """Pub/Sub, seen from its subscribers. Each call ends within its time; failures are LeanOpsErrors."""

    async def subscriptions(self) -> list[FoundSubscription]:
        """The subscriptions that the bridge is there for."""

    async def open(self, subscription: str, outstanding: Outstanding) -> Stream:
        """Start pulling."""

    async def acknowledge(self, subscription: str, ack_ids: Sequence[str]) -> None:
        """The messages are done with."""

    async def lease(self, subscription: str, ack_ids: Sequence[str], seconds: int) -> None:
        """Nobody gets the messages before that time has passed; with 0 seconds anybody may, now."""


class Queues(Protocol):
    """The topics' queues. Calls block; they are made in threads."""

    def url(self, topic: str) -> str:
        """Where a topic's queue is; QueueGoneError if there is none."""

    def send(self, url: str, topic: str, bodies: Sequence[str]) -> list[Verdict]:
        """A verdict for each body, in their order; an error if nothing is known of any of them."""


class Letters(Protocol):
    """The dead letter queue. Calls block; they are made in threads."""

    def send(self, letters: Sequence[Letter], patience: Patience) -> dict[int, str]:
        """Send letters; the positions of those that are not in the queue, with the reason."""
