"""A message on its way from a subscription to a queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.aws.topic_queues import MOST_BYTES, attribute_bytes
from lean_ops.bridge.envelope import body_of, text_bytes

if TYPE_CHECKING:
    from lean_ops.bridge.envelope import PulledMessage


@dataclass(slots=True, eq=False)
class Parcel:
    """A message with its queue body. `size` is what SQS counts; times are of the loop's clock.

    Two things change: until when Pub/Sub gives the message to nobody else, and whether it has a place in the budget.
    """

    ack_id: str
    message_id: str
    ordering_key: str
    attempt: int
    body: str
    size: int
    received_at: float
    leased_until: float
    has_place: bool = False

    @property
    def is_oversized(self) -> bool:
        """Whether no queue takes it."""
        return self.size > MOST_BYTES


def parcel_of(message: PulledMessage, topic: str, now: float, leased_until: float) -> Parcel:
    """The parcel of a message that has just come."""
    body = body_of(message)
    size = text_bytes(body) + attribute_bytes(topic)
    names = (message.ack_id, message.message_id, message.ordering_key, message.attempt)
    return Parcel(*names, body, size, now, leased_until)
