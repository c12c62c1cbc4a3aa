"""Chance that can be seeded, and a count of everything that went wrong by it."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence


class Faults:
    """Decides, from any thread, what goes wrong; what it decided is in `counts`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  faults are no secret
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self._since_fault: Counter[str] = Counter()

    def count(self, kind: str, times: int = 1) -> None:
        """Something happened."""
        with self._lock:
            self.counts[kind] += times

    def happens(self, kind: str, share: float) -> bool:
        """Whether a fault of a kind happens now, which is so in a share of all cases."""
        with self._lock:
            happens = self._random.random() < share
            self.counts[kind] += happens
            return happens

    def one_of(self, kinds: Sequence[str], share: float) -> str | None:
        """The kind of fault that happens now, if any: in a share of all cases, each kind in its turn.

        No luck lasts longer than twice as many cases as it takes on average, so that few cases have their faults too.
        """
        if not share:
            return None
        with self._lock:
            self._since_fault[kinds[0]] += 1
            if self._random.random() >= share and self._since_fault[kinds[0]] < 2 / share:
                return None
            self._since_fault[kinds[0]] = 0
            kind = min(kinds, key=lambda one: self.counts[one])
            self.counts[kind] += 1
            return kind

    def seconds(self, most: float) -> float:
        """Any time up to that."""
        with self._lock:
            return self._random.uniform(0, most)
