"""The port to what the circuit breaker keeps: a topic's traffic by minute, and its circuit."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from lean_ops.model.circuit import Circuit, Seen

# Decisions look five minutes back; the rest is for a person who looks into what happened.
TRAFFIC_KEPT: Final = timedelta(hours=1)


class TrafficBook(Protocol):
    """What a consumer of a queue reports."""

    def record(self, topic: str, minute: int, received: int, failed: int) -> None:
        """Add to a topic's messages of a minute (since 1970); `failed` are dead letters and failures together."""


class Circuits(TrafficBook, Protocol):
    """What the breaker reads and writes."""

    def seen(self, topic: str, first_minute: int) -> Seen:
        """A topic's circuit, a closed one if there is none yet, and its traffic from a minute on."""

    def save(self, circuit: Circuit) -> Circuit | None:
        """Write a circuit in the place of its own revision; None, and nothing is written, if another was faster."""
