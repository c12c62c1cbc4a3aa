"""The queues' blocking calls, made in threads, so that a queue that hangs keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from lean_ops.aws.letters import Letter
from lean_ops.aws.sending import Patience
from lean_ops.aws.topic_queues import MOST_BYTES, Verdict
from lean_ops.model.envelope import DeadLetter, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lean_ops.bridge.parcel import Parcel
    from lean_ops.bridge.ports import Letters, Queues

# They hold bodies of many megabytes, so few go at a time.
_LETTERS_AT_A_TIME: Final = 2
_is_safe: Final = re.compile(r"[A-Za-z0-9_-]{1,128}").fullmatch


class Post:
    """The way to all queues for all lanes."""

    def __init__(
        self, queues: Queues, letters: Letters, senders: int, letter_seconds: float, chance: Callable[[], float]
    ) -> None:
        self._queues = queues
        self._letters = letters
        self._letter_seconds = letter_seconds
        self._chance = chance
        self._senders = ThreadPoolExecutor(senders, thread_name_prefix="send")
        self._letter_senders = ThreadPoolExecutor(_LETTERS_AT_A_TIME, thread_name_prefix="letter")

    async def url(self, topic: str) -> str:
        """Where a topic's queue is; QueueGoneError if there is none."""
        return await asyncio.get_running_loop().run_in_executor(self._senders, self._queues.url, topic)

    async def send(self, url: str, topic: str, batch: Sequence[Parcel]) -> list[Verdict]:
        """A verdict for each parcel; one that no queue takes goes to the dead letters, whole in the archive."""
        loop = asyncio.get_running_loop()
        if batch[0].is_oversized:
            return [await loop.run_in_executor(self._letter_senders, self._send_letter, topic, batch[0])]
        bodies = [parcel.body for parcel in batch]
        return await loop.run_in_executor(self._senders, self._queues.send, url, topic, bodies)

    def close(self) -> None:
        """Start nothing any more; calls that are under way end by their own timeouts."""
        for pool in (self._senders, self._letter_senders):
            pool.shutdown(wait=False, cancel_futures=True)

    def _send_letter(self, topic: str, parcel: Parcel) -> Verdict:
        ends = time.monotonic() + self._letter_seconds
        patience = Patience(lambda: ends - time.monotonic(), 0.0, time.sleep, self._chance)
        failed = self._letters.send([_letter(topic, parcel)], patience)
        return Verdict(taken=False, reason=failed[0]) if failed else Verdict(taken=True)


def _letter(topic: str, parcel: Parcel) -> Letter:
    reason = f"the body has {parcel.size} bytes with its attributes, at most {MOST_BYTES} go through a queue"
    dead = DeadLetter(Refusal.OVERSIZED, reason, parcel.message_id)
    return Letter(_safe_id(parcel.message_id), topic, dead, parcel.body, parcel.attempt)


def _safe_id(message_id: str) -> str:
    """The id in a form that can be part of a file's name: a letter that is sent twice overwrites its own body."""
    return message_id if _is_safe(message_id) else hashlib.sha256(message_id.encode()).hexdigest()
