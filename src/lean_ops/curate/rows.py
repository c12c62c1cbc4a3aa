"""Standardized rows as Curated sees them: texts found, typed, judged, protected; split into rows and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from lean_ops.curate import sql
from lean_ops.curate.casts import cast_text, not_blank
from lean_ops.curate.protect import protected
from lean_ops.curate.rules import rules_of, text_of
from lean_ops.curate.source import source_columns
from lean_ops.model.tables import BATCH_ID, ENVELOPE_NAMES, FIRST_SEEN, LAST_UPDATED, SCHEMA_VERSION

if TYPE_CHECKING:
    from datetime import datetime

    from pyiceberg.schema import Schema as TableSchema
    from pyspark.sql import DataFrame

    from lean_ops.curate.protect import PiiKey
    from lean_ops.model.batch import Batch
    from lean_ops.model.schema import Schema

KEY: Final = "idempotency_key"
REFUSED: Final = "refused row"  # like the texts: a space keeps it apart from every column's name
_PLACE: Final = "place among versions"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a batch's rows are judged by: the schema, the key of personal data, and the time of processing."""

    batch: Batch
    schema: Schema
    key: PiiKey | None
    now: datetime


def judged(standardized: DataFrame, table: TableSchema, judgement: Judgement) -> DataFrame:
    """Envelope, typed payload columns, and what `errors` must get of a row that breaks a rule (NULL of a good one)."""
    columns = judgement.schema.payload_columns
    texts = (
        _named(_text(judgement.schema, name, source), text_of(name))
        for name, source in source_columns(judgement.schema, table).items()
    )
    typed = (
        _named(cast_text(sql.name(text_of(name)), column.type, column.time_format), name)
        for name, column in columns.items()
    )
    found = standardized.selectExpr(*ENVELOPE_NAMES, *texts).selectExpr("*", *typed)
    return found.selectExpr(*ENVELOPE_NAMES, *map(sql.name, columns), _named(_refused(judgement), REFUSED))


def _named(expression: str, name: str) -> str:
    return f"{expression} AS {sql.name(name)}"


def _text(schema: Schema, name: str, source: str) -> str:
    """A column's text: blank is nothing, and in place of nothing stands the default."""
    text, default = not_blank(source), schema.payload_columns[name].default
    return text if default is None else f"coalesce({text}, {sql.text(default)})"


def _refused(judgement: Judgement) -> str:
    """The row of `errors` for a row that breaks a rule; for a good one, and most are, nothing but NULL is made."""
    rules = rules_of(judgement.schema)
    reasons = f"filter(array({', '.join(rule.reason for rule in rules)}), r -> r IS NOT NULL)"
    error = sql.let("found", reasons, lambda found: _error_row(judgement, found))
    return sql.when(sql.either(rule.broken for rule in rules), error)


def _error_row(judgement: Judgement, reasons: str) -> str:
    """A refused row as it leaves the job: all its reasons, and the declared columns as far as they may be shown."""
    return sql.struct(
        message_id="message_id",
        idempotency_key=KEY,
        topic_name="topic_name",
        ingestion_ts="ingestion_ts",
        publish_time="unix_micros(publish_time)",
        raw_record=_record(judgement),
        error_type=f"array_min({reasons}).error_type",
        error_fields=f"array_distinct({reasons}.field)",
        error_message=f"array_join({reasons}.message, '; ')",
        schema_version=sql.text(judgement.batch.schema_version),
    )


def _record(judgement: Judgement) -> str:
    """The declared columns' texts as a JSON object; personal data as it would have been written."""
    texts = {name: _written(judgement, name, sql.name(text_of(name))) for name in judgement.schema.payload_columns}
    return f"to_json({sql.struct(**texts)}, map('ignoreNullFields', 'false'))"


def curated_rows(rows: DataFrame, judgement: Judgement) -> DataFrame:
    """The rows that keep every rule, as the Curated table has them."""
    schema, batch = judgement.schema, judgement.batch
    payload = (
        _named(f"CAST({_written(judgement, name, sql.name(name))} AS {sql.spark_type(column.type)})", name)
        for name, column in schema.payload_columns.items()
    )
    now = f"timestamp_micros({sql.microseconds(judgement.now)}L)"
    audit = {FIRST_SEEN: now, LAST_UPDATED: now}
    audit |= {SCHEMA_VERSION: sql.text(batch.schema_version), BATCH_ID: sql.text(batch.batch_id)}
    return rows.where(f"{sql.name(REFUSED)} IS NULL").selectExpr(
        *ENVELOPE_NAMES, *payload, *(_named(expression, name) for name, expression in audit.items())
    )


def _written(judgement: Judgement, name: str, value: str) -> str:
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
