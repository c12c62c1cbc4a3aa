"""The ledger's lines as SQL: sums per topic and zone, and lines that contradict the rules or each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.duck import rows
from lean_ops.lake.table_files import literal
from lean_ops.ledger.account import SHOWN_IDS, Finding, FindingKind, listed
from lean_ops.model.batch import Counts, Zone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from lean_ops.ledger.moment import ShownBatch

LEDGER: Final = "ledger"  # the view of reconciliation_log that everything here is made of
_COUNTS: Final = ("records_in", "records_out", "inserted", "updated", "duplicates", "superseded", "errors")
_TEXTS: Final = ("topic_name", "zone", "kind", "batch_id", "from_snapshot", "to_snapshot")
# A RECOUNT tells of the tables, not of a batch: it never counts.
_COUNTING: Final = f"kind IN ('BATCH', 'REPLAY') AND zone IN ({', '.join(literal(zone) for zone in Zone)})"
_OUT: Final = "CASE zone WHEN 'curated' THEN inserted + updated ELSE inserted END"
_FATES: Final = (
    "records_out + CASE zone WHEN 'raw' THEN errors WHEN 'standardized' THEN duplicates + errors"
    " ELSE superseded + errors END"
)
_UNFATED: Final = f"(records_in - ({_FATES}))"
_SAME_ZONE: Final = "l.topic_name = o.topic_name AND l.zone = o.zone"
# A replay has no range of its own. A rebuild has: its line says by how much the books change, up to where it has read.
IS_REBUILD: Final = "(kind = 'REPLAY' AND to_snapshot IS NOT NULL)"
# Flushes of several processes come in any order.
_CHAINED: Final = "l.kind = 'BATCH' AND l.zone <> 'raw'"


def _not_alone(column: str) -> str:
    """Whether another batch of the zone has the same value in a column."""
    window = f"OVER (PARTITION BY topic_name, zone, {column})"
    return f"min(batch_id) {window} <> max(batch_id) {window}"


_WORDS: Final = {
    FindingKind.UNBALANCED: "batches whose records in are not the sum of their fates: {ids}",
    FindingKind.BATCH_TWICE: "batches that are in the ledger more than once: {ids}",
    FindingKind.GAP: "batches that begin where no other ends, so that one before them is not in the ledger: {ids}",
    FindingKind.OVERLAP: "batches that have read the same records as another: {ids}",
    FindingKind.AHEAD: "batches of the ledger that the table does not show: {ids}",
    FindingKind.NOT_IN_LEDGER: "published batches that are not in the ledger, and that no run will book: {ids}",
}
# Each selects topic_name, zone, id, records (in doubt) and lost (of these, without a fate), a row per batch.
_FAULTS: Final = {
    FindingKind.UNBALANCED: (
        f"SELECT topic_name, zone, batch_id AS id, greatest(abs({_UNFATED}), abs(records_out - ({_OUT}))) AS records,"  # noqa: S608
        f" greatest({_UNFATED}, 0) AS lost FROM lines WHERE {_UNFATED} <> 0 OR records_out <> {_OUT}"
    ),
    FindingKind.BATCH_TWICE: (
        "SELECT topic_name, zone, batch_id AS id, sum(records_in) - max(records_in) AS records, 0 AS lost"
        " FROM lines GROUP BY topic_name, zone, batch_id HAVING count(*) > 1"
    ),
    FindingKind.GAP: (
        "SELECT l.topic_name, l.zone, l.batch_id AS id, 0 AS records, 0 AS lost FROM lines l"  # noqa: S608
        f" ANTI JOIN (SELECT * FROM lines WHERE kind = 'BATCH' OR {IS_REBUILD}) o"
        f" ON {_SAME_ZONE} AND l.from_snapshot = o.to_snapshot"
        f" WHERE {_CHAINED} AND l.from_snapshot IS NOT NULL"
    ),
    FindingKind.OVERLAP: (
        "SELECT topic_name, zone, batch_id AS id, records_in AS records, 0 AS lost FROM lines l"  # noqa: S608
        f" WHERE {_CHAINED} QUALIFY {_not_alone('from_snapshot')} OR {_not_alone('to_snapshot')}"
    ),
    FindingKind.AHEAD: (
        "SELECT l.topic_name, l.zone, l.batch_id AS id, l.records_in AS records, 0 AS lost FROM lines l"  # noqa: S608
        f" SEMI JOIN shown o ON {_SAME_ZONE} AND l.from_snapshot = o.to_snapshot WHERE {_CHAINED}"
    ),
    FindingKind.NOT_IN_LEDGER: (
        "SELECT o.topic_name, o.zone, o.batch_id AS id, o.records_in AS records, o.records_in AS lost FROM shown o"  # noqa: S608
        f" ANTI JOIN {LEDGER} l ON {_SAME_ZONE} AND l.batch_id = o.batch_id WHERE NOT o.is_open"
    ),
}


@dataclass(frozen=True, slots=True)
class ZoneLines:
    """A zone's lines together; `read` is what batches and rebuilds took from the zone before, replays not counted."""

    counts: Counts = field(default_factory=Counts)
    read: int = 0
    findings: tuple[Finding, ...] = ()


def make_lines(connection: duckdb.DuckDBPyConnection, shown: Sequence[ShownBatch], condition: str) -> None:
    """Make the table `lines` of the ledger's rows that meet a condition, and of shown batches that it is about to get.

    A published batch whose run is at this moment writing its books, or was killed before it did, is none that
    the ledger has lost: the next run books it, with the counts that its commit has kept.
    """
    columns = ", ".join((*_TEXTS, *(f"coalesce({name}, 0) AS {name}" for name in _COUNTS)))
    connection.execute(f"CREATE TABLE shown AS {_shown_rows(shown)}")
    connection.execute(
        f"CREATE TABLE lines AS SELECT {columns}, recorded_at, true AS booked"  # noqa: S608
        f" FROM {LEDGER} WHERE {_COUNTING} AND {condition}"
        f" UNION ALL SELECT {', '.join((*_TEXTS, *_COUNTS))}, now(), false FROM shown o"
        f" ANTI JOIN {LEDGER} l ON {_SAME_ZONE} AND l.batch_id = o.batch_id WHERE is_open"
    )


def _shown_rows(shown: Sequence[ShownBatch]) -> str:
    """The shown batches as a SELECT; VALUES can't be empty, so a row of NULLs stands in and is left out."""
    types = dict.fromkeys(_TEXTS, "VARCHAR") | dict.fromkeys(_COUNTS, "BIGINT") | {"is_open": "BOOLEAN"}
    columns = ", ".join(f"{name}::{kind} AS {name}" for name, kind in types.items())
    values = ", ".join(map(_values, shown)) or f"({', '.join('NULL' for _ in types)})"
    return f"SELECT {columns} FROM (VALUES {values}) v({', '.join(types)}) WHERE topic_name IS NOT NULL"  # noqa: S608


def _values(shown: ShownBatch) -> str:
    texts = (None if (value := shown.row.get(name)) is None else literal(str(value)) for name in _TEXTS)
    counts = (str(int(shown.row.get(name, 0))) for name in _COUNTS)
    return f"({', '.join((*(text or 'NULL' for text in texts), *counts, str(shown.is_open)))})"


def zone_lines(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, Zone], ZoneLines]:
    """What `lines` comes to, by topic and zone; a zone without lines and findings is left out."""
    totals = _totals(connection)
    findings = _findings(connection)
    return {
        place: ZoneLines(_counts(totals.get(place, {})), totals.get(place, {}).get("read", 0), findings.get(place, ()))
        for place in {*totals, *findings}
    }


def _totals(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, Zone], dict[str, Any]]:
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in _COUNTS)
    read = f"coalesce(sum(records_in) FILTER (WHERE kind = 'BATCH' OR {IS_REBUILD}), 0)::BIGINT AS read"
    select = f"SELECT topic_name, zone, {sums}, {read} FROM lines GROUP BY topic_name, zone"  # noqa: S608
    return {_place(row): row for row in rows(connection, select)}


def _findings(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, Zone], tuple[Finding, ...]]:
    found: dict[tuple[str, Zone], tuple[Finding, ...]] = {}
    for kind, select in _FAULTS.items():
        for row in rows(connection, _grouped(select)):
            found[_place(row)] = (*found.get(_place(row), ()), _finding(kind, row))
    for row in rows(connection, "SELECT topic_name, zone, batch_id FROM lines WHERE NOT booked ORDER BY batch_id"):
        found[_place(row)] = (*found.get(_place(row), ()), _not_yet_booked(row))
    return found


def _grouped(select: str) -> str:
    return (
        "SELECT topic_name, zone, count(*) AS count, sum(records)::BIGINT AS records, sum(lost)::BIGINT AS lost,"  # noqa: S608
        f" min(id, {SHOWN_IDS}) AS ids FROM ({select}) GROUP BY topic_name, zone"
    )


def _finding(kind: FindingKind, row: Mapping[str, Any]) -> Finding:
    ids = tuple(row["ids"] or ())
    message = _WORDS[kind].format(count=row["count"], ids=listed(ids, row["count"]))
    return Finding(kind, message, row["count"], row["records"], row["lost"], ids)


def _not_yet_booked(row: Mapping[str, Any]) -> Finding:
    batch_id = row["batch_id"]
    message = f"batch {batch_id} is published and not yet in the ledger; the next run books it"
    return Finding(FindingKind.NOT_YET_BOOKED, message, ids=(batch_id,))


def _place(row: Mapping[str, Any]) -> tuple[str, Zone]:
    return row["topic_name"], Zone(row["zone"])


def _counts(row: Mapping[str, Any]) -> Counts:
    names = (name for name in _COUNTS if name != "records_out")
    return Counts(**{name: row.get(name, 0) for name in names})
