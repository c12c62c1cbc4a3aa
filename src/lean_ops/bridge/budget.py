"""How much the bridge holds at a time, over all topics together.

Who comes first gets in first. A topic that holds next to nothing always gets in: what a slow queue keeps others from
is their share of the room, never their way. So the bound is the room's, and a little for each topic.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

FLOOR_MESSAGES: Final = 10
FLOOR_BYTES: Final = 256 * 1024


@dataclass(slots=True, eq=False)
class Room:
    """A bounded number of messages and bytes, and how many there are now."""

    most_messages: int
    most_bytes: int
    messages: int = 0
    bytes: int = 0

    def has_place_for(self, size: int) -> bool:
        """Whether one more fits; an empty room takes a message of any size."""
        return self._stays_within(size, self.most_messages, self.most_bytes)

    def stays_small_with(self, size: int) -> bool:
        """Whether one more leaves it so small that nobody is asked."""
        return self._stays_within(size, FLOOR_MESSAGES, FLOOR_BYTES)

    def _stays_within(self, size: int, messages: int, most_bytes: int) -> bool:
        return not self.messages or (self.messages < messages and self.bytes + size <= most_bytes)

    def enter(self, size: int) -> None:
        """Count one more."""
        self.messages += 1
        self.bytes += size

    def leave(self, size: int) -> None:
        """Count one less."""
        self.messages -= 1
        self.bytes -= size


@dataclass(slots=True, eq=False)
class _Guest:
    """The one parcel that a topic has at the door."""

    own: Room
    size: int
    let_in: asyncio.Future[bool]


@dataclass(slots=True)
class Budget:
    """The room of all topics, and who waits for it: for a place of its own first, then in line for one of all."""

    all: Room
    _waiting_for_own: dict[Room, _Guest] = field(default_factory=dict)
    _line: dict[Room, _Guest] = field(default_factory=dict)

    async def enter(self, own: Room, size: int) -> bool:
        """Wait for a place in a topic's own room and in the room of all; False if the topic was turned away.

        A topic waits for one place at a time.
        """
        guest = _Guest(own, size, asyncio.get_running_loop().create_future())
        self._place(guest)
        return await guest.let_in

    def leave(self, own: Room, size: int) -> None:
        """Give a place back."""
        own.leave(size)
        self.all.leave(size)
        guest = self._waiting_for_own.pop(own, None) or self._line.get(own)
        if guest is not None:
            self._place(guest)
        self._serve_line()

    def turn_away(self, own: Room) -> None:
        """Whoever waits for this topic goes without a place."""
        for waiting in (self._waiting_for_own, self._line):
            guest = waiting.pop(own, None)
            if guest is not None and not guest.let_in.done():
                guest.let_in.set_result(False)
        self._serve_line()

    def _place(self, guest: _Guest) -> None:
        if guest.own.stays_small_with(guest.size):
            self._line.pop(guest.own, None)
            self._let_in(guest)
        elif not guest.own.has_place_for(guest.size):
            self._waiting_for_own[guest.own] = guest
        else:
            self._line.setdefault(guest.own, guest)
            self._serve_line()

    def _serve_line(self) -> None:
        while self._line:
            own, guest = next(iter(self._line.items()))
            if not self.all.has_place_for(guest.size):
                return
            del self._line[own]
            self._let_in(guest)

    def _let_in(self, guest: _Guest) -> None:
        if guest.let_in.done():  # whoever waited was cancelled
            return
        guest.own.enter(guest.size)
        self.all.enter(guest.size)
        guest.let_in.set_result(True)
