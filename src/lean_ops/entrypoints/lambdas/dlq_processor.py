"""The DLQ processor and drainer in one: dead letters to the archive, the tracker and `dlq_errors`.

As the consumer of the dead-letter queue it answers with exactly the letters that must come again, so its event source
mapping needs ReportBatchItemFailures. Called with `{"drain": true}` it empties the queue by itself for as long as the
call may take. It writes Iceberg tables; all calls at once commit to one table, so few at a time are best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, Protocol

from aws_lambda_powertools.logging import Logger

from lean_ops.aws.environment import Deployment
from lean_ops.aws.queues import letter_of_event
from lean_ops.entrypoints.lambdas.telemetry import emit
from lean_ops.model.errors import WrongUseError
from lean_ops.operate.drain_dlq import Drained, age_alert
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

SERVICE: Final = "dlq-processor"
NEEDS: Final = ("environment", "warehouse", "archive_bucket")
LISTED: Final = 20
# A group of letters is begun only if there is time to end it.
_GROUP_MILLISECONDS: Final = 30_000

_log: Final = Logger(service=SERVICE)


class Context(Protocol):
    """What Lambda tells of a call."""

    def get_remaining_time_in_millis(self) -> int:
        """Until the call is ended, whatever it does."""


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The function's entry."""
    services = _services()
    if "Records" in event:
        taken = _take(services, event["Records"])
        _tell(services, taken)
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in taken.failed]}
    if event.get("drain") is True:
        drained = services.drain_dlq(lambda: context.get_remaining_time_in_millis() > _GROUP_MILLISECONDS)
        _tell(services, drained)
        return {"taken": drained.taken, "failed": len(drained.failed), "oldest": _text(drained.oldest)}
    raise WrongUseError(
        "not an event for this function",
        where=SERVICE,
        found=f"members {', '.join(sorted(map(str, event)))}"[:200] if event else "nothing",
        expected='Records of the dead-letter queue, or {"drain": true}',
    )


@cache
def _services() -> Services:
    """The parts, put together by the first call."""
    return Services(load_settings({"profile": "aws"}, aws_needs=NEEDS))


def _take(services: Services, records: Sequence[Mapping[str, Any]]) -> Drained:
    letters = [letter_of_event(record) for record in records]
    failed = services.dead_letters().take(letters)
    taken = Drained(len(letters) - len(failed), failed)
    taken.saw(letters)
    return taken


def _tell(services: Services, drained: Drained) -> None:
    """Say what came of the letters; an alert that can't be written must not bring letters back that are done with."""
    now = services.clock()
    for message_id, reason in list(drained.failed.items())[:LISTED]:
        _log.error("a dead letter stays in the queue", extra={"sqs_message_id": message_id, "reason": reason})
    age = int((now - drained.oldest).total_seconds()) if drained.oldest else 0
    deployment = Deployment(services.settings.project, services.settings.given("environment"))
    counts = {
        "dead_letters": drained.taken,
        "dead_letters_left": len(drained.failed),
        "oldest_dead_letter_seconds": age,
    }
    emit(SERVICE, deployment, counts)
    alert = age_alert(drained.oldest, now)
    if alert is not None:
        try:
            services.books.raise_alert(alert, now, repeated=True)
        except Exception:  # whatever its fault is: the letters are done with, and an error would bring them back
            _log.exception("an alert could not be written", extra={"alert_id": alert.alert_id})


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
