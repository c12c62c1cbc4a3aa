"""Whether every record has exactly one fate, asked of the tables' rows: each check is SQL over DuckDB views.

A hop is an aggregation by message, done slice by slice so that it fits in memory. What it finds comes back as counts
and a few ids, however large the tables are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.duck import rows
from lean_ops.lake.table_files import literal
from lean_ops.ledger.account import SHOWN_IDS, Finding, FindingKind, listed
from lean_ops.ledger.lines import IS_REBUILD
from lean_ops.model.batch import Zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    Connection = duckdb.DuckDBPyConnection

_MESSAGE: Final = "message_id, publish_time"
_UNFIXED: Final = "CASE WHEN replay_status IS DISTINCT FROM 'FIXED' THEN true END"
_NEW: Final = "CASE WHEN replay_status = 'NEW' THEN true END"
# A message takes some hundred bytes while it is counted; a slice of them stays below a gigabyte.
_SLICE_ROWS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that no row may meet; `records` is how many records such a row puts in doubt."""

    kind: FindingKind
    condition: str
    words: str
    records: str = "1"
    is_loss: bool = False


# From RAW to Standardized: how many RAW copies, rows and refusals each message has. `{part}` is a slice's condition.
_STANDARDIZED_FATES: Final = f"""
SELECT message_id AS id, count(raw) AS raw, count(kept) AS kept, count(refused) AS refused, count(unfixed) AS unfixed
FROM (
    SELECT {_MESSAGE}, true AS raw, NULL AS kept, NULL AS refused, NULL AS unfixed FROM raw WHERE {{part}}
    UNION ALL SELECT {_MESSAGE}, NULL, true, NULL, NULL FROM standardized WHERE {{part}}
    UNION ALL SELECT {_MESSAGE}, NULL, NULL, true, {_UNFIXED} FROM refused WHERE {{part}}
) GROUP BY {_MESSAGE}
"""  # noqa: S608  names are our own
_STANDARDIZED_CHECKS: Final = (
    Check(
        FindingKind.MISSING,
        "raw > 0 AND kept = 0 AND unfixed = 0",
        "messages of RAW that a batch has read and that are neither in Standardized nor in parse_errors",
        "raw",
        is_loss=True,
    ),
    Check(FindingKind.DOUBLED, "kept > 1", "messages that are in Standardized more than once", "kept - 1"),
    Check(FindingKind.DOUBLED, "refused > 1", "messages that are in parse_errors more than once", "refused - 1"),
    Check(
        FindingKind.IN_BOTH,
        "kept > 0 AND unfixed > 0",
        "messages that are both in Standardized and, not replayed, in parse_errors",
    ),
    Check(
        FindingKind.UNKNOWN,
        "raw = 0",
        "messages of Standardized or parse_errors that RAW does not have up to the checkpoint",
        "kept + refused",
    ),
)

# From Standardized to Curated: the same by message, and whether Curated has the message's key.
_CURATED_FATES: Final = f"""
SELECT m.*, k.idempotency_key IS NOT NULL AS key_is_curated FROM (
    SELECT message_id AS id, max(key) AS key, min(curated_key) AS lowest_key, max(curated_key) AS highest_key,
        count(read) AS read, count(kept) AS kept,
        count(refused) AS refused, count(unfixed) AS unfixed, count(new) AS new
    FROM (
        SELECT {_MESSAGE}, idempotency_key AS key, NULL AS curated_key,
            true AS read, NULL AS kept, NULL AS refused, NULL AS unfixed, NULL AS new FROM standardized WHERE {{part}}
        UNION ALL SELECT {_MESSAGE}, NULL, idempotency_key, NULL, true, NULL, NULL, NULL FROM curated WHERE {{part}}
        UNION ALL SELECT {_MESSAGE}, NULL, NULL, NULL, NULL, true, {_UNFIXED}, {_NEW} FROM refused WHERE {{part}}
    ) GROUP BY {_MESSAGE}
) m LEFT JOIN (SELECT DISTINCT idempotency_key FROM curated) k ON m.key = k.idempotency_key
"""  # noqa: S608  names are our own
_SAME_KEY: Final = "coalesce(key = lowest_key AND key = highest_key, false)"
_CURATED_CHECKS: Final = (
    Check(
        FindingKind.NOT_IN_CURATED,
        "read > 0 AND kept = 0 AND unfixed = 0 AND NOT key_is_curated",
        "messages of Standardized that a batch has read, that are not in errors and whose key is not in Curated",
        "read",
        is_loss=True,
    ),
    Check(FindingKind.DOUBLED, "refused > 1", "messages that are in errors more than once", "refused - 1"),
    Check(
        FindingKind.UNKNOWN,
        f"kept > 0 AND (read = 0 OR NOT {_SAME_KEY})",
        "messages of Curated that Standardized does not have with the same key up to the checkpoint",
        "kept",
    ),
    Check(
        FindingKind.UNKNOWN,
        "refused > 0 AND read = 0",
        "messages of errors that Standardized does not have up to the checkpoint",
        "refused",
    ),
    Check(
        FindingKind.IN_BOTH,
        "kept > 0 AND new > 0",
        "messages that are both in Curated and, not replayed, in errors",
    ),
)
_KEYS: Final = "SELECT idempotency_key AS id, count(*) AS kept FROM curated WHERE {part} GROUP BY idempotency_key"
_KEY_CHECKS: Final = (Check(FindingKind.KEY_TWICE, "kept > 1", "keys that are in Curated more than once", "kept - 1"),)
_ARCHIVED: Final = (
    "SELECT coalesce(any_value(message_id), archive_path) AS id, count(*) AS letters"
    " FROM dead_letters WHERE {part} GROUP BY archive_path"
)
_LETTER_CHECKS: Final = (
    Check(FindingKind.DOUBLED, "letters > 1", "dead letters that are in dlq_errors more than once", "letters - 1"),
)


def make_refused(
    connection: Connection, table: str, topic: str, zone: Zone, newest_batch: str | None, view: str = "refused"
) -> None:
    """Make the view `refused`, or one of another name: a topic's error rows of batches that are published.

    An open batch writes its errors before it publishes; those belong to records that still wait.
    """
    newest = "NULL" if newest_batch is None else literal(newest_batch)
    connection.execute(
        f"CREATE VIEW {view} AS SELECT * FROM {table} WHERE topic_name = {literal(topic)} AND (batch_id = {newest}"  # noqa: S608
        f" OR batch_id IN (SELECT batch_id FROM lines WHERE zone = {literal(zone)}))"
    )


def slices(rows_in_all: int) -> int:
    """How many slices tables of so many rows are counted in."""
    return 1 + rows_in_all // _SLICE_ROWS


def standardized_fates(connection: Connection, parts: int) -> tuple[dict[str, int], list[Finding]]:
    """RAW's `copies`, `messages`, and how many of these are `standardized` or `refused`; what is wrong with them."""
    counts = {
        "copies": "sum(raw)",
        "messages": "count(*) FILTER (WHERE raw > 0)",
        "standardized": "sum(kept)",
        "refused": "count(*) FILTER (WHERE raw > 0 AND kept = 0 AND unfixed > 0)",
    }
    return _asked(connection, _STANDARDIZED_FATES, counts, _STANDARDIZED_CHECKS, parts_by("message_id", parts))


def curated_fates(connection: Connection, parts: int) -> tuple[dict[str, int], list[Finding]]:
    """Standardized `rows`, and how many are `curated`, `superseded` or `refused`; what is wrong with them."""
    counts = {
        "rows": "sum(read)",
        "curated": "sum(kept)",
        "superseded": "count(*) FILTER (WHERE read > 0 AND kept = 0 AND unfixed = 0 AND key_is_curated)",
        "refused": "count(*) FILTER (WHERE read > 0 AND kept = 0 AND unfixed > 0)",
    }
    return _asked(connection, _CURATED_FATES, counts, _CURATED_CHECKS, parts_by("message_id", parts))


def doubled_keys(connection: Connection, parts: int) -> list[Finding]:
    """Keys of Curated with more than one row."""
    return _asked(connection, _KEYS, {}, _KEY_CHECKS, parts_by("idempotency_key", parts))[1]


def dead_letters(connection: Connection) -> tuple[int, list[Finding]]:
    """How many dead letters of ingestion there are, and what is wrong with them.

    A flush writes them after its append and before its line: those of one that is not booked may be there or not.
    """
    counts, findings = _asked(connection, _ARCHIVED, {"letters": "sum(letters)"}, _LETTER_CHECKS)
    booked = "coalesce(sum(errors) FILTER (WHERE booked), 0)::BIGINT"
    [row] = rows(
        connection,
        f"SELECT {booked} AS least, coalesce(sum(errors), 0)::BIGINT AS most FROM lines WHERE zone = 'raw'",  # noqa: S608
    )
    found, least, most = counts["letters"], row["least"], row["most"]
    if not least <= found <= most:
        message = f"dlq_errors has {found} dead letters of ingestion, the ledger's flushes refused {most}"
        lost = max(0, least - found)
        findings.append(Finding(FindingKind.DEAD_LETTERS, message, 1, max(lost, found - most), lost))
    return found, findings


def batch_counts(connection: Connection, zone: Zone) -> list[Finding]:
    """Batches whose rows and refusals are not as many as the ledger says.

    A row of Curated goes over to the batch that replaces it, so there a batch may have fewer rows than it wrote.
    """
    is_curated = zone is Zone.CURATED
    wrong, words = ("found > booked", "more") if is_curated else ("found <> booked", "more or fewer")
    written = "inserted + updated" if is_curated else "inserted"
    of_rows = _per_batch(f"SELECT _batch_id AS batch_id FROM {zone}", zone, written)  # noqa: S608
    booked_errors = f"CASE WHEN kind = 'BATCH' OR {IS_REBUILD} THEN errors ELSE 0 END"
    of_errors = _per_batch("SELECT batch_id FROM refused", zone, booked_errors)
    rows_check = _batch_check(wrong, f"batches that have {words} rows in the table than the ledger says")
    errors_check = _batch_check("found <> booked", "batches that have more or fewer error rows than the ledger says")
    return [*_asked(connection, of_rows, {}, [rows_check])[1], *_asked(connection, of_errors, {}, [errors_check])[1]]


def _batch_check(condition: str, words: str) -> Check:
    return Check(FindingKind.BATCH_COUNT, condition, words, "abs(found - booked)")


def _per_batch(select: str, zone: Zone, booked: str) -> str:
    """Each batch with the rows that were found of it and those that the ledger has booked.

    A rebuild wrote the rows of all batches before it anew: with them it is one batch here.
    """
    latest, of_zone = "batch_id, max(recorded_at) AS at", f"FROM lines WHERE zone = {literal(zone)}"
    return (
        f"WITH booked AS (SELECT {latest}, max({booked}) AS booked {of_zone} GROUP BY batch_id),"  # noqa: S608
        f" rebuilt AS (SELECT {latest} {of_zone} AND {IS_REBUILD} GROUP BY batch_id),"
        " counted AS (SELECT b.batch_id, b.booked, coalesce(arg_max(r.batch_id, r.at), b.batch_id) AS id"
        " FROM booked b LEFT JOIN rebuilt r ON r.at >= b.at GROUP BY b.batch_id, b.booked),"
        f" found AS (SELECT batch_id, count(*) AS found FROM ({select}) GROUP BY ALL)"
        " SELECT coalesce(c.id, f.batch_id, '(none)') AS id, coalesce(sum(f.found), 0)::BIGINT AS found,"
        " coalesce(sum(c.booked), 0)::BIGINT AS booked"
        " FROM found f FULL JOIN counted c ON f.batch_id = c.batch_id GROUP BY 1"
    )


def parts_by(column: str, parts: int) -> tuple[str, ...]:
    """Conditions that part rows by a column's value; a row without a value is in the first part."""
    return tuple(f"coalesce(hash({column}) % {parts}, 0) = {number}" for number in range(parts))


def _asked(
    connection: Connection,
    select: str,
    counts: Mapping[str, str],
    checks: Sequence[Check],
    parts: Sequence[str] = ("true",),
) -> tuple[dict[str, int], list[Finding]]:
    """The counts over a SELECT's rows, and what the checks find in them; the tables are read once for each part."""
    asked = f"SELECT {', '.join(_columns(counts, checks))} FROM ({select})"  # noqa: S608
    answers = (row for part in parts for row in rows(connection, asked.replace("{part}", part)))
    total = reduce(lambda one, other: {name: one[name] + other[name] for name in one}, answers)
    failed = [_finding(check, number, total) for number, check in enumerate(checks) if total[f"count_{number}"]]
    return {name: total[name] for name in counts}, failed


def _columns(counts: Mapping[str, str], checks: Sequence[Check]) -> Iterator[str]:
    for name, expression in counts.items():
        yield f"coalesce({expression}, 0)::BIGINT AS {name}"
    for number, check in enumerate(checks):
        fails = f"FILTER (WHERE {check.condition})"
        yield f"count(*) {fails} AS count_{number}"
        yield f"coalesce(sum({check.records}) {fails}, 0)::BIGINT AS records_{number}"
        yield f"coalesce(min(id, {SHOWN_IDS}) {fails}, []) AS ids_{number}"


def _finding(check: Check, number: int, row: dict[str, Any]) -> Finding:
    count, records = row[f"count_{number}"], row[f"records_{number}"]
    ids = tuple(sorted(row[f"ids_{number}"])[:SHOWN_IDS])
    lost = records if check.is_loss else 0
    return Finding(check.kind, f"{check.words}: {listed(ids, count)}", count, records, lost, ids)
