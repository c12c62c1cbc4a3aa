"""A topic's circuit: whether its queue is read, read on trial, or left alone because too much of it failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """How a topic's queue is read."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is known of a topic's circuit; times are in seconds since 1970.

    `settled` says that the queue's mapping is as the phase wants it: until then it is brought there, after that it is
    a person's. `announced` says that everybody was told of the phase. `concurrency` is the mapping's own limit, kept
    while a smaller one is in its place, and `revision` rises with each write.
    """

    topic: str
    phase: Phase = Phase.CLOSED
    since: int = 0
    opened_at: int | None = None
    settled: bool = True
    announced: bool = True
    concurrency: int | None = None
    received: int = 0
    failed: int = 0
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """A circuit, and by minute since 1970 how many messages its topic received and how many of these failed."""

    circuit: Circuit
    minutes: dict[int, tuple[int, int]] = field(default_factory=dict)
