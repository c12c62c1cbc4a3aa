"""How long to wait before the next try: longer each time, never all at the same moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double up to a most; `chance` is in [0, 1) and spreads them over their second half."""

    first: float
    most: float
    chance: Callable[[], float]

    def seconds(self, tries: int) -> float:
        """The wait after that many tries in a row, counted from 1."""
        longest = min(self.most, self.first * 2.0 ** min(tries - 1, 60))
        return longest * (0.5 + self.chance() / 2)
