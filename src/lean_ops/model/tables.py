"""The tables of the house as data: their names, columns and partitioning."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from lean_ops.model.batch import Zone
from lean_ops.model.partitioning import PartitionField, Transform

if TYPE_CHECKING:
    from lean_ops.model.data_type import DataType


class ColumnType(StrEnum):
    """The column types that our own tables use."""

    STRING = "string"
    STRINGS = "list<string>"
    BIGINT = "bigint"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamptz"


@dataclass(frozen=True, slots=True)
class Column:
    """One column, of a type of ours or of one that a schema declares; `doc` is kept in the table's schema."""

    name: str
    type: ColumnType | DataType = ColumnType.STRING
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a table looks like when it is made."""

    columns: tuple[Column, ...]
    partitions: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class TableName:
    """A table's place in the catalog."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class Names:
    """Every table's name, under the prefix that separates environments in one account."""

    database_prefix: str = ""

    def _table(self, database: str, table: str) -> TableName:
        return TableName(f"{self.database_prefix}{database}", table)

    @property
    def databases(self) -> tuple[str, ...]:
        """All four databases, in the order of a record's way."""
        return (self.raw_database, self.standardized_database, self.curated_database, self.ops_database)

    @property
    def raw_database(self) -> str:
        """Where every message lands."""
        return f"{self.database_prefix}iceberg_raw_db"

    @property
    def standardized_database(self) -> str:
        """Flat, all STRING."""
        return f"{self.database_prefix}iceberg_standardized_db"

    @property
    def curated_database(self) -> str:
        """Typed and governed."""
        return f"{self.database_prefix}iceberg_curated_db"

    @property
    def ops_database(self) -> str:
        """The ledger and the other operational tables."""
        return f"{self.database_prefix}ops_db"

    def raw(self, topic: str) -> TableName:
        """A topic's RAW table."""
        return self._table("iceberg_raw_db", f"{topic}{RAW_SUFFIX}")

    def standardized(self, topic: str) -> TableName:
        """A topic's Standardized table."""
        return self._table("iceberg_standardized_db", topic)

    def curated(self, topic: str) -> TableName:
        """A topic's Curated table."""
        return self._table("iceberg_curated_db", topic)

    def of_zone(self, zone: Zone, topic: str) -> TableName:
        """A topic's table in a zone."""
        return {Zone.RAW: self.raw, Zone.STANDARDIZED: self.standardized, Zone.CURATED: self.curated}[zone](topic)

    def latest(self, topic: str) -> TableName:
        """The view of each key's newest Standardized row."""
        return self._table("iceberg_standardized_db", f"{topic}{LATEST_SUFFIX}")

    @property
    def dlq_errors(self) -> TableName:
        """What ingestion refused."""
        return self._table("iceberg_raw_db", "dlq_errors")

    @property
    def parse_errors(self) -> TableName:
        """What the Standardized hop refused."""
        return self._table("iceberg_standardized_db", "parse_errors")

    @property
    def curated_errors(self) -> TableName:
        """What the Curated hop refused."""
        return self._table("iceberg_curated_db", "errors")

    def ops(self, table: str) -> TableName:
        """One of the operational tables."""
        return self._table("ops_db", table)

    @property
    def shared(self) -> dict[TableName, TableShape]:
        """The tables that all topics share, with their shapes."""
        return {
            self.dlq_errors: DLQ_ERRORS,
            self.parse_errors: PARSE_ERRORS,
            self.curated_errors: CURATED_ERRORS,
            **{self.ops(name): shape for name, shape in OPS_TABLES.items()},
        }


RAW_SUFFIX: Final = "_staging"
LATEST_SUFFIX: Final = "_latest"


def _columns(text: str) -> tuple[Column, ...]:
    """Columns from `name` or `name:type` words; STRING unless said."""
    pairs = (word.partition(":") for word in text.split())
    return tuple(Column(name, ColumnType(kind or "string")) for name, _, kind in pairs)


ENVELOPE: Final = _columns(
    "topic_name message_id idempotency_key period_reference correlation_id publish_time:timestamptz ingestion_ts:bigint"
)
ENVELOPE_NAMES: Final = tuple(column.name for column in ENVELOPE)
EXTRA: Final = "_extra"
BATCH_ID: Final = "_batch_id"
SCHEMA_VERSION: Final = "_schema_version"
FIRST_SEEN: Final = "first_seen_ts"
LAST_UPDATED: Final = "last_updated_ts"
CURATED_AUDIT: Final = _columns(f"{FIRST_SEEN}:timestamptz {LAST_UPDATED}:timestamptz {SCHEMA_VERSION} {BATCH_ID}")

_BY_DAY: Final = (PartitionField(Transform.DAY, "publish_time"),)
_BY_TOPIC: Final = (PartitionField(Transform.IDENTITY, "topic_name"),)

RAW: Final = TableShape((*ENVELOPE, Column("json_payload")), _BY_DAY)
STANDARDIZED: Final = TableShape((*ENVELOPE, Column(EXTRA), Column(BATCH_ID)), _BY_DAY)

DLQ_ERRORS: Final = TableShape(
    _columns(
        "message_id topic_name error_type error_message body attributes receive_count:bigint archive_path source"
        " archived_at:timestamptz replay_status replay_id"
    ),
    _BY_TOPIC,
)
PARSE_ERRORS: Final = TableShape(
    _columns(
        "message_id idempotency_key topic_name raw_payload error_type error_message publish_time:timestamptz"
        " ingestion_ts:bigint processed_ts:timestamptz batch_id replay_status replay_id"
    ),
    _BY_TOPIC,
)
CURATED_ERRORS: Final = TableShape(
    _columns(
        "message_id idempotency_key topic_name raw_record error_type error_fields:list<string> error_message"
        " schema_version publish_time:timestamptz ingestion_ts:bigint processed_ts:timestamptz batch_id"
        " replay_status replay_id"
    ),
    _BY_TOPIC,
)


def _ops(columns: str, time_column: str) -> TableShape:
    """An operational table: by topic, and by month of its time."""
    return TableShape(_columns(columns), (*_BY_TOPIC, PartitionField(Transform.MONTH, time_column)))


OPS_TABLES: Final = {
    "reconciliation_log": _ops(
        "topic_name zone kind batch_id from_snapshot to_snapshot records_in:bigint records_out:bigint"
        " inserted:bigint updated:bigint duplicates:bigint superseded:bigint errors:bigint variance:double"
        " balanced:boolean recorded_at:timestamptz",
        "recorded_at",
    ),
    "job_run_history": _ops(
        "run_id topic_name zone batch_id status reason records_in:bigint records_out:bigint error_rate:double"
        " started_at:timestamptz ended_at:timestamptz duration_ms:bigint engine",
        "started_at",
    ),
    "drift_log": _ops(
        "topic_name column_name json_pointer kind old_value new_value batch_id records:bigint detected_at:timestamptz",
        "detected_at",
    ),
    "schema_versions": _ops(
        "topic_name schema_version change_class changes schema submitted_by justification applied_at:timestamptz",
        "applied_at",
    ),
    "topic_registry": _ops(
        "topic_name source pubsub_topic queue first_seen_at:timestamptz last_seen_at:timestamptz status",
        "first_seen_at",
    ),
    "maintenance_log": _ops(
        "run_id topic_name table_name action files_before:bigint files_after:bigint bytes_before:bigint"
        " bytes_after:bigint status error_message duration_ms:bigint run_at:timestamptz",
        "run_at",
    ),
    "alerts": _ops(
        "alert_id topic_name kind severity message value:double threshold:double opened_at:timestamptz"
        " closed_at:timestamptz",
        "opened_at",
    ),
}
