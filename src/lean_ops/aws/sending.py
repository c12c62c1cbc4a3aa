"""Sending many things in batches of which a service may refuse a part: just the refused ones go again.

A round sends all that is waiting, then one pause follows, so that a thousand refused things wait once and not a
thousand times. It ends when everything is through or when the time left is needed for the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

ROUNDS: Final = 12
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_ANSWER_SECONDS: Final = 2.0
_NO_TIME: Final = "no time left to send it"


class Refused(NamedTuple):
    """Why a thing was not taken, and whether sending it again is of no use."""

    reason: str
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on. `kept` are the seconds at the end that are not for sending; `chance` is in [0, 1)."""

    seconds_left: Callable[[], float]
    kept: float
    sleep: Callable[[float], None]
    chance: Callable[[], float]

    @classmethod
    def of_call(
        cls,
        seconds_left: Callable[[], float],
        attempt_seconds: float,
        sleep: Callable[[float], None],
        chance: Callable[[], float],
    ) -> Patience:
        """What a call of a function has: all but the time of one hanging attempt and of the answer.

        However short the call's time is, half of it is for sending: giving up at once would help nobody.
        """
        return cls(seconds_left, min(attempt_seconds + _ANSWER_SECONDS, seconds_left() / 2), sleep, chance)

    def part(self, share: float) -> Patience:
        """The patience of one who may use a share of the time from now on."""
        return replace(self, kept=self.kept + max(0.0, self.seconds_left() - self.kept) * (1 - share))

    def has_time(self, pause: float = 0.0) -> bool:
        """Whether something may begin after a pause."""
        return self.seconds_left() - pause > self.kept

    def rest(self, rounds: int) -> bool:
        """Wait after that many rounds: anything up to twice as long as before, so that senders don't meet again.

        False, without waiting, when there is no time for another round.
        """
        pause = self.chance() * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**rounds)
        if not self.has_time(pause):
            return False
        self.sleep(pause)
        return True


def send_all(
    count: int,
    batches: Callable[[Sequence[int]], Iterable[Sequence[int]]],
    send: Callable[[Sequence[int]], Mapping[int, Refused]],
    patience: Patience,
) -> dict[int, str]:
    """Send the things at positions 0 to `count`; the positions that are not through, with the reason.

    `batches` cuts positions into what one call takes, `send` makes the call and says which it refused.
    """
    waiting: Sequence[int] = range(count)
    failed: dict[int, str] = {}
    for done in range(1, ROUNDS + 1):
        refused = _round(batches(waiting), send, patience)
        for position in waiting:
            failed.pop(position, None)
        failed.update((position, why.reason) for position, why in refused.items())
        waiting = [position for position, why in refused.items() if not why.for_good]
        if not waiting or done == ROUNDS or not patience.rest(done):
            break
    return failed


def _round(
    batches: Iterable[Sequence[int]], send: Callable[[Sequence[int]], Mapping[int, Refused]], patience: Patience
) -> dict[int, Refused]:
    refused: dict[int, Refused] = {}
    for batch in batches:
        refused.update(send(batch) if patience.has_time() else dict.fromkeys(batch, Refused(_NO_TIME)))
    return refused


def cut(positions: Iterable[int], sizes: Sequence[int], most: int, most_bytes: int) -> Iterator[list[int]]:
    """Positions in their order, in batches of at most so many and so many bytes; a thing alone may be larger."""
    batch: list[int] = []
    total = 0
    for position in positions:
        if batch and (len(batch) == most or total + sizes[position] > most_bytes):
            yield batch
            batch, total = [], 0
        batch.append(position)
        total += sizes[position]
    if batch:
        yield batch
