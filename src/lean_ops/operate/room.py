"""How many topics are at work at a time: few that need much, or many that need little."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lean_ops.operate.plan import TopicPlan

# A small topic spends most of its time waiting: for commits that it shares with others, for its turn at a file. Each
# place has a session of Spark's, which is not free: more than keep the cores busy only cost.
SMALL_PER_WORKER: Final = 7
_FEW_RECORDS: Final = 10_000
_SMALL_TABLE: Final = 200_000


class Room:
    """Places for topics; whoever comes first gets in first, however much room it needs."""

    def __init__(self, workers: int) -> None:
        self.places = workers * SMALL_PER_WORKER if workers > 1 else 1
        self._size = min(SMALL_PER_WORKER, self.places)
        self._free = self.places
        self._door = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def of(self, plan: TopicPlan) -> Iterator[None]:
        """Room for a topic; waits until there is."""
        size = 1 if is_small(plan) else self._size
        with self._door, self._changed:
            self._changed.wait_for(lambda: self._free >= size)
            self._free -= size
        try:
            yield
        finally:
            with self._changed:
                self._free += size
                self._changed.notify_all()


def is_small(plan: TopicPlan) -> bool:
    """Whether what a topic has to do takes little memory, as far as the plan knows."""
    records = sum(planned.records for hop in plan.hops for planned in hop.batches)
    return records <= _FEW_RECORDS and plan.merged_into <= _SMALL_TABLE
