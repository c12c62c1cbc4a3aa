"""Drift that nobody was told of: what a topic's payloads show for the first time, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.lake.duck import rows, views_of
from lean_ops.lake.table_files import literal, open_table, plan
from lean_ops.ledger.books import Alert
from lean_ops.ledger.finding import OneOf

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from pyiceberg.expressions import BooleanExpression

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.lake.table_files import TableFiles
    from lean_ops.model.tables import Names

KIND: Final = "DRIFT"
_SHOWN: Final = 5
_FEW_TOPICS: Final = 20
_LOG, _ALERTS = "drift_log", "alerts"


@dataclass(frozen=True, slots=True)
class DriftNews:
    """What a batch showed of a topic for the first time; `columns` are the first few it is about."""

    topic: str
    batch_id: str
    entries: int
    kinds: tuple[str, ...]
    columns: tuple[str, ...]

    def alert(self) -> Alert:
        """The word of it: information, which is over as soon as it is told."""
        more = self.entries - len(self.columns)
        named = ", ".join(self.columns) + (f" and {more} more" if more > 0 else "")
        message = f"its payloads changed: {', '.join(self.kinds)}: {named}; `lean-ops drift {self.topic}` lists all"
        return Alert(self.batch_id, self.topic, KIND, "info", message, float(self.entries), lasts=False)


@dataclass(frozen=True, slots=True)
class DriftReader:
    """The drift log beside the alerts."""

    catalog: CatalogReader
    names: Names

    def untold(self, since: datetime) -> list[DriftNews]:
        """First drift of its sort since a time, without what was told.

        What a topic's first batch shows is its shape and no drift. A type that goes on changing is no news.
        """
        recent = self._files(_LOG, _after(since))
        topics = self._topics(recent, since) if recent else []
        log, alerts = (self._files(table, _of(topics)) for table in (_LOG, _ALERTS))
        if not topics or log is None or alerts is None:
            return []
        with views_of({_LOG: log, _ALERTS: alerts}) as connection:
            found = rows(connection, _untold(since, topics))
        return [
            DriftNews(row["topic_name"], row["batch_id"], row["entries"], tuple(row["kinds"]), tuple(row["columns"]))
            for row in found
        ]

    def _topics(self, recent: TableFiles, since: datetime) -> list[str]:
        with views_of({_LOG: recent}) as connection:
            sql = f"SELECT DISTINCT topic_name FROM drift_log WHERE detected_at >= {_time(since)} ORDER BY topic_name"  # noqa: S608
            return [row["topic_name"] for row in rows(connection, sql)]

    def _files(self, table: str, near: BooleanExpression) -> TableFiles | None:
        location = self.catalog.location(self.names.ops(table))
        return plan(open_table(location), near) if location else None


def _of(topics: Collection[str]) -> BooleanExpression:
    """Files of these topics; of many all files, because each would be asked for each of them."""
    from pyiceberg.expressions import AlwaysTrue

    return OneOf("topic_name", topics).filter if len(topics) <= _FEW_TOPICS else AlwaysTrue()


def _after(since: datetime) -> BooleanExpression:
    from pyiceberg.expressions import GreaterThanOrEqual, Reference
    from pyiceberg.expressions.literals import literal as value_of

    return GreaterThanOrEqual(term=Reference("detected_at"), value=value_of(since.isoformat()))


def _time(moment: datetime) -> str:
    return f"TIMESTAMPTZ {literal(moment.isoformat())}"


def _untold(since: datetime, topics: Collection[str]) -> str:
    wanted = OneOf("topic_name", topics).condition
    parts: Sequence[str] = (
        f"WITH log AS (SELECT * FROM drift_log WHERE {wanted}),"  # noqa: S608
        " beginnings AS (SELECT topic_name, arg_min(batch_id, detected_at) AS batch_id FROM log GROUP BY ALL),"
        " firsts AS (SELECT topic_name, kind, json_pointer, new_value, min(detected_at) AS first_at,"
        " arg_min(batch_id, detected_at) AS batch_id, arg_min(column_name, detected_at) AS column_name"
        " FROM log GROUP BY topic_name, kind, json_pointer, new_value),",
        f" told AS (SELECT alert_id FROM alerts WHERE {wanted} AND kind = {literal(KIND)})",  # noqa: S608
        " SELECT topic_name, batch_id, count(DISTINCT column_name) AS entries,"
        " list_sort(list(DISTINCT kind)) AS kinds,"
        f" list_slice(list_sort(list(DISTINCT column_name)), 1, {_SHOWN}) AS columns",
        " FROM firsts ANTI JOIN beginnings USING (topic_name, batch_id)",
        f" WHERE first_at >= {_time(since)}",
        f" AND ('{KIND}-' || topic_name || '-' || batch_id) NOT IN (SELECT alert_id FROM told)",  # noqa: S608
        " GROUP BY topic_name, batch_id ORDER BY topic_name, batch_id",
    )
    return "".join(parts)
