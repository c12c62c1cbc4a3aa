"""The messages of a topic against an oracle: each message's bodies by fate, as told and as found, in SQL.

The views `told` (the oracle's lines), `raw`, `raw_read`, `standardized`, `standardized_read`, `curated`,
`parse_refused`, `curated_refused` and `dlq_errors` are there, and so is the table `wrong_values`. What differs comes
back as counts and a few rows, however large the tables are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.duck import rows, run
from lean_ops.lake.table_files import literal
from lean_ops.ledger.verify_result import MISSING, Compared, Difference, Differs, Told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import duckdb

    from lean_ops.ledger.verify_result import WrongValue

    Connection = duckdb.DuckDBPyConnection

_MESSAGE: Final = "message_id, publish_time"
_FIRST: Final = "source = 'line' AND word NOT IN ('duplicate', 'pending')"
_STANDING: Final = "replay IS DISTINCT FROM 'FIXED'"
_ROWS: Final = ("raw", "standardized", "parse_errors", "curated", "errors")


def _rows_of(source: str, view: str, *, key: str = "NULL", word: str = "NULL", fields: str = "NULL") -> str:
    replay = "replay_status" if view.endswith("refused") else "NULL"
    return (
        f" UNION ALL SELECT {_MESSAGE}, '{source}', {key}, {word}, NULL, {fields}, {replay} FROM {view} WHERE {{part}}"  # noqa: S608
    )


# Everything that is told or found of each message. `{part}` is a slice's condition.
_SOURCES: Final = (
    f"SELECT {_MESSAGE}, 'line' AS source, idempotency_key AS key, fate AS word, place, NULL::VARCHAR[] AS fields,"  # noqa: S608
    " NULL::VARCHAR AS replay FROM told WHERE fate <> 'dead_letter' AND {part}"
    + _rows_of("raw", "raw", key="idempotency_key")
    + _rows_of("read", "raw_read")
    + _rows_of("standardized", "standardized", key="idempotency_key")
    + _rows_of("standardized_read", "standardized_read")
    + _rows_of("parse_error", "parse_refused", word="error_type")
    + _rows_of("curated", "curated", key="idempotency_key")
    + _rows_of("error", "curated_refused", word="error_type", fields="error_fields")
)
_MESSAGES: Final = f"""
SELECT {_MESSAGE},
    count(*) FILTER (source = 'line') AS lines,
    count(*) FILTER (source = 'line' AND word = 'duplicate') AS told_duplicates,
    count(*) FILTER (source = 'line' AND word = 'pending') AS told_pending,
    count(*) FILTER ({_FIRST}) AS told_firsts,
    min(word) FILTER ({_FIRST}) AS told_fate,
    max(word) FILTER ({_FIRST}) AS told_otherwise,
    coalesce(min(place) FILTER ({_FIRST}), min(place) FILTER (word = 'pending'), min(place)) AS first_place,
    min(key) FILTER (source = 'line') AS told_key,
    max(key) FILTER (source = 'line') AS told_high_key,
    count(*) FILTER (source = 'raw') AS raw,
    min(key) FILTER (source = 'raw') AS raw_key,
    max(key) FILTER (source = 'raw') AS raw_high_key,
    bool_or(key IS NULL) FILTER (source = 'raw') AS raw_no_key,
    count(*) FILTER (source = 'read') AS read,
    count(*) FILTER (source = 'standardized') AS standardized,
    max(key) FILTER (source = 'standardized') AS standardized_key,
    count(*) FILTER (source = 'standardized_read') AS standardized_read,
    count(*) FILTER (source = 'parse_error') AS parse_errors,
    count(*) FILTER (source = 'parse_error' AND {_STANDING}) AS parse_standing,
    min(word) FILTER (source = 'parse_error' AND {_STANDING}) AS parse_type,
    count(*) FILTER (source = 'curated') AS curated,
    min(key) FILTER (source = 'curated') AS curated_key,
    max(key) FILTER (source = 'curated') AS curated_high_key,
    count(*) FILTER (source = 'error') AS errors,
    count(*) FILTER (source = 'error' AND {_STANDING}) AS errors_standing,
    count(*) FILTER (source = 'error' AND replay = 'NEW') AS errors_new,
    min(word) FILTER (source = 'error' AND {_STANDING}) AS error_type,
    any_value(fields) FILTER (source = 'error' AND {_STANDING}) AS error_fields
FROM ({_SOURCES}) GROUP BY {_MESSAGE}
"""  # noqa: S608  names are our own
# What the rows say of the copy that was read first. A copy that no batch has read is no first one.
_FOUND_FATE: Final = f"""CASE
    WHEN curated > 0 THEN 'curated'
    WHEN standardized > 0 THEN CASE
        WHEN NOT {{goes_on}} THEN 'standardized'
        WHEN standardized_read = 0 THEN 'pending'
        WHEN errors_standing > 0 THEN 'error'
        WHEN key_rows > 0 THEN 'superseded'
        ELSE '{MISSING}' END
    WHEN parse_standing > 0 THEN 'parse_error'
    WHEN errors_standing > 0 THEN 'error'
    WHEN read > 0 THEN '{MISSING}' END"""
# Messages with their oracle's first line, and with what Curated shows for their key.
_FATES: Final = f"""
WITH messages AS MATERIALIZED ({_MESSAGES}),
keys AS (
    SELECT c.idempotency_key, count(*) AS key_rows, min(c.message_id) AS version FROM curated c
    SEMI JOIN messages m ON c.idempotency_key = coalesce(m.curated_key, m.standardized_key) GROUP BY c.idempotency_key
)
SELECT *, greatest(read - 1, 0) AS found_duplicates,
    greatest(raw - read, 0) + coalesce((found_fate = 'pending')::BIGINT, 0) AS found_pending,
    CASE found_fate WHEN 'parse_error' THEN parse_type WHEN 'error' THEN error_type END AS found_reason
FROM (
    SELECT *, {_FOUND_FATE} AS found_fate FROM (
        SELECT m.*, coalesce(k.key_rows, 0) AS key_rows, k.version AS found_version, t.place, t.file, t.line, t.kind,
            t.reason, t.fields, t.version AS told_version, t.idempotency_key AS first_key
        FROM messages m LEFT JOIN keys k ON k.idempotency_key = coalesce(m.curated_key, m.standardized_key)
        LEFT JOIN told t ON t.place = m.first_place
    )
)
"""  # noqa: S608  names are our own
_FIRST_FOUND: Final = "nullif(found_fate, 'pending')"
_OTHER_FATE: Final = f"""told_fate IS DISTINCT FROM {_FIRST_FOUND} OR told_firsts > 1
    OR found_duplicates {{more}} told_duplicates OR found_pending {{more}} told_pending"""
_SAME_FATE: Final = "told_fate = found_fate"
_CONDITIONS: Final = {
    Differs.FATE: _OTHER_FATE,
    Differs.REASON: f"{_SAME_FATE} AND told_fate IN ('parse_error', 'error') AND reason <> coalesce(found_reason, '')",
    Differs.FIELDS: f"{_SAME_FATE} AND told_fate = 'error' AND list_sort(list_distinct(fields))"
    " <> list_sort(list_distinct(coalesce(error_fields, []::VARCHAR[])))",
    Differs.VERSION: f"{_SAME_FATE} AND told_fate IN ('curated', 'superseded') AND told_version <> found_version",
    Differs.VALUES: "found_fate = 'curated' AND place IN (SELECT place FROM wrong_values)",
    Differs.RAW_KEY: "raw > 0 AND told_key IS NOT NULL"
    " AND (raw_no_key OR raw_key IS DISTINCT FROM told_key OR raw_high_key IS DISTINCT FROM told_high_key)",
    Differs.CURATED_KEY: "curated > 0 AND (curated_key <> first_key OR curated_high_key <> first_key)",
    Differs.DOUBLED: "standardized > 1 OR parse_errors > 1 OR curated > 1 OR errors > 1",
    Differs.IN_BOTH: "standardized > 0 AND parse_standing > 0 OR curated > 0 AND errors_new > 0",
    Differs.KEY_TWICE: "curated > 0 AND key_rows > 1",
    Differs.UNSOURCED: "raw = 0 AND standardized + parse_errors + curated + errors > 0"
    " OR standardized = 0 AND curated + errors > 0",
}


_MORE_COPIES: Final = "greatest(found_duplicates - told_duplicates, 0) + greatest(found_pending - told_pending, 0)"
_BY_TOLD_FATE: Final = """
SELECT told_fate AS fate, sum(told_firsts)::BIGINT AS bodies FROM compared WHERE told_fate IS NOT NULL GROUP BY ALL
"""
_BY_FOUND_FATE: Final = """
SELECT found_fate AS fate, count(*) AS bodies FROM compared WHERE lines > 0 AND found_fate IS NOT NULL GROUP BY ALL
"""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A message of which an oracle says two different fates, and the places where it does."""

    message_id: str
    fates: tuple[str, str]
    places: tuple[int, int]


@dataclass(frozen=True, slots=True)
class MessageQuestion:
    """How a topic's messages are compared.

    `goes_on` says whether its records are to go on to Curated, `redelivered` whether more copies than told are
    duplicates and no difference, `complete` whether the oracle knows every message.
    """

    topic: str
    goes_on: bool
    redelivered: bool
    complete: bool
    show: int

    def make_compared(self, connection: Connection, part: str) -> Contradiction | None:
        """Make the table `compared`: a row for each message of a part. The first contradiction of the oracle, if any.

        A column `differs` has what differs. A message that the oracle does not know differs in nothing else.
        """
        fates = _FATES.replace("{part}", part).replace("{goes_on}", str(self.goes_on))
        listed = ", ".join(f"CASE WHEN {condition} THEN '{kind}' END" for kind, condition in _CONDITIONS.items())
        differs = (
            f"CASE WHEN lines = 0 THEN ['{Differs.UNKNOWN}']"
            f" ELSE list_filter([{listed}], lambda kind: kind IS NOT NULL) END"
        ).replace("{more}", "<" if self.redelivered else "<>")
        run(connection, f"CREATE OR REPLACE TABLE compared AS SELECT *, {differs} AS differs FROM ({fates})")  # noqa: S608
        return _contradiction(connection)

    def compared(self, connection: Connection, values: Callable[[Sequence[int]], Mapping[int, Any]]) -> Compared:
        """What the table `compared` comes to; `values` gives what is wrong with the values at some places."""
        told = "lines > 0"
        [row] = rows(
            connection,
            f"SELECT count(*) FILTER ({told}) AS messages, {_sum('lines')} AS lines,"  # noqa: S608
            f" count(*) FILTER ({told} AND len(differs) > 0) AS differing, count(*) FILTER (lines = 0) AS unknown,"
            f" {_sum('told_duplicates')} AS told_duplicates, {_sum('told_pending')} AS told_pending,"
            f" {_sum('found_duplicates', told)} AS duplicates,"
            f" {_sum('greatest(raw - read, 0)', told)} AS waiting_copies,"
            " coalesce(sum(greatest(lines - found_duplicates - greatest(raw - read, 0) -"
            f" (found_fate IS NOT NULL)::BIGINT, 0)) FILTER ({told}), 0)::BIGINT AS missing_copies,"
            f" {_sum(_MORE_COPIES, told)} AS more_copies FROM compared",
        )
        return Compared(
            row["messages"],
            row["lines"],
            _counter(rows(connection, _BY_TOLD_FATE), duplicate=row["told_duplicates"], pending=row["told_pending"]),
            _counter(
                rows(connection, _BY_FOUND_FATE),
                duplicate=row["duplicates"],
                pending=row["waiting_copies"],
                missing=row["missing_copies"],
            ),
            row["differing"],
            row["unknown"],
            row["more_copies"] if self.redelivered else 0,
            self._shown(connection, values),
        )

    def _shown(
        self, connection: Connection, values: Callable[[Sequence[int]], Mapping[int, Any]]
    ) -> tuple[Difference, ...]:
        """The first differences, in the order of the oracle's lines."""
        wanted = "len(differs) > 0" if self.complete else "len(differs) > 0 AND lines > 0"
        found = rows(
            connection,
            f"SELECT * FROM compared WHERE {wanted} ORDER BY place NULLS LAST, message_id LIMIT {self.show}",  # noqa: S608
        )
        wrong = values([row["place"] for row in found if Differs.VALUES in row["differs"]])
        letters = self._letters(connection, [row["place"] for row in found if row["lines"] and not _is_found(row)])
        return tuple(
            self._difference(row | letters.get(row["place"], {}), wrong.get(row["place"], ())) for row in found
        )

    def _letters(self, connection: Connection, places: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Of messages that no zone has, those that ingestion refused."""
        if not places:
            return {}
        found = rows(
            connection,
            "SELECT c.place, count(*) AS letters, min(d.error_type) AS found_reason FROM compared c JOIN dlq_errors d"  # noqa: S608
            f" ON d.message_id = c.message_id WHERE d.topic_name = {literal(self.topic)}"
            f" AND c.place IN ({', '.join(map(str, places))}) GROUP BY c.place",
        )
        return {row["place"]: row for row in found}

    def _difference(self, row: Mapping[str, Any], values: tuple[WrongValue, ...]) -> Difference:
        return Difference(
            self.topic,
            row["place"],
            row["message_id"],
            row["publish_time"],
            tuple(map(Differs, row["differs"])),
            _told(row),
            _found(row),
            row["file"],
            row["line"],
            row["kind"],
            rows={name: row[name] for name in _ROWS},
            values=values,
        )


def _sum(expression: str, condition: str = "true") -> str:
    return f"coalesce(sum({expression}) FILTER ({condition}), 0)::BIGINT"


def _counter(by_fate: Sequence[Mapping[str, Any]], **more: int) -> Counter[str]:
    counted = Counter({row["fate"]: row["bodies"] for row in by_fate})
    counted.update(more)
    return counted


def _contradiction(connection: Connection) -> Contradiction | None:
    found = rows(
        connection,
        "SELECT t.message_id, list(t.place ORDER BY t.place) AS places, list(t.fate ORDER BY t.place) AS fates"
        " FROM told t JOIN (SELECT message_id, publish_time FROM compared WHERE told_fate <> told_otherwise"
        " ORDER BY first_place LIMIT 1) c ON t.message_id = c.message_id AND t.publish_time = c.publish_time"
        " WHERE t.fate NOT IN ('dead_letter', 'duplicate', 'pending') GROUP BY t.message_id",
    )
    for row in found:
        told = list(zip(row["places"], row["fates"], strict=True))
        other = next(line for line in told if line[1] != told[0][1])
        return Contradiction(row["message_id"], (told[0][1], other[1]), (told[0][0], other[0]))
    return None


def _told(row: Mapping[str, Any]) -> Told:
    fates = {row["told_fate"]: row["told_firsts"]} if row["told_fate"] else {}
    fates |= {"duplicate": row["told_duplicates"], "pending": row["told_pending"]}
    keys = _keys(row["told_key"], row["told_high_key"], without=False)
    return Told(_without_zeros(fates), row["reason"], _texts(row["fields"]), row["told_version"], keys)


def _found(row: Mapping[str, Any]) -> Told:
    fates = Counter({row["found_fate"]: 1} if row["found_fate"] else {})
    fates.update({"duplicate": row["found_duplicates"], "pending": max(0, row["raw"] - row["read"])})
    if row["lines"] and not _is_found(row):
        fates = Counter({"dead_letter": row["letters"]} if "letters" in row else {MISSING: row["lines"]})
    keys = _keys(row["raw_key"], row["raw_high_key"], row["raw_no_key"])
    fields = _texts(row["error_fields"]) if row["found_fate"] == "error" else None
    return Told(_without_zeros(fates), row["found_reason"], fields, row["found_version"], keys)


def _is_found(row: Mapping[str, Any]) -> bool:
    return row["found_fate"] is not None or row["raw"] > 0


def _keys(low: str | None, high: str | None, without: bool | None) -> tuple[str | None, ...]:
    texts = dict.fromkeys(key for key in (low, high) if key is not None)
    return (*texts, *((None,) if without else ()))


def _texts(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _without_zeros(fates: Mapping[str, int]) -> dict[str, int]:
    return {fate: bodies for fate, bodies in fates.items() if bodies}
