"""What a topic has and has not settled: each message has a lease, and a place in the budget once it was let in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lean_ops.bridge.budget import Budget, Room
    from lean_ops.bridge.metrics import TopicMetrics
    from lean_ops.bridge.parcel import Parcel
    from lean_ops.bridge.settlement import Settlement


class Hold:
    """One topic's unsettled messages; every one leaves it either confirmed or given back."""

    def __init__(
        self, budget: Budget, own: Room, settlement: Settlement, metrics: TopicMetrics, clock: Callable[[], float]
    ) -> None:
        self._budget = budget
        self._own = own
        self._settlement = settlement
        self._metrics = metrics
        self._clock = clock
        self._held: dict[Parcel, None] = {}

    def __len__(self) -> int:
        return len(self._held)

    def came(self, parcels: Sequence[Parcel]) -> None:
        """These were handed over: their leases are kept from now on, wherever they wait."""
        self._held.update(dict.fromkeys(parcels))
        self._metrics.came(parcels)
        self._metrics.held.set(len(self._held))

    async def let_in(self, parcel: Parcel) -> bool:
        """Wait for a place; False if the topic was turned away."""
        parcel.has_place = await self._budget.enter(self._own, parcel.size)
        return parcel.has_place

    def turn_away(self) -> None:
        """Whoever waits for a place goes without one."""
        self._budget.turn_away(self._own)

    def confirmed(self, parcels: Sequence[Parcel]) -> None:
        """A queue said that it has these."""
        held = self._released(parcels)
        self._metrics.confirmed(held, self._clock())
        self._settlement.done([parcel.ack_id for parcel in held])

    def give_back(self, parcels: Sequence[Parcel], seconds: float) -> None:
        """These come again, not before that time has passed."""
        self._settlement.give_back([parcel.ack_id for parcel in self._released(parcels)], seconds)

    def give_all_back(self) -> None:
        """Everything may be had by anybody, now."""
        self.give_back(list(self._held), 0)

    def keep_leases(self, seconds: int) -> None:
        """Extend every lease that has less than half of its time left."""
        now = self._clock()
        due = [parcel for parcel in self._held if parcel.leased_until - now < seconds / 2]
        for parcel in due:
            parcel.leased_until = now + seconds
        self._settlement.keep([parcel.ack_id for parcel in due], seconds)

    def _released(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        """Those of the parcels that were not settled before, out of the hold and the budget."""
        released = [parcel for parcel in parcels if parcel in self._held]
        for parcel in released:
            del self._held[parcel]
            if parcel.has_place:
                self._budget.leave(self._own, parcel.size)
        self._metrics.held.set(len(self._held))
        return released
