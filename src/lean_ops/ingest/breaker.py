"""When a topic's circuit opens, is tried and closes: decided from its traffic alone.

Closed, it opens when more than half of at least twenty messages of the last five minutes failed. Open, it is tried
after five minutes. On trial, ten messages decide; fewer decide nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lean_ops.model.circuit import Circuit, Phase

if TYPE_CHECKING:
    from lean_ops.model.circuit import Seen

WINDOW_MINUTES: Final = 5
OPEN_SECONDS: Final = 300
FAILED_SHARE: Final = 0.5
LEAST_MESSAGES: Final = 20
PROBE_MESSAGES: Final = 10
PROBE_MINUTES: Final = 60
# The least that a mapping can be limited to.
PROBE_CONCURRENCY: Final = 2
_MINUTE: Final = 60


def first_minute(circuit: Circuit, now: int) -> int:
    """The earliest minute whose traffic counts: of the window, or of a trial, which may take longer.

    What was before the phase began has had its consequence.
    """
    window = PROBE_MINUTES if circuit.phase is Phase.HALF_OPEN else WINDOW_MINUTES
    return max(now // _MINUTE - window + 1, circuit.since // _MINUTE)


def decided(seen: Seen, now: int) -> Circuit:
    """The circuit as it is to be from now on; the same one if nothing changes."""
    circuit = seen.circuit
    if circuit.phase is Phase.OPEN:
        is_due = circuit.settled and now - circuit.since >= OPEN_SECONDS
        return _turned(circuit, Phase.HALF_OPEN, now, 0, 0) if is_due else circuit
    received, failed = _traffic(seen, now)
    least = PROBE_MESSAGES if circuit.phase is Phase.HALF_OPEN else LEAST_MESSAGES
    if received < least:
        return circuit
    if failed > received * FAILED_SHARE:
        return _turned(circuit, Phase.OPEN, now, received, failed)
    return _turned(circuit, Phase.CLOSED, now, received, failed) if circuit.phase is Phase.HALF_OPEN else circuit


def _traffic(seen: Seen, now: int) -> tuple[int, int]:
    """Messages received and failed in the minutes that count."""
    start = first_minute(seen.circuit, now)
    counted = [counts for minute, counts in seen.minutes.items() if start <= minute <= now // _MINUTE]
    return sum(received for received, _ in counted), sum(failed for _, failed in counted)


def _turned(circuit: Circuit, phase: Phase, now: int, received: int, failed: int) -> Circuit:
    """The circuit at the beginning of a phase."""
    turned = replace(circuit, phase=phase, since=now, settled=False)
    if Phase.CLOSED not in {circuit.phase, phase}:
        return turned  # an outage is told when it begins and when it is over, not in between
    opened_at = now if phase is Phase.OPEN else circuit.opened_at
    return replace(turned, opened_at=opened_at, announced=False, received=received, failed=failed)
