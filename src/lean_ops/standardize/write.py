"""The Spark work of one Standardized batch: read, first copies, flatten, split, write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from lean_ops.lake.error_rows import completed
from lean_ops.lake.staging import Stage, commit_properties
from lean_ops.model.tables import BATCH_ID, ENVELOPE_NAMES, EXTRA, PARSE_ERRORS
from lean_ops.standardize.first_copy import MESSAGE, first_copies
from lean_ops.standardize.flatten import (
    CARRIED,
    ERROR_MESSAGE,
    ERROR_TYPE,
    PLACES,
    REFUSED_PAYLOAD,
    PlaceCounts,
    flatten,
    merge_reports,
)
from lean_ops.standardize.source import (
    RangeFiles,
    earlier_messages,
    range_files,
    read_raw,
    refused_messages,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.batch import Batch
    from lean_ops.standardize.columns import PayloadColumns

_ERROR_SLICE_BYTES: Final = 64 * 1024 * 1024
_SMALL_ROWS: Final = 50_000
_SMALL_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Observed:
    """What the job saw while it wrote; true only once the write has returned."""

    records_in: int = 0
    first_copies: int = 0
    errors: int = 0
    error_bytes: int = 0
    last_ingestion_ts: int | None = None
    places: PlaceCounts = field(default_factory=dict)
    refused: tuple[dict[str, Any], ...] = ()

    @property
    def carries_all_errors(self) -> bool:
        """Whether every refused row came along with the counts."""
        return len(self.refused) == self.errors


@dataclass(frozen=True, slots=True)
class BatchFrames:
    """A batch's rows as Spark will read them; nothing has run yet."""

    batch: Batch
    files: RangeFiles
    raw: DataFrame
    earlier: DataFrame | None
    settled: DataFrame | None
    small: bool

    def first_copies(self, raw: DataFrame) -> DataFrame:
        """New messages that still need a look: first copies less those this batch has already refused for good."""
        first = first_copies(raw, self.earlier, self.small)
        return (
            first if self.settled is None else first.join(F.broadcast(self.settled), on=list(MESSAGE), how="left_anti")
        )


def batch_frames(spark: SparkSession, lake: Lake, batch: Batch, records: int, settled: bool) -> BatchFrames:
    """The frames of a batch; `settled` says that parse_errors already holds this batch's refused messages."""
    files = range_files(lake, batch)
    earlier = earlier_messages(spark, lake, batch, files)
    own_errors = refused_messages(spark, lake, batch).where(F.col("batch_id") == batch.batch_id).select(*MESSAGE)
    return BatchFrames(
        batch,
        files,
        read_raw(spark, lake, batch, files),
        earlier.ids,
        own_errors if settled else None,
        small=records + earlier.rows <= _SMALL_ROWS and files.size <= _SMALL_BYTES,
    )


def write_rows(frames: BatchFrames, stage: Stage, columns: PayloadColumns) -> Observed:
    """Append the batch's flat rows to its branch: one pass, one parse of each payload."""
    seen, flattened = Observation(), Observation()
    raw = frames.raw.observe(seen, F.count(F.lit(1)).alias("rows"), F.max("ingestion_ts").alias("last"))
    flat = flatten(frames.first_copies(raw), columns.by_pointer).observe(
        flattened,
        F.count(F.lit(1)).alias("rows"),
        F.count(ERROR_TYPE).alias("errors"),
        F.sum(F.octet_length(REFUSED_PAYLOAD)).alias("error_bytes"),
        F.collect_list(PLACES).alias("places"),
        F.collect_list(F.when(F.col(CARRIED), F.struct(*_error_columns()))).alias("refused"),
    )
    rows = flat.where(F.col(ERROR_TYPE).isNull()).select(*_table_columns(frames.batch, columns))
    writer = rows.writeTo(stage.spark_table)
    for key, value in commit_properties(frames.batch).items():
        writer = writer.option(f"snapshot-property.{key}", value)
    if frames.files.few_days:
        writer = writer.option("fanout-enabled", "true")
    else:  # a file open for each of so many days would be too much: bring each day's rows together first
        writer = writer.option("distribution-mode", "hash")
    writer.append()
    return _observed(seen.get, flattened.get)


def _table_columns(batch: Batch, columns: PayloadColumns) -> list[Any]:
    """Every column of the table: ours, the leaves', and NULL for any that somebody added by hand."""
    ours = {*ENVELOPE_NAMES, EXTRA, *columns.by_pointer.values()}
    foreign = sorted(columns.all_names - ours - {BATCH_ID})
    return [
        *sorted(ours),
        F.lit(batch.batch_id).alias(BATCH_ID),
        *(F.lit(None).cast("string").alias(name) for name in foreign),
    ]


def _observed(seen: dict[str, Any], flattened: dict[str, Any]) -> Observed:
    return Observed(
        records_in=seen["rows"],
        first_copies=flattened["rows"],
        errors=flattened["errors"],
        error_bytes=flattened["error_bytes"] or 0,
        last_ingestion_ts=seen["last"],
        places=merge_reports(flattened["places"]),
        refused=tuple(row.asDict() for row in flattened["refused"]),
    )


def _error_columns() -> list[Column]:
    """A refused row as it leaves the job."""
    return [
        *(F.col(name) for name in ("message_id", "idempotency_key", "topic_name", "ingestion_ts")),
        F.unix_micros("publish_time").alias("publish_time"),
        F.col(REFUSED_PAYLOAD).alias("raw_payload"),
        F.col(ERROR_TYPE).alias("error_type"),
        F.col(ERROR_MESSAGE).alias("error_message"),
    ]


def refused_rows(
    spark: SparkSession, frames: BatchFrames, stage: Stage, observed: Observed, now: datetime
) -> Iterator[pa.Table]:
    """The batch's parse_errors rows, in parts that fit in memory."""
    import pyarrow as pa

    carried = observed.carries_all_errors
    parts = [pa.Table.from_pylist(observed.refused)] if carried else _error_job(spark, frames, stage, observed)
    return (completed(rows, PARSE_ERRORS, frames.batch, now) for rows in parts)


def _error_job(spark: SparkSession, frames: BatchFrames, stage: Stage, observed: Observed) -> Iterator[pa.Table]:
    """The refused are the first copies that the branch does not have; only those are parsed a second time."""
    batch, days = frames.batch, within("publish_time", frames.files.publish_times())
    staged = spark.table(stage.spark_table).where(F.col(BATCH_ID) == batch.batch_id).where(days)
    first = frames.first_copies(frames.raw)
    missing = first.select(*MESSAGE).join(staged.select(*MESSAGE), on=list(MESSAGE), how="left_anti")
    candidates = first.join(F.broadcast(missing), on=list(MESSAGE), how="left_semi")
    refused = flatten(candidates, {}).where(F.col(ERROR_TYPE).isNotNull()).select(*_error_columns())
    slices = observed.error_bytes // _ERROR_SLICE_BYTES + 1
    for part in range(slices):
        yield refused.where(F.pmod(F.xxhash64("message_id"), F.lit(slices)) == part).toArrow()
