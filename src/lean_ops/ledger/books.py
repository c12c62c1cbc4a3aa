"""What a batch leaves in the ledger, the run history and the alerts, each row once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from lean_ops.model.errors import LeanOpsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from lean_ops.lake.shared import SharedTables
    from lean_ops.model.batch import Batch, Counts, Zone
    from lean_ops.model.tables import Names

ERROR_RATE_WARNING: Final = 0.05
ERROR_RATE_CRITICAL: Final = 0.10
REBUILT: Final = "rebuild"  # the reason in the history of a zone that was built again


class RunStatus(StrEnum):
    """How an attempt at a batch ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a hop of a topic."""

    run_id: str
    topic: str
    zone: Zone
    batch_id: str | None
    started_at: datetime


def history_row(
    attempt: Attempt, status: RunStatus, reason: str | None, counts: Counts | None, now: datetime
) -> dict[str, Any]:
    """The attempt's line in the run history."""
    return {
        "run_id": attempt.run_id,
        "topic_name": attempt.topic,
        "zone": str(attempt.zone),
        "batch_id": attempt.batch_id,
        "status": str(status),
        "reason": reason,
        "records_in": counts.records_in if counts else None,
        "records_out": counts.records_out if counts else None,
        "error_rate": counts.error_rate if counts else None,
        "started_at": attempt.started_at,
        "ended_at": now,
        "duration_ms": round((now - attempt.started_at).total_seconds() * 1000),
        "engine": "spark",
    }


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person should know; `key` makes the same alert of the same batch one alert.

    What does not last, such as news, has an end as soon as it has a beginning.
    """

    key: str
    topic: str
    kind: str
    severity: str
    message: str
    value: float | None = None
    threshold: float | None = None
    lasts: bool = True

    @property
    def alert_id(self) -> str:
        """The alert's id: repeated work does not repeat it."""
        return f"{self.kind}-{self.topic}-{self.key}"

    def row(self, now: datetime) -> dict[str, Any]:
        """The alert's row."""
        return {
            "alert_id": self.alert_id,
            "topic_name": self.topic,
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "value": self.value,
            "threshold": self.threshold,
            "opened_at": now,
            "closed_at": None if self.lasts else now,
        }


def error_rate_alert(batch: Batch, counts: Counts) -> Alert | None:
    """The alert that a batch's share of errors calls for."""
    if counts.error_rate <= ERROR_RATE_WARNING:
        return None
    critical = counts.error_rate > ERROR_RATE_CRITICAL
    return Alert(
        batch.batch_id,
        batch.topic,
        "ERROR_RATE",
        "critical" if critical else "warning",
        f"{counts.errors} of {counts.records_in} records of a {batch.zone} batch were refused",
        counts.error_rate,
        ERROR_RATE_CRITICAL if critical else ERROR_RATE_WARNING,
    )


class Entry(NamedTuple):
    """A row for an operational table, and the columns by which it is known again."""

    table: str
    row: dict[str, Any]
    key: Sequence[str]


class Books:
    """The operational tables as a batch writes them; `publish` tells an alert to whoever has subscribed."""

    def __init__(self, shared: SharedTables, names: Names, publish: Callable[[Alert], None] | None = None) -> None:
        self._shared = shared
        self._names = names
        self._publish = publish
        self._log = structlog.get_logger("lean_ops.books")

    def append(self, table: str, row: dict[str, Any]) -> None:
        """Append a row."""
        self._shared.append_rows(self._names.ops(table), [row])

    def append_once(self, entries: Sequence[Entry], repeated: bool) -> None:
        """Append rows, but those that an earlier try of the same work (`repeated`) has left; each table has one."""
        new = [entry for entry in entries if not (repeated and self._has(*entry))]
        self._shared.append_rows_of({self._names.ops(entry.table): [entry.row] for entry in new})

    def _has(self, table: str, row: dict[str, Any], key: Sequence[str]) -> bool:
        return bool(self._shared.count(self._names.ops(table), **{column: row[column] for column in key}))

    def raise_alert(self, alert: Alert, now: datetime, repeated: bool = False) -> None:
        """Tell whoever listens: a log line, and once a word to whoever has subscribed, and a row."""
        self._note(alert)
        row = alert.row(now)
        if repeated and self._has("alerts", row, ("topic_name", "alert_id")):
            return
        self._tell(alert)  # before the row, so that a crash in between tells twice rather than never
        self.append("alerts", row)

    def raise_all(self, alerts: Sequence[Alert], now: datetime) -> None:
        """The same for several that nobody has raised yet, with one commit for their rows."""
        for alert in alerts:
            self.announce(alert)
        self._shared.append_rows(self._names.ops("alerts"), [alert.row(now) for alert in alerts])

    def announce(self, alert: Alert) -> None:
        """A log line and a word to whoever has subscribed, without a row."""
        self._note(alert)
        self._tell(alert)

    def _note(self, alert: Alert) -> None:
        self._log.warning("alert", kind=alert.kind, severity=alert.severity, topic=alert.topic, message=alert.message)

    def _tell(self, alert: Alert) -> None:
        try:
            if self._publish is not None:
                self._publish(alert)
        except LeanOpsError as error:
            # The row still tells; work must not fail because nobody could be called.
            self._log.error("alert not published", alert_id=alert.alert_id, reason=str(error))
