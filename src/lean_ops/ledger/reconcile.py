"""The ledger's books against what the tables say of themselves: metadata and the ledger are read, no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.lake.duck import views_of
from lean_ops.ledger.account import Finding, FindingKind, TopicAccount, ZoneAccount, uncountable
from lean_ops.ledger.finding import OneOf
from lean_ops.ledger.lines import LEDGER, ZoneLines, make_lines, zone_lines
from lean_ops.ledger.moment import files_of, shown_batches, tables_of, take_moment
from lean_ops.ledger.status import waiting_after
from lean_ops.model.batch import Zone
from lean_ops.model.errors import LeanOpsError
from lean_ops.model.tables import OPS_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.lake.table_files import TableFiles
    from lean_ops.ledger.moment import CommitReaders, Moment, TopicTables
    from lean_ops.ledger.status import StateReader
    from lean_ops.model.tables import Names


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Compares books and tables of any topics; creates nothing.

    `delivered` says that Firehose lands messages in RAW: these pass no flush, so that no line of the ledger has them.
    """

    catalog: CatalogReader
    names: Names
    state: StateReader | None
    readers: CommitReaders
    clock: Callable[[], datetime]
    delivered: bool = False

    def reconcile(self, topics: Sequence[str]) -> tuple[TopicAccount, ...]:
        """The account of each topic, in the given order."""
        wanted = OneOf("topic_name", topics)
        moment = take_moment(self.catalog, self.names, self.state, topics)
        ledger = ledger_files(moment, self.names, wanted)
        tables = [tables_of(moment, self.names, topic) for topic in topics]
        now = self.clock()
        shown = [batch for topic in tables for batch in shown_batches(topic, self.readers, now)]
        with views_of({LEDGER: ledger}) as connection:
            make_lines(connection, shown, wanted.condition)
            lines = zone_lines(connection)
        return tuple(_topic_account(topic, lines, self.delivered) for topic in tables)


def ledger_files(moment: Moment, names: Names, wanted: OneOf) -> TableFiles:
    """The ledger's files that may have rows of the wanted topics."""
    table = "reconciliation_log"
    return files_of(moment.shared.get(names.ops(table)), OPS_TABLES[table], wanted.filter)


def _topic_account(topic: TopicTables, lines: dict[tuple[str, Zone], ZoneLines], delivered: bool) -> TopicAccount:
    zones = (zone_account(topic, zone, lines.get((topic.topic, zone), ZoneLines()), delivered) for zone in Zone)
    return TopicAccount(topic.topic, tuple(zones))


# decisions


@dataclass(frozen=True, slots=True)
class Counted:
    """Records by their snapshots' summaries; None if there is nothing to count or `problem` is in the way."""

    records: int | None = None
    problem: str | None = None


def zone_account(topic: TopicTables, zone: Zone, lines: ZoneLines, delivered: bool = False) -> ZoneAccount:
    """What a zone's lines come to beside its table and the zone before."""
    rows, source = topic.tables[zone].rows, records_read(topic, zone).records
    findings = (
        *lines.findings,
        *map(uncountable, problems_of(topic, zone)),
        *rows_finding(lines.counts.inserted, rows, delivered and zone is Zone.RAW),
        *source_finding(zone, lines.read, source),
    )
    waiting = records_waiting(topic, zone).records
    return ZoneAccount(topic.topic, zone, lines.counts, rows, source, waiting, findings)


def problems_of(topic: TopicTables, zone: Zone) -> tuple[str, ...]:
    """What is in the way of counting a zone: the first problem, because the others mostly follow from it."""
    problems = (topic.tables[zone].problem, records_read(topic, zone).problem, records_waiting(topic, zone).problem)
    return tuple(problem for problem in problems if problem is not None)[:1]


def records_read(topic: TopicTables, zone: Zone) -> Counted:
    """What the zone before holds up to the zone's checkpoint; RAW has no zone before."""
    table, before = topic.tables[zone], topic.tables[zone.source]
    if zone is Zone.RAW or table.problem is not None:
        return Counted()
    if table.checkpoint is None:
        return Counted(0)
    if before.history is None:
        return Counted(problem=before.problem or f"{before.name}: the table that its batches have read is gone")
    try:
        return Counted(before.history.records_between(None, table.checkpoint.to_snapshot))
    except LeanOpsError as error:
        return Counted(problem=str(error))


def records_waiting(topic: TopicTables, zone: Zone) -> Counted:
    """What the zone before holds after the zone's checkpoint; nothing waits for a zone that a topic does not reach."""
    table, before = topic.tables[zone], topic.tables[zone.source]
    if zone is Zone.RAW or table.problem is not None or (zone is Zone.CURATED and not topic.is_curated):
        return Counted()
    if before.problem is not None:
        return Counted(problem=before.problem)
    waiting = waiting_after(before.history, table.checkpoint.to_snapshot if table.checkpoint else None)
    return Counted(waiting.records, waiting.problem)


def rows_finding(inserted: int, rows: int | None, delivered: bool = False) -> tuple[Finding, ...]:
    """The finding, if there is one, that a table's rows are not what its batches inserted.

    Where others deliver, too, only fewer rows than that are a fault, and more are worth a note: whether all of these
    were read is told by the zone that reads them.
    """
    if rows is None or rows == inserted:
        return ()
    if delivered and rows > inserted:
        message = f"{rows - inserted} of {rows} rows were delivered by Firehose: they passed no flush that is booked"
        return (Finding(FindingKind.DELIVERED, message, rows - inserted),)
    message = f"the table has {rows} rows, the ledger's batches inserted {inserted}"
    return (Finding(FindingKind.ROWS, message, 1, abs(inserted - rows), max(0, inserted - rows)),)


def source_finding(zone: Zone, read: int, source: int | None) -> tuple[Finding, ...]:
    """The finding, if there is one, that the batches have not read what the zone before holds up to the checkpoint."""
    if source is None or source == read:
        return ()
    message = f"{zone.source} has {source} records up to the checkpoint, the ledger's batches have read {read}"
    return (Finding(FindingKind.SOURCE, message, 1, abs(source - read), max(0, source - read)),)
