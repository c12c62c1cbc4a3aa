"""What is told to a person although no batch failed: data that wait, books that don't balance, payloads that changed.

Somebody has to look: `lean-ops run` does after its work, on AWS the function `health` by its schedules.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from lean_ops.ledger.drift_news import DriftReader
from lean_ops.ledger.recount import CRITICAL_VARIANCE
from lean_ops.ledger.standing import Settled, Trouble
from lean_ops.model.batch import Zone
from lean_ops.model.errors import LeanOpsError
from lean_ops.operate.group import SomeTables, tables_of_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.ledger.account import ZoneAccount
    from lean_ops.ledger.books import Books
    from lean_ops.ledger.standing import StandingAlerts
    from lean_ops.model.registry import RegistryItem
    from lean_ops.model.tables import Names, TableName
    from lean_ops.operate.health import Reconciled
    from lean_ops.state.port import Registry

WAITING_KIND: Final = "DATA_WAITING"
BOOKS_KIND: Final = "BOOKS_UNBALANCED"
PATIENCE: Final = timedelta(hours=1)
# So far back drift is looked for that nobody was told of: longer than any pause between two looks.
_DRIFT_DAYS: Final = timedelta(days=2)
_AT_A_TIME: Final = 25


@dataclass(frozen=True, slots=True)
class Unread:
    """What a zone has not read of the zone before: how many records, and since when the oldest are there."""

    records: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Watch:
    """Looks, and settles the alerts; what it finds twice it tells once."""

    catalog: CatalogReader
    names: Names
    registry: Registry
    alerts: StandingAlerts
    books: Books
    clock: Callable[[], datetime]

    def after_run(self, topics: Sequence[str], left: Collection[str]) -> None:
        """What a run leaves: `left` are the topics of it that were not done. The others can't wait for long."""
        self.settle_waiting(topics, [topic for topic in topics if topic in left])
        self.tell_drift()

    def waiting(self, topics: Sequence[str], has_time: Callable[[], bool] = lambda: True) -> Settled:
        """Look at some topics, as many as there is time for."""
        looked: list[str] = []
        troubles: list[Trouble] = []
        items, now = self.registry.items(), self.clock()
        for start in range(0, len(topics), _AT_A_TIME):
            if not has_time():
                break
            some = topics[start : start + _AT_A_TIME]
            catalog = SomeTables(self.catalog, tables_of_topics(self.names, some)).looked_up()
            troubles += waiting_troubles(catalog, self.names, items, some, now)
            looked += some
        return self.alerts.settle(WAITING_KIND, looked, troubles, now)

    def settle_waiting(self, topics: Sequence[str], suspects: Sequence[str]) -> Settled:
        """The same where it is known of all topics but the suspects that they don't wait."""
        items, now = self.registry.items() if suspects else {}, self.clock()
        troubles = waiting_troubles(self.catalog, self.names, items, suspects, now)
        return self.alerts.settle(WAITING_KIND, topics, troubles, now)

    def unbalanced(self, done: Reconciled) -> Settled:
        """Books that were looked at."""
        topics = [account.topic for account in done.accounts]
        return self.alerts.settle(BOOKS_KIND, topics, [books_trouble(zone) for zone in done.variances], self.clock())

    def tell_drift(self) -> int:
        """Word of new drift; of how many batches."""
        now = self.clock()
        news = DriftReader(self.catalog, self.names).untold(now - _DRIFT_DAYS)
        self.books.raise_all([each.alert() for each in news], now)
        return len(news)


# data that wait


def waiting_troubles(
    catalog: CatalogReader, names: Names, items: Mapping[str, RegistryItem], topics: Sequence[str], now: datetime
) -> list[Trouble]:
    """The zones of topics with an open gate whose data have waited for too long."""
    return [
        trouble
        for topic in topics
        if (item := items.get(topic)) is not None and item.processing_enabled
        for zone, unread in _unread_zones(catalog, names, item)
        if (trouble := waiting_trouble(item, zone, unread, now)) is not None
    ]


def waiting_trouble(item: RegistryItem, zone: Zone, unread: Unread, now: datetime) -> Trouble | None:
    """The trouble, if it is one: the time counts from when data and an open gate were both there."""
    opened = datetime.fromisoformat(item.updated_at) if item.updated_at else unread.since
    since = max(unread.since, opened if opened.tzinfo else opened.replace(tzinfo=UTC))
    if now - since < PATIENCE:
        return None
    minutes = (now - since).total_seconds() / 60
    message = (
        f"{unread.records} records wait for {zone} although the gate is open, since {since:%Y-%m-%dT%H:%M:%SZ};"
        f" `lean-ops history {item.topic_name}` shows the attempts"
    )
    return Trouble(item.topic_name, str(zone), "warning", message, round(minutes, 1), PATIENCE.total_seconds() / 60)


def _unread_zones(catalog: CatalogReader, names: Names, item: RegistryItem) -> Iterator[tuple[Zone, Unread]]:
    for zone in (Zone.STANDARDIZED, Zone.CURATED) if item.curated else (Zone.STANDARDIZED,):
        source, target = (names.of_zone(each, item.topic_name) for each in (zone.source, zone))
        try:
            found = unread_of(catalog, source, target)
        except LeanOpsError:
            continue  # a table that can't be read fails its topic's run, which tells
        if found is not None:
            yield zone, found


def unread_of(catalog: CatalogReader, source: TableName, target: TableName) -> Unread | None:
    """What the target's batches have not read of the source; None if there is nothing."""
    location, read_by = catalog.location(source), catalog.location(target)
    if location is None:
        return None
    published = catalog.outlines.outline(str(target), read_by).checkpoint if read_by else None
    after = published.to_snapshot if published else None
    head = catalog.outlines.outline(str(source), location).head
    if head is None or head == after:
        return None
    chain = catalog.read_history(str(source), location).between(after, head)
    came = [each for each in chain if each.operation == "append" and each.count("added-records")]
    if not came:
        return None
    since = datetime.fromtimestamp(came[-1].timestamp_ms / 1000, UTC)
    return Unread(sum(each.count("added-records") for each in came), since)


# books


def books_trouble(zone: ZoneAccount) -> Trouble:
    """What is told of a zone that does not balance."""
    critical, more = zone.variance > CRITICAL_VARIANCE, len(zone.faults) - 1
    message = f"{zone.zone}: {zone.faults[0].message}{f' (and {more} more findings)' if more else ''}"
    severity, threshold = ("critical", CRITICAL_VARIANCE) if critical else ("warning", 0.0)
    words = f"{message}; `lean-ops reconcile {zone.topic}` shows all"
    return Trouble(zone.topic, str(zone.zone), severity, words, zone.variance, threshold)
