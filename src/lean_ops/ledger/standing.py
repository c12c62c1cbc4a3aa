"""Alerts that last: opened once while something is wrong, closed when it is over, and silent in between."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.lake.duck import rows, views_of
from lean_ops.lake.table_files import literal, open_table, plan
from lean_ops.ledger.books import Alert

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.ledger.books import Books
    from lean_ops.model.tables import Names

_TABLE: Final = "alerts"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong with a topic now; `place` tells troubles of one kind apart."""

    topic: str
    place: str
    severity: str
    message: str
    value: float | None = None
    threshold: float | None = None

    def alert(self, kind: str, now: datetime) -> Alert:
        """What is raised of it: its id says when it began, because the same trouble may come again."""
        key = f"{self.place}-{now:%Y%m%dT%H%M%SZ}"
        return Alert(key, self.topic, kind, self.severity, self.message, self.value, self.threshold)


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert whose trouble was not over when somebody last looked."""

    alert_id: str
    topic: str
    kind: str
    message: str
    opened_at: datetime

    @property
    def place(self) -> str:
        """What it is about, besides the topic."""
        return self.alert_id.removeprefix(f"{self.kind}-{self.topic}-").rpartition("-")[0]

    def over(self, now: datetime) -> Alert:
        """What is told of its end."""
        minutes = (now - self.opened_at).total_seconds() / 60
        message = f"over after {minutes:.0f} minutes: {self.message}"
        return Alert(self.alert_id.removeprefix(f"{self.kind}-{self.topic}-"), self.topic, self.kind, "info", message)


@dataclass(frozen=True, slots=True)
class Settled:
    """How many alerts a look has opened and closed."""

    opened: int = 0
    closed: int = 0


@dataclass(frozen=True, slots=True)
class StandingAlerts:
    """The alerts of `ops_db.alerts` that last; `close` writes when some of a topic's were over."""

    books: Books
    catalog: CatalogReader
    names: Names
    close: Callable[[str, Sequence[str], datetime], None]

    def settle(self, kind: str, topics: Collection[str], troubles: Sequence[Trouble], now: datetime) -> Settled:
        """Open what is new among the troubles of a kind, and close what is over in the topics that were looked at."""
        standing: defaultdict[tuple[str, str], list[OpenAlert]] = defaultdict(list)
        for alert in self.open(kind):
            standing[alert.topic, alert.place].append(alert)
        found = {(trouble.topic, trouble.place): trouble for trouble in troubles}
        new = [trouble.alert(kind, now) for key, trouble in found.items() if key not in standing]
        over = [alert for key, alerts in standing.items() if key[0] in topics and key not in found for alert in alerts]
        self.books.raise_all(new, now)
        self._close(over, now)
        return Settled(len(new), len(over))

    def _close(self, over: Sequence[OpenAlert], now: datetime) -> None:
        ids: defaultdict[str, list[str]] = defaultdict(list)
        for alert in over:
            self.books.announce(alert.over(now))  # before it is written, as with a new one
            ids[alert.topic].append(alert.alert_id)
        for topic, closed in ids.items():
            self.close(topic, closed, now)

    def open(self, kind: str) -> list[OpenAlert]:
        """The alerts of a kind that nobody has closed."""
        from pyiceberg.expressions import And, EqualTo, IsNull, Reference
        from pyiceberg.expressions.literals import literal as value_of

        location = self.catalog.location(self.names.ops(_TABLE))
        if location is None:
            return []
        of_kind = EqualTo(term=Reference("kind"), value=value_of(kind))
        files = plan(open_table(location), And(of_kind, IsNull(term=Reference("closed_at"))))
        with views_of({_TABLE: files}) as connection:
            found = rows(
                connection,
                "SELECT alert_id, topic_name AS topic, kind, message, opened_at FROM alerts"  # noqa: S608
                f" WHERE kind = {literal(kind)} AND closed_at IS NULL ORDER BY opened_at, alert_id",
            )
        return [OpenAlert(**row) for row in found]
