"""What the shared tables say: errors, drift and runs, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.duck import rows, views_of
from lean_ops.lake.table_files import literal, open_table, plan

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.lake.table_files import TableFiles
    from lean_ops.model.tables import Names, TableName

DEFAULT_LIMIT: Final = 20
# Each error table's own words for the columns that all three are shown with.
_ERROR_COLUMNS: Final = {
    "dlq_errors": "NULL::VARCHAR[] AS error_fields, archived_at AS occurred_at, NULL::VARCHAR AS batch_id",
    "parse_errors": "NULL::VARCHAR[] AS error_fields, processed_ts AS occurred_at, batch_id",
    "errors": "error_fields, processed_ts AS occurred_at, batch_id",
}


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """How many errors of each type there are, and the newest of them."""

    totals: list[dict[str, Any]]
    newest: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class LedgerReader:
    """The shared tables as a person reads them."""

    catalog: CatalogReader
    names: Names

    def errors(self, topic: str | None, limit: int = DEFAULT_LIMIT) -> ErrorReport:
        """Dead letters, parse errors and curated errors of a topic, or of all."""
        places = (self.names.dlq_errors, self.names.parse_errors, self.names.curated_errors)
        tables = {place.table: files for place in places if (files := self._files(place, topic))}
        if not tables:
            return ErrorReport([], [])
        parts = " UNION ALL ".join(
            f"SELECT '{name}' AS \"table\", topic_name, error_type, error_message, message_id, {_ERROR_COLUMNS[name]},"  # noqa: S608
            f" replay_status FROM {name} WHERE {_of_topic(topic)}"
            for name in tables
        )
        totals = (
            'SELECT "table", error_type, count(*) AS records, max(occurred_at) AS newest'  # noqa: S608
            f' FROM ({parts}) GROUP BY ALL ORDER BY records DESC, "table", error_type'
        )
        newest = f'SELECT * FROM ({parts}) ORDER BY occurred_at DESC NULLS LAST, "table", message_id LIMIT {limit:d}'  # noqa: S608
        with views_of(tables) as connection:
            return ErrorReport(rows(connection, totals), rows(connection, newest))

    def drift(self, topic: str | None, limit: int = DEFAULT_LIMIT) -> list[dict[str, Any]]:
        """What changed in the payloads of a topic, or of all."""
        columns = "detected_at, topic_name, kind, column_name, json_pointer, old_value, new_value, records, batch_id"
        return self._newest("drift_log", columns, "detected_at DESC NULLS LAST, column_name, kind", topic, limit)

    def history(self, topic: str | None, limit: int = DEFAULT_LIMIT) -> list[dict[str, Any]]:
        """The attempts at batches of a topic, or of all."""
        columns = (
            "started_at, topic_name, zone, status, reason, records_in, records_out, error_rate, duration_ms,"
            " ended_at, batch_id, run_id, engine"
        )
        return self._newest("job_run_history", columns, "started_at DESC NULLS LAST, topic_name, zone", topic, limit)

    def _newest(self, table: str, columns: str, order: str, topic: str | None, limit: int) -> list[dict[str, Any]]:
        files = self._files(self.names.ops(table), topic)
        if files is None:
            return []
        with views_of({table: files}) as connection:
            sql = f"SELECT {columns} FROM {table} WHERE {_of_topic(topic)} ORDER BY {order} LIMIT {limit:d}"  # noqa: S608
            return rows(connection, sql)

    def _files(self, name: TableName, topic: str | None) -> TableFiles | None:
        location = self.catalog.locations(name.database).get(name.table)
        return plan(open_table(location), equal("topic_name", topic) if topic else None) if location else None


def _of_topic(topic: str | None) -> str:
    return "true" if topic is None else f"topic_name = {literal(topic)}"


def equal(column: str, value: str) -> BooleanExpression:
    """A filter that lets pyiceberg leave out files without such a row."""
    from pyiceberg.expressions import EqualTo, Reference
    from pyiceberg.expressions.literals import literal as value_of

    return EqualTo(term=Reference(column), value=value_of(value))
