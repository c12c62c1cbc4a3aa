"""Ordering keys of which a message went back: later messages of the key must not pass it meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lean_ops.bridge.parcel import Parcel

_MOST_KEYS: Final = 10_000


class AwaitedKeys:
    """For each such key the message that must come first. Pub/Sub hands a key's messages out in their order again.

    After `patience_seconds` beyond its delay a message is not waited for any longer: it may have gone to another
    subscriber, and a key must not be shut for ever.
    """

    def __init__(self, patience_seconds: float, clock: Callable[[], float]) -> None:
        self._patience = patience_seconds
        self._clock = clock
        self._first: dict[str, tuple[str, float]] = {}

    def went_back(self, parcels: Iterable[Parcel], seconds: float) -> None:
        """These went back, to come again after a delay."""
        until = self._clock() + seconds + self._patience
        for parcel in parcels:
            if parcel.ordering_key:
                self._first.setdefault(parcel.ordering_key, (parcel.message_id, until))
        while len(self._first) > _MOST_KEYS:
            del self._first[next(iter(self._first))]

    def is_too_early(self, parcel: Parcel) -> bool:
        """Whether an earlier message of the parcel's key is still to come."""
        awaited = self._first.get(parcel.ordering_key)
        if awaited is None:
            return False
        message_id, until = awaited
        if message_id != parcel.message_id and self._clock() < until:
            return True
        del self._first[parcel.ordering_key]
        return False
