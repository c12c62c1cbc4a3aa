"""Carrying out what the circuit breaker decides, topic by topic.

A decision is written before anything is done about it, in the place of what it was made from, so of two breakers at
once one decides. What is then to be done follows from what is written: whoever looks next goes on where another left
off, until the queue's mapping is as the phase wants it and everybody was told.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from lean_ops.aws.mappings import OFF, ON, QueueMapping
from lean_ops.ingest.breaker import FAILED_SHARE, PROBE_CONCURRENCY, decided, first_minute
from lean_ops.ledger.books import Alert
from lean_ops.model.circuit import Circuit, Phase
from lean_ops.model.errors import LeanOpsError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from lean_ops.state.circuits import Circuits

OPENED_KIND: Final = "CIRCUIT_OPEN"
CLOSED_KIND: Final = "CIRCUIT_CLOSED"


class Mappings(Protocol):
    """What turns the reading of queues on and off."""

    def switch(self, mapping: QueueMapping, *, on: bool, concurrency: int | None) -> None:
        """Turn a mapping on or off, with a limit; TransientError while another change is under way."""


@dataclass(slots=True)
class Watched:
    """What came of a look at every topic."""

    turned: dict[str, Phase] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """Looks at topics; `tell` raises an alert, and may be asked twice for the same one."""

    circuits: Circuits
    mappings: Mappings
    tell: Callable[[Alert], None]
    clock: Callable[[], datetime]

    def watch(self, queues: Mapping[str, QueueMapping]) -> Watched:
        """Look at every topic; what goes wrong with one leaves the others alone."""
        watched = Watched()
        for topic, mapping in queues.items():
            try:
                phase = self._look(topic, mapping)
            except LeanOpsError as error:
                watched.failed[topic] = str(error)
            else:
                watched.turned |= {topic: phase} if phase else {}
        return watched

    def _look(self, topic: str, mapping: QueueMapping) -> Phase | None:
        """Decide and act on a topic; its new phase, if this look has turned it."""
        now = int(self.clock().timestamp())
        seen = self.circuits.seen(topic, first_minute(Circuit(topic), now))
        if seen.circuit.phase is Phase.HALF_OPEN:  # a trial may go further back
            seen = self.circuits.seen(topic, first_minute(seen.circuit, now))
        turned = _with_limit(decided(seen, now), seen.circuit, mapping)
        if turned.phase is seen.circuit.phase:
            self._finish(seen.circuit, mapping)
            return None
        saved = None if _is_off_by_hand(seen.circuit, mapping) else self.circuits.save(turned)
        if saved is None:
            return None
        self._finish(saved, mapping)
        return saved.phase

    def _finish(self, circuit: Circuit, mapping: QueueMapping) -> None:
        """Do what is left to do for the circuit's phase, and write down what is done; if one fails, the other is done.

        What is written down may be lost against another breaker: then it is seen undone, and done again.
        """
        try:
            if not circuit.settled and self._is_settled(circuit, mapping):
                circuit = replace(circuit, settled=True)
                circuit = self.circuits.save(circuit) or circuit
        finally:
            if not circuit.announced:
                self.tell(_alert(circuit))
                self.circuits.save(replace(circuit, announced=True))

    def _is_settled(self, circuit: Circuit, mapping: QueueMapping) -> bool:
        """Whether the mapping is where the phase wants it; if not it is sent there, and the next look tells."""
        on, limit = circuit.phase is not Phase.OPEN, _wanted_limit(circuit, mapping)
        if mapping.state == (ON if on else OFF) and (not on or limit == mapping.concurrency):
            return True
        if not mapping.is_changing:
            with suppress(TransientError):
                self.mappings.switch(mapping, on=on, concurrency=limit)
        return False


def _with_limit(turned: Circuit, before: Circuit, mapping: QueueMapping) -> Circuit:
    """At the beginning of an outage the mapping's own limit is kept, unless an earlier one is yet to be restored."""
    begins = before.phase is Phase.CLOSED and turned.phase is Phase.OPEN and before.settled
    return replace(turned, concurrency=mapping.concurrency) if begins else turned


def _is_off_by_hand(before: Circuit, mapping: QueueMapping) -> bool:
    """Whether a person has turned a queue off, which the breaker must not turn on again some minutes later."""
    return before.phase is Phase.CLOSED and mapping.state == OFF


def _wanted_limit(circuit: Circuit, mapping: QueueMapping) -> int | None:
    """How many calls of the function may work on the queue at a time; while it is off that stays as it is."""
    if circuit.phase is Phase.OPEN or mapping.is_provisioned:
        return mapping.concurrency
    return PROBE_CONCURRENCY if circuit.phase is Phase.HALF_OPEN else circuit.concurrency


def _alert(circuit: Circuit) -> Alert:
    """What is told of an outage: that it has begun, or that it is over."""
    share = circuit.failed / circuit.received if circuit.received else 0.0
    counts = f"{circuit.failed} of {circuit.received} messages failed"
    if circuit.phase is Phase.CLOSED:
        message = f"the queue is read again as usual: {counts} on trial"
        return Alert(str(circuit.opened_at), circuit.topic, CLOSED_KIND, "info", message, share, FAILED_SHARE)
    message = f"{counts} within minutes: its queue is not read for now, and then tried again"
    return Alert(str(circuit.opened_at), circuit.topic, OPENED_KIND, "critical", message, share, FAILED_SHARE)
