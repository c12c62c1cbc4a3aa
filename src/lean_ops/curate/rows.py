"""Standardized rows as Curated sees them: texts found, typed, judged, protected; split into rows and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from lean_ops.curate.casts import cast_text, not_blank, spark_type
from lean_ops.curate.protect import protected
from lean_ops.curate.rules import rules_of, text_of
from lean_ops.curate.source import source_columns
from lean_ops.model.tables import BATCH_ID, ENVELOPE_NAMES, FIRST_SEEN, LAST_UPDATED, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from pyiceberg.schema import Schema as TableSchema
    from pyspark.sql import Column, DataFrame

    from lean_ops.curate.protect import PiiKey
    from lean_ops.model.batch import Batch
    from lean_ops.model.schema import Schema

KEY: Final = "idempotency_key"
REFUSED: Final = "refused row"  # like the texts: a space keeps it apart from every column's name
_REASONS: Final = "reasons of refusal"
_PLACE: Final = "place among versions"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a batch's rows are judged by: the schema, the key of personal data, and the time of processing."""

    batch: Batch
    schema: Schema
    key: PiiKey | None
    now: datetime

    @property
    def processed(self) -> Column:
        """The time of processing as a Column."""
        return F.timestamp_micros(F.lit(round(self.now.timestamp() * 1_000_000)))


def judged(standardized: DataFrame, table: TableSchema, judgement: Judgement) -> DataFrame:
    """Envelope, typed payload columns, and what `errors` must get of a row that breaks a rule (NULL of a good one)."""
    schema = judgement.schema
    texts = [_text(schema, name, source).alias(text_of(name)) for name, source in source_columns(schema, table).items()]
    found = standardized.select(*ENVELOPE_NAMES, *texts)
    typed = found.select(
        "*",
        *(
            cast_text(F.col(f"`{text_of(name)}`"), column.type, column.time_format).alias(name)
            for name, column in schema.payload_columns.items()
        ),
    )
    known = typed.select("*", _reasons(rules_of(schema)).alias(_REASONS))
    refused = F.when(F.col(f"`{_REASONS}`").isNotNull(), F.struct(*_error_columns(judgement)))
    return known.select(*ENVELOPE_NAMES, *schema.payload_columns, refused.alias(REFUSED))


def _text(schema: Schema, name: str, source: Column) -> Column:
    """A column's text: blank is nothing, and in place of nothing stands the default."""
    text, default = not_blank(source), schema.payload_columns[name].default
    return text if default is None else F.coalesce(text, F.lit(default))


def _reasons(rules: Iterable[Column]) -> Column:
    """All broken rules as one array, NULL if there are none: good rows, the most by far, build nothing."""
    reasons = list(rules)
    return F.when(F.coalesce(*reasons).isNotNull(), F.array_compact(F.array(*reasons)))


def curated_rows(rows: DataFrame, judgement: Judgement) -> DataFrame:
    """The rows that keep every rule, as the Curated table has them."""
    schema, batch = judgement.schema, judgement.batch
    payload = [
        _written(judgement, name, F.col(name)).cast(spark_type(column.type)).alias(name)
        for name, column in schema.payload_columns.items()
    ]
    audit = [
        judgement.processed.alias(FIRST_SEEN),
        judgement.processed.alias(LAST_UPDATED),
        F.lit(batch.schema_version).alias(SCHEMA_VERSION),
        F.lit(batch.batch_id).alias(BATCH_ID),
    ]
    return rows.where(F.col(f"`{REFUSED}`").isNull()).select(*ENVELOPE_NAMES, *payload, *audit)


def _written(judgement: Judgement, name: str, value: Column) -> Column:
    return protected(value, judgement.schema.payload_columns[name].pii, judgement.key)


def version_order(schema: Schema, row: str) -> str:
    """What makes one version of a key newer than another, as SQL over the rows of an alias.

    The version column counts first, if the schema names one; a row without a version counts as its publish_time.
    """
    version = f"{row}.`{schema.version_column}`, " if schema.version_column else ""
    return f"struct(coalesce({version}{row}.publish_time), {row}.publish_time, {row}.ingestion_ts, {row}.message_id)"


def newest_versions(rows: DataFrame, schema: Schema) -> DataFrame:
    """One row per key, the newest: MERGE does not notice two new rows of one key by itself."""
    newest_first = Window.partitionBy(KEY).orderBy(F.expr(version_order(schema, "r")).desc())
    numbered = rows.alias("r").select("r.*", F.row_number().over(newest_first).alias(_PLACE))
    return numbered.where(F.col(f"`{_PLACE}`") == 1).drop(_PLACE)


def _error_columns(judgement: Judgement) -> list[Any]:
    """A refused row as it leaves the job: all its reasons, and the declared columns as far as they may be shown."""
    reasons = F.col(f"`{_REASONS}`")
    return [
        *(F.col(name) for name in ("message_id", KEY, "topic_name", "ingestion_ts")),
        F.unix_micros("publish_time").alias("publish_time"),
        _record(judgement).alias("raw_record"),
        F.array_min(reasons)["error_type"].alias("error_type"),
        F.array_distinct(reasons["field"]).alias("error_fields"),
        F.array_join(reasons["message"], "; ").alias("error_message"),
        F.lit(judgement.batch.schema_version).alias("schema_version"),
    ]


def _record(judgement: Judgement) -> Column:
    """The declared columns' texts as a JSON object; personal data as it would have been written."""
    texts = (
        _written(judgement, name, F.col(f"`{text_of(name)}`")).alias(name) for name in judgement.schema.payload_columns
    )
    return F.to_json(F.struct(*texts), {"ignoreNullFields": "false"})
