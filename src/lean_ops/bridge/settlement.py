"""What Pub/Sub is told about a subscription's messages: done, not yet, or somebody else's turn.

Calls are gathered, so that a thousand messages cost one. A call that fails is told and counted and then forgotten:
Pub/Sub hands the messages out again, and a copy is harmless.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import LeanOpsError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from structlog.typing import FilteringBoundLogger

    from lean_ops.bridge.metrics import TopicMetrics
    from lean_ops.bridge.ports import Source

# An id has about 200 bytes and a request at most 512 KiB.
_MOST_IDS: Final = 1000
_GATHER_SECONDS: Final = 0.1
MOST_DELAY: Final = 600


class Settlement:
    """One subscription's answers to Pub/Sub."""

    def __init__(self, source: Source, subscription: str, metrics: TopicMetrics, log: FilteringBoundLogger) -> None:
        self._source = source
        self._subscription = subscription
        self._metrics = metrics
        self._log = log
        self._done: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()

    def done(self, ack_ids: Sequence[str]) -> None:
        """A queue has these messages; they are acknowledged within a moment."""
        self._done += ack_ids
        if len(self._done) >= _MOST_IDS:
            self._acknowledge_gathered()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._acknowledge_gathered)

    def give_back(self, ack_ids: Sequence[str], seconds: float) -> None:
        """Let these messages come again, not before that time has passed."""
        delay = min(MOST_DELAY, max(0, round(seconds)))
        for some in _chunks(ack_ids):
            self._start(self._give_back(some, delay))

    def keep(self, ack_ids: Sequence[str], seconds: int) -> None:
        """Nobody else gets these messages for that time."""
        for some in _chunks(ack_ids):
            self._start(self._keep(some, seconds))

    async def finish(self) -> None:
        """Wait until everything that was said here has been said to Pub/Sub."""
        self._acknowledge_gathered()
        while self._calls:
            await asyncio.gather(*self._calls)

    def _acknowledge_gathered(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        done, self._done = self._done, []
        for some in _chunks(done):
            self._start(self._acknowledge(some))

    async def _acknowledge(self, ack_ids: Sequence[str]) -> None:
        try:
            await self._source.acknowledge(self._subscription, ack_ids)
            self._metrics.acked.inc(len(ack_ids))
        except LeanOpsError as error:
            self._failed("acknowledge", ack_ids, error)

    async def _give_back(self, ack_ids: Sequence[str], seconds: int) -> None:
        try:
            await self._source.lease(self._subscription, ack_ids, seconds)
            self._metrics.nacked.inc(len(ack_ids))
        except LeanOpsError as error:
            self._failed("give_back", ack_ids, error)

    async def _keep(self, ack_ids: Sequence[str], seconds: int) -> None:
        try:
            await self._source.lease(self._subscription, ack_ids, seconds)
        except LeanOpsError as error:
            self._log.warning("leases_not_kept", messages=len(ack_ids), error=str(error))

    def _failed(self, what: str, ack_ids: Sequence[str], error: LeanOpsError) -> None:
        self._metrics.unsettled.inc(len(ack_ids))
        self._log.warning("not_settled", what=what, messages=len(ack_ids), error=str(error))

    def _start(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.result()  # a fault of ours is raised here, where the loop's handler sees it at once


def _chunks(ack_ids: Sequence[str]) -> list[Sequence[str]]:
    return [ack_ids[start : start + _MOST_IDS] for start in range(0, len(ack_ids), _MOST_IDS)]
