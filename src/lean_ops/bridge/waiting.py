"""A topic's parcels in the order in which they came; of one ordering key, one at a time is on its way.

A queue may refuse any part of a batch, so a batch that held two parcels of a key could bring the second before the
first. The next of a key is ready when the one before it is settled.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from lean_ops.aws.topic_queues import MOST_BYTES, MOST_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lean_ops.bridge.parcel import Parcel


class Waiting:
    """What waits to be sent."""

    def __init__(self) -> None:
        self._ready: deque[Parcel] = deque()
        self._ready_bytes = 0
        self._behind: dict[str, deque[Parcel]] = {}

    def __len__(self) -> int:
        return len(self._ready) + sum(map(len, self._behind.values()))

    def add(self, parcel: Parcel) -> None:
        """Take a parcel; it is ready unless an earlier one of its key is not settled yet."""
        key = parcel.ordering_key
        if key and key in self._behind:
            self._behind[key].append(parcel)
            return
        if key:
            self._behind[key] = deque()
        self._make_ready(parcel)

    @property
    def has_ready(self) -> bool:
        """Whether something could be sent now."""
        return bool(self._ready)

    @property
    def is_full(self) -> bool:
        """Whether waiting longer would not make the next batch larger."""
        return len(self._ready) >= MOST_MESSAGES or self._ready_bytes >= MOST_BYTES

    def next_batch(self) -> list[Parcel]:
        """The longest batch that a queue takes, in order; empty if nothing is ready. An oversized parcel is alone."""
        batch: list[Parcel] = []
        size = 0
        while self._ready and len(batch) < MOST_MESSAGES:
            parcel = self._ready[0]
            if batch and size + parcel.size > MOST_BYTES:
                break
            batch.append(self._ready.popleft())
            size += parcel.size
        self._ready_bytes -= size
        return batch

    def settled(self, parcel: Parcel) -> None:
        """A parcel that was in a batch is done with; the next one of its key is ready."""
        key = parcel.ordering_key
        if not key:
            return
        behind = self._behind[key]
        if behind:
            self._make_ready(behind.popleft())
        else:
            del self._behind[key]

    def returned(self, parcels: Iterable[Parcel]) -> list[Parcel]:
        """Parcels that were in a batch go back where they came from; so must these, which came later than them."""
        later: list[Parcel] = []
        for parcel in parcels:
            if parcel.ordering_key:
                later += self._behind.pop(parcel.ordering_key, ())
        return later

    def take_all(self) -> list[Parcel]:
        """Everything that is in no batch, out of here; the keys of parcels in batches stay known."""
        all_of_them = [*self._ready, *(parcel for behind in self._behind.values() for parcel in behind)]
        ready_keys = {parcel.ordering_key for parcel in self._ready if parcel.ordering_key}
        self._ready.clear()
        self._ready_bytes = 0
        self._behind = {key: deque() for key in self._behind if key not in ready_keys}
        return all_of_them

    def _make_ready(self, parcel: Parcel) -> None:
        self._ready.append(parcel)
        self._ready_bytes += parcel.size
