"""A topic counted anew from the rows of its tables, and the result in the ledger: slow, and sure."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.duck import rows, views_of
from lean_ops.lake.table_files import literal
from lean_ops.ledger.account import TopicAccount, ZoneAccount, uncountable
from lean_ops.ledger.books import Alert
from lean_ops.ledger.finding import OneOf
from lean_ops.ledger.lines import LEDGER, ZoneLines, make_lines, zone_lines
from lean_ops.ledger.moment import (
    files_of,
    has_source,
    no_files,
    read_files,
    shown_batches,
    tables_of,
    take_moment,
)
from lean_ops.ledger.reconcile import (
    ledger_files,
    problems_of,
    records_read,
    records_waiting,
    rows_finding,
    source_finding,
)
from lean_ops.ledger.recount_checks import (
    batch_counts,
    curated_fates,
    dead_letters,
    doubled_keys,
    make_refused,
    slices,
    standardized_fates,
)
from lean_ops.model.batch import Counts, Zone
from lean_ops.model.errors import LeanOpsError, TerminalError
from lean_ops.model.ledger import ledger_row
from lean_ops.model.tables import BATCH_ID, CURATED_ERRORS, DLQ_ERRORS, ENVELOPE, PARSE_ERRORS, Column, TableShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    import duckdb

    from lean_ops.lake.table_files import TableFiles
    from lean_ops.ledger.account import Finding
    from lean_ops.ledger.moment import Moment, ShownBatch, TopicTables
    from lean_ops.ledger.reconcile import Reconciler
    from lean_ops.model.tables import Names

RECOUNT: Final = "RECOUNT"
ALERT_KIND: Final = "RECOUNT_VARIANCE"
CRITICAL_VARIANCE: Final = 0.01
_RAW: Final = TableShape(ENVELOPE, ())
_ZONE: Final = TableShape((*ENVELOPE, Column(BATCH_ID)), ())


@dataclass(frozen=True, slots=True)
class Recount:
    """A topic's account by its rows; `ends` has the snapshot up to which each zone that has a table was counted."""

    account: TopicAccount
    ends: Mapping[Zone, int | None]


@dataclass(frozen=True, slots=True)
class Recounter:
    """Counts topics anew, one at a time, with what `parts` reads by; writes nothing."""

    parts: Reconciler

    def recount(self, topic: str) -> Recount:
        """The topic's account; what can't be counted is a finding and hides no other zone."""
        parts = self.parts
        moment = take_moment(parts.catalog, parts.names, parts.state, [topic])
        ledger = ledger_files(moment, parts.names, OneOf("topic_name", (topic,)))
        tables = tables_of(moment, parts.names, topic)
        shown = shown_batches(tables, parts.readers, parts.clock())
        seen = _TopicRecount(moment, parts.names, ledger, tables, shown, parts.delivered)
        zones = tuple(seen.account(zone) for zone in Zone)
        ends = {zone: _end(tables, zone) for zone in Zone if tables.tables[zone].location is not None}
        return Recount(TopicAccount(topic, zones), ends)


def _end(topic: TopicTables, zone: Zone) -> int | None:
    table = topic.tables[zone]
    if zone is Zone.RAW:
        return table.history.head if table.history else None
    return table.checkpoint.to_snapshot if table.checkpoint else None


@dataclass(frozen=True, slots=True)
class _Counted:
    """A zone by its rows: what became of the records, rows of the table, and what is wrong."""

    counts: Counts
    rows: int
    source: int | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _TopicRecount:
    """One topic at one moment."""

    moment: Moment
    names: Names
    ledger: TableFiles
    tables: TopicTables
    shown: Sequence[ShownBatch]
    delivered: bool

    def account(self, zone: Zone) -> ZoneAccount:
        """A zone's account: what the ledger's lines say of themselves, and what the rows say."""
        waiting, rows_told = records_waiting(self.tables, zone).records, self.tables.tables[zone].rows
        blank = ZoneAccount(self.tables.topic, zone, Counts(), rows_told, None, waiting)
        try:
            with self._views(zone) as connection:
                lines = zone_lines(connection).get((self.tables.topic, zone), ZoneLines())
                return self._filled(connection, blank, lines)
        except LeanOpsError as error:
            return replace(blank, findings=(uncountable(str(error)),))

    def _filled(self, connection: duckdb.DuckDBPyConnection, blank: ZoneAccount, lines: ZoneLines) -> ZoneAccount:
        """The account by rows; by the ledger's lines alone if a table or what it was made of can't be read."""
        zone = blank.zone
        told = (*lines.findings, *map(uncountable, problems_of(self.tables, zone)))
        if self.tables.tables[zone].problem is not None or not has_source(self.tables, zone):
            return replace(blank, counts=lines.counts, findings=told)
        counted = self._count(connection, zone, lines)
        findings = (*told, *counted.findings)
        return replace(blank, counts=counted.counts, rows=counted.rows, source=counted.source, findings=findings)

    @contextmanager
    def _views(self, zone: Zone) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to what a zone is counted from; any way in which it can't be read is a LeanOpsError."""
        import duckdb

        wanted = OneOf("topic_name", (self.tables.topic,))
        try:
            with views_of({LEDGER: self.ledger, **self._files(zone, wanted)}) as connection:
                make_lines(connection, self.shown, wanted.condition)
                yield connection
        except (OSError, duckdb.Error) as error:
            raise TerminalError("the rows can't be read", where=str(zone), found=str(error).strip()) from error

    def _files(self, zone: Zone, wanted: OneOf) -> dict[str, TableFiles]:
        """The zone's table, the one before up to the checkpoint, and the errors between them."""
        shared, table, names = self.moment.shared, self.tables.tables[zone], self.names
        here = no_files(_ZONE) if table.problem else files_of(table.location, _RAW if zone is Zone.RAW else _ZONE)
        if zone is Zone.RAW:
            letters = files_of(shared.get(names.dlq_errors), DLQ_ERRORS, wanted.filter)
            return {"raw": here, "dlq_errors": letters}
        if zone is Zone.STANDARDIZED:
            errors = files_of(shared.get(names.parse_errors), PARSE_ERRORS, wanted.filter)
        else:
            errors = files_of(shared.get(names.curated_errors), CURATED_ERRORS, wanted.filter)
        return {str(zone): here, str(zone.source): read_files(self.tables, zone, _ZONE), "error_rows": errors}

    def _count(self, connection: duckdb.DuckDBPyConnection, zone: Zone, lines: ZoneLines) -> _Counted:
        if zone is Zone.RAW:
            return self._count_raw(connection, lines)
        checkpoint = self.tables.tables[zone].checkpoint
        make_refused(connection, "error_rows", self.tables.topic, zone, checkpoint.batch_id if checkpoint else None)
        parts = slices((self.tables.tables[zone].rows or 0) + (records_read(self.tables, zone).records or 0))
        counts, source, findings = (_standardized if zone is Zone.STANDARDIZED else _curated)(connection, parts)
        compared = (*rows_finding(lines.counts.inserted, counts.inserted), *source_finding(zone, lines.read, source))
        findings = (*findings, *batch_counts(connection, zone), *compared)
        return _Counted(counts, counts.inserted, source, findings)

    def _count_raw(self, connection: duckdb.DuckDBPyConnection, lines: ZoneLines) -> _Counted:
        """RAW's rows and dead letters. What the dead-letter queue brought never passed a flush: no line counts it.

        What ingestion refused of Firehose's error output did, and is archived under its flush's id.
        """
        connection.execute(
            f"CREATE VIEW dead_letters AS SELECT * FROM dlq_errors WHERE topic_name = {literal(self.tables.topic)}"  # noqa: S608
            r" AND (source = 'ingest' OR regexp_extract(archive_path, '([^/]+)-[0-9]+[.]json$', 1) IN"
            " (SELECT batch_id FROM lines WHERE zone = 'raw'))"
        )
        [found] = rows(connection, "SELECT count(*) AS row_count FROM raw")
        letters, findings = dead_letters(connection)
        counts = Counts(found["row_count"] + letters, inserted=found["row_count"], errors=letters)
        compared = rows_finding(lines.counts.inserted, counts.inserted, self.delivered)
        return _Counted(counts, counts.inserted, None, (*findings, *compared))


def _standardized(connection: duckdb.DuckDBPyConnection, parts: int) -> tuple[Counts, int, Sequence[Finding]]:
    """What became of RAW's records, how many there were, and what is wrong."""
    found, findings = standardized_fates(connection, parts)
    copies, messages = found["copies"], found["messages"]
    counts = Counts(copies, found["standardized"], duplicates=copies - messages, errors=found["refused"])
    return counts, copies, findings


def _curated(connection: duckdb.DuckDBPyConnection, parts: int) -> tuple[Counts, int, Sequence[Finding]]:
    """The same of Standardized's; from rows a replaced one and one that came too late look alike: superseded."""
    found, findings = curated_fates(connection, parts)
    counts = Counts(found["rows"], found["curated"], superseded=found["superseded"], errors=found["refused"])
    return counts, found["rows"], [*findings, *doubled_keys(connection, parts)]


# what is written


def recount_rows(recount: Recount, new_id: Callable[[], str], now: datetime) -> list[dict[str, Any]]:
    """The recount's lines for the ledger, one for each zone that has a table."""
    return [
        {
            **ledger_row(zone.topic, zone.zone, new_id(), (None, 0), zone.counts, now),
            "kind": RECOUNT,
            "to_snapshot": None if (end := recount.ends[zone.zone]) is None else str(end),
            "variance": zone.variance,
            "balanced": zone.balanced,
        }
        for zone in recount.account.zones
        if zone.zone in recount.ends
    ]


def variance_alert(account: ZoneAccount, key: str) -> Alert | None:
    """The alert that a recounted zone calls for: any difference is told, a large one is critical."""
    if account.balanced:
        return None
    critical = account.variance > CRITICAL_VARIANCE
    more = len(account.faults) - 1
    return Alert(
        key,
        account.topic,
        ALERT_KIND,
        "critical" if critical else "warning",
        f"recount of {account.zone}: {account.faults[0].message}{f' (and {more} more findings)' if more else ''}",
        account.variance,
        CRITICAL_VARIANCE if critical else 0.0,
    )
