"""Draining the dead-letter queue: letters are taken to their end until none is left, and their age is watched."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from lean_ops.ledger.books import Alert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from lean_ops.aws.queues import Delivery
    from lean_ops.ingest.dead_letters import DeadLetters
    from lean_ops.model.letter import ReceivedLetter

AGE_KIND: Final = "DLQ_AGE"
# Alerts of the queue itself stand under this name, which no topic can have.
QUEUE: Final = "dlq"
OLDEST: Final = timedelta(minutes=15)
# Letters that are booked in one commit.
_TOGETHER: Final = 100
_WAIT_SECONDS: Final = 1


class Queue(Protocol):
    """What is asked of the queue."""

    def receive(self, wait_seconds: int = 0) -> list[Delivery]:
        """The next messages."""

    def delete(self, handles: Sequence[str]) -> dict[str, str]:
        """Delete deliveries; those that are still there, with the reason."""


@dataclass(slots=True)
class Drained:
    """What became of the letters; those that failed are still in the queue."""

    taken: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    oldest: datetime | None = None

    def saw(self, letters: Iterable[ReceivedLetter]) -> None:
        """Note how old letters are."""
        times = [letter.sent_at for letter in letters]
        self.oldest = min([*times, *([self.oldest] if self.oldest else [])], default=None)


def drain(queue: Queue, letters: DeadLetters, has_time: Callable[[], bool]) -> Drained:
    """Take every letter that can be had now; ends when the queue hands over nothing or there is no time left."""
    drained = Drained()
    while has_time():
        deliveries = _together(queue, has_time)
        if not deliveries:
            break
        drained.saw(letter for letter, _ in deliveries)
        failed = letters.take([letter for letter, _ in deliveries])
        done = [handle for letter, handle in deliveries if letter.message_id not in failed]
        left = queue.delete(done)
        drained.taken += len(done)
        drained.failed |= failed
        drained.failed |= {letter.message_id: left[handle] for letter, handle in deliveries if handle in left}
    return drained


def _together(queue: Queue, has_time: Callable[[], bool]) -> list[Delivery]:
    """As many letters as go into one commit, if they are there."""
    deliveries: list[Delivery] = []
    while len(deliveries) < _TOGETHER and (not deliveries or has_time()):
        more = queue.receive(_WAIT_SECONDS)
        deliveries += more
        if not more:
            break
    return deliveries


def age_alert(oldest: datetime | None, now: datetime) -> Alert | None:
    """The alert that the oldest letter's age calls for; letters of one hour are one alert."""
    if oldest is None or now - oldest <= OLDEST:
        return None
    minutes = (now - oldest).total_seconds() / 60
    return Alert(
        f"{oldest:%Y-%m-%dT%H}",
        QUEUE,
        AGE_KIND,
        "warning",
        f"a dead letter waited {minutes:.0f} minutes in the queue, since {oldest:%Y-%m-%dT%H:%M:%SZ}",
        round(minutes, 1),
        OLDEST.total_seconds() / 60,
    )
