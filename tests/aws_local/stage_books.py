"""What the tables of the local AWS hold, read as anybody reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.aws_local.stage import Stage

from lean_ops.lake.query import QuerySession
from lean_ops.lake.snapshots import BATCH_ID_PROPERTY, TO_SNAPSHOT_PROPERTY
from lean_ops.model.errors import WrongUseError

_SHARED: Final = {
    "parse_errors": "standardized.parse_errors",
    "errors": "curated.errors",
    "dlq_errors": "raw.dlq_errors",
}
_LEDGER: Final = (
    "zone, kind, batch_id, from_snapshot, to_snapshot, records_in, records_out, inserted, updated, duplicates,"
    " superseded, errors, balanced"
)


@dataclass(frozen=True)
class StageBooks:
    """Tables, ledger and checkpoints; each question looks anew."""

    stage: Stage

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a SELECT, as `lean-ops query` answers it."""
        lake = self.stage.lake()
        return QuerySession(lake.names, lake.file).query(sql)

    def rows(self, topics: Sequence[str]) -> dict[str, dict[str, int]]:
        """How many rows each table has, by topic; a table that is not there has none."""
        shared = {name: self._by_topic(table) for name, table in _SHARED.items()}
        return {
            topic: {
                **{zone: self._count(f"{zone}.{topic}") for zone in ("raw", "standardized", "curated")},
                **{name: counted.get(topic, 0) for name, counted in shared.items()},
            }
            for topic in topics
        }

    def _count(self, table: str) -> int:
        try:
            return int(self.query(f"SELECT count(*) AS n FROM {table}")[0]["n"])  # noqa: S608  our own names
        except WrongUseError:
            return 0

    def _by_topic(self, table: str) -> dict[str, int]:
        found = self.query(f"SELECT topic_name, count(*) AS n FROM {table} GROUP BY topic_name")  # noqa: S608
        return {row["topic_name"]: int(row["n"]) for row in found}

    def ledger(self, topic: str) -> list[dict[str, Any]]:
        """The ledger's rows of a topic, oldest first."""
        where = f"FROM ops.reconciliation_log WHERE topic_name = '{topic}' ORDER BY recorded_at"
        return self.query(f"SELECT {_LEDGER} {where}")

    def checkpoints(self) -> dict[str, str]:
        """How far each hop has read, by its id: what DynamoDB has."""
        table = self.stage.outputs["table_names"]["checkpoints"]
        items = self.stage.client("dynamodb").scan(TableName=table, ConsistentRead=True)["Items"]
        return {
            item["pipeline_id"]["S"]: next(iter(item["last_snapshot_id"].values()))
            for item in items
            if "last_snapshot_id" in item
        }

    def read_until(self, zone: str, topic: str) -> str | None:
        """How far a table's own newest batch says that it has read."""
        names = self.stage.lake().names
        name = names.standardized(topic) if zone == "standardized" else names.curated(topic)
        table = self.stage.lake().load(name)
        snapshot = table.current_snapshot()
        while snapshot is not None:
            summary = snapshot.summary.additional_properties if snapshot.summary else {}
            if BATCH_ID_PROPERTY in summary:
                return summary[TO_SNAPSHOT_PROPERTY]
            snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
        return None

    def head(self, zone: str, topic: str) -> str:
        """A table's newest snapshot."""
        names = self.stage.lake().names
        name = {"raw": names.raw, "standardized": names.standardized, "curated": names.curated}[zone](topic)
        return str(self.stage.lake().load(name).metadata.current_snapshot_id)
