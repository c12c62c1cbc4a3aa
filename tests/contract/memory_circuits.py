"""Circuits and traffic in memory."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

from lean_ops.model.circuit import Circuit, Seen


class MemoryCircuits:
    """What a table would keep."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._received: Counter[tuple[str, int]] = Counter()
        self._failed: Counter[tuple[str, int]] = Counter()
        self._circuits: dict[str, Circuit] = {}

    def record(self, topic: str, minute: int, received: int, failed: int) -> None:
        with self._guard:
            self._received[topic, minute] += received
            self._failed[topic, minute] += failed

    def seen(self, topic: str, first_minute: int) -> Seen:
        with self._guard:
            minutes = {
                minute: (received, self._failed[name, minute])
                for (name, minute), received in self._received.items()
                if name == topic and minute >= first_minute
            }
            return Seen(self._circuits.get(topic, Circuit(topic)), minutes)

    def save(self, circuit: Circuit) -> Circuit | None:
        with self._guard:
            known = self._circuits.get(circuit.topic)
            if known is not None and known.revision != circuit.revision:
                return None
            saved = replace(circuit, revision=circuit.revision + 1)
            self._circuits[circuit.topic] = saved
            return saved
