"""Dead letters against an oracle: they are found by what their row's body holds, because many have no message id."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.duck import rows, run
from lean_ops.lake.table_files import literal
from lean_ops.ledger.oracle import ExpectedFate
from lean_ops.ledger.verify_result import MISSING, Compared, Difference, Differs, Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    Connection = duckdb.DuckDBPyConnection

_DEAD: Final = str(ExpectedFate.DEAD_LETTER)
# Each body with how often it is told and found. A letter that was replayed with success is none any more.
_LETTERS: Final = """
SELECT c.*, t.file, t.line, t.kind, coalesce(t.message_id, c.found_id) AS message_id FROM (
    SELECT body, count(place) AS lines, count(letter) AS letters, min(place) AS place,
        min(reason) AS reason, max(reason) AS high_reason, min(letter) AS found_reason,
        max(letter) AS found_high_reason, min(id) AS found_id
    FROM (
        SELECT body_sha256 AS body, place, reason, NULL AS letter, NULL AS id FROM told WHERE fate = 'dead_letter'
        UNION ALL SELECT coalesce(sha256(body), ''), NULL, NULL, coalesce(error_type, ''), message_id FROM dlq_errors
        WHERE topic_name = {topic} AND replay_status IS DISTINCT FROM 'FIXED'
    ) GROUP BY body
) c LEFT JOIN told t ON t.place = c.place
"""
_DIFFERS: Final = f"""CASE WHEN lines = 0 THEN ['{Differs.UNKNOWN}'] ELSE list_filter([
    CASE WHEN letters {{more}} lines THEN '{Differs.FATE}' END,
    CASE WHEN letters > 0 AND (reason <> found_reason OR high_reason <> found_high_reason) THEN '{Differs.REASON}' END
], lambda kind: kind IS NOT NULL) END"""


@dataclass(frozen=True, slots=True)
class LetterQuestion:
    """How a topic's dead letters are compared; the flags are those of the messages."""

    topic: str
    redelivered: bool
    complete: bool
    show: int

    def compared(self, connection: Connection) -> Compared:
        """The lines of `told` that are dead letters against the rows of `dlq_errors`."""
        differs = _DIFFERS.replace("{more}", "<" if self.redelivered else "<>")
        letters = _LETTERS.replace("{topic}", literal(self.topic))
        run(connection, f"CREATE TABLE letters AS SELECT *, {differs} AS differs FROM ({letters})")  # noqa: S608
        told = "lines > 0"
        [row] = rows(
            connection,
            f"SELECT count(*) FILTER ({told}) AS messages, coalesce(sum(lines), 0)::BIGINT AS lines,"  # noqa: S608
            f" coalesce(sum(letters) FILTER ({told}), 0)::BIGINT AS letters,"
            f" count(*) FILTER ({told} AND len(differs) > 0) AS differing, count(*) FILTER (lines = 0) AS unknown,"
            f" coalesce(sum(greatest(lines - letters, 0)), 0)::BIGINT AS missing,"
            f" coalesce(sum(greatest(letters - lines, 0)) FILTER ({told}), 0)::BIGINT AS more FROM letters",
        )
        return Compared(
            row["messages"],
            row["lines"],
            Counter({_DEAD: row["lines"]}),
            Counter({_DEAD: row["letters"], MISSING: row["missing"]}),
            row["differing"],
            row["unknown"],
            row["more"] if self.redelivered else 0,
            self._shown(connection),
        )

    def _shown(self, connection: Connection) -> tuple[Difference, ...]:
        wanted = "len(differs) > 0" if self.complete else "len(differs) > 0 AND lines > 0"
        found = rows(
            connection,
            f"SELECT * FROM letters WHERE {wanted} ORDER BY place NULLS LAST, message_id, body LIMIT {self.show}",  # noqa: S608
        )
        return tuple(map(self._difference, found))

    def _difference(self, row: Mapping[str, Any]) -> Difference:
        lines, letters = row["lines"], row["letters"]
        found = {_DEAD: letters} if letters else {MISSING: lines}
        return Difference(
            self.topic,
            row["place"],
            row["message_id"],
            None,
            tuple(map(Differs, row["differs"])),
            Told({_DEAD: lines} if lines else {}, row["reason"]),
            Told(found, row["found_reason"]),
            row["file"],
            row["line"],
            row["kind"],
            row["body"],
        )
