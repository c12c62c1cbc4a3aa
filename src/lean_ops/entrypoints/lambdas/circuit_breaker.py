"""The circuit breaker: each minute it looks at every topic's traffic, and turns queues off, on trial and on.

It is started by a schedule. Two calls at once are harmless. It writes alerts to the lake, so it needs pyiceberg.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from aws_lambda_powertools.logging import Logger

from lean_ops.aws.environment import Deployment
from lean_ops.entrypoints.lambdas.telemetry import emit
from lean_ops.model.circuit import Phase
from lean_ops.model.errors import TransientError
from lean_ops.operate.circuit_breaker import Watched
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

SERVICE: Final = "circuit-breaker"
NEEDS: Final = ("environment", "warehouse")

_log: Final = Logger(service=SERVICE)


def handler(_event: Mapping[str, Any], _context: object) -> dict[str, str]:
    """The function's entry; what the schedule says is of no interest. Fails if a topic could not be looked after."""
    services = _services()
    watched = services.watch_circuits()
    _tell(services, watched)
    if watched.failed:
        topics = ", ".join(sorted(watched.failed))
        raise TransientError("circuits that could not be looked after", where=topics[:500], remedy="The log says why.")
    return {topic: str(phase) for topic, phase in watched.turned.items()}


@cache
def _services() -> Services:
    """The parts, put together by the first call."""
    return Services(load_settings({"profile": "aws"}, aws_needs=NEEDS))


def _tell(services: Services, watched: Watched) -> None:
    for topic, phase in watched.turned.items():
        _log.warning("a circuit has turned", extra={"topic_name": topic, "phase": str(phase)})
    for topic, reason in watched.failed.items():
        _log.error("a circuit could not be looked after", extra={"topic_name": topic, "reason": reason})
    opened = sum(phase is Phase.OPEN for phase in watched.turned.values())
    closed = sum(phase is Phase.CLOSED for phase in watched.turned.values())
    deployment = Deployment(services.settings.project, services.settings.given("environment"))
    counts = {"circuits_opened": opened, "circuits_closed": closed, "circuits_failed": len(watched.failed)}
    emit(SERVICE, deployment, counts)
