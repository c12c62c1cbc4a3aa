"""`{topic}_latest`: each key's newest Standardized row, as a view of the catalog's own kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from lean_ops.lake.ranges import spark_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from lean_ops.lake.spark import SparkSessions
    from lean_ops.model.tables import Names, TableName

_PLACE: Final = "place among versions"  # the spaces keep it apart from every column's name


class LatestViews(Protocol):
    """Makes the views."""

    def make(self, topic: str, columns: Mapping[str, str]) -> None:
        """Make a topic's view of these columns, by name and Iceberg type; again if there is one already.

        A view's columns stay what they were when it was made.
        """


def latest_query(table: str, columns: Iterable[str], quote: str) -> str:
    """The view's query over a table whose name is quoted already.

    Newest is by (publish_time, ingestion_ts, message_id); a row without a key has no other version and is shown.
    """
    place = f"{quote}{_PLACE}{quote}"
    shown = ", ".join(f"{quote}{column}{quote}" for column in columns)
    newest_first = "PARTITION BY idempotency_key ORDER BY publish_time DESC, ingestion_ts DESC, message_id DESC"
    return (
        f"SELECT {shown} FROM (SELECT *, row_number() OVER ({newest_first}) AS {place} FROM {table})"  # noqa: S608  names are quoted
        f" WHERE {place} = 1 OR nullif(trim(idempotency_key), '') IS NULL"
    )


class IcebergViews:
    """Views of an Iceberg catalog, made by Spark. A catalog that has none goes without: `query` shows them anyway."""

    def __init__(self, sessions: SparkSessions, names: Names) -> None:
        self._sessions = sessions
        self._names = names
        self._has_views = True

    def make(self, topic: str, columns: Mapping[str, str]) -> None:
        """Make the view, or make it again."""
        from pyspark.errors import UnsupportedOperationException

        if not self._has_views:
            return
        query = latest_query(spark_name(self._names.standardized(topic)), columns, "`")
        try:
            self._sessions.mine().sql(f"CREATE OR REPLACE VIEW {spark_name(self._names.latest(topic))} AS {query}")
        except UnsupportedOperationException as error:
            self._has_views = False
            structlog.get_logger("lean_ops.views").info("the catalog has no views", reason=str(error)[:300])


class ViewsByQuery(Protocol):
    """Views of a database that are told to it as a query."""

    def make(self, view: TableName, query: str, columns: Mapping[str, str]) -> None:
        """Make a view, or make it again."""


@dataclass(frozen=True, slots=True)
class QueriedViews:
    """Views in a catalog that keeps queries of another engine, such as Athena's."""

    views: ViewsByQuery
    names: Names

    def make(self, topic: str, columns: Mapping[str, str]) -> None:
        """Make the view, or make it again."""
        table = self.names.standardized(topic)
        query = latest_query(f'"{table.database}"."{table.table}"', columns, '"')
        self.views.make(self.names.latest(topic), query, columns)
