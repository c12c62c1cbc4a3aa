"""The Spark work of one Standardized batch: read, first copies, flatten, split, write."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from lean_ops.lake import sql
from lean_ops.lake.error_rows import completed
from lean_ops.lake.ranges import range_of, source_table
from lean_ops.lake.staging import Stage, commit_properties
from lean_ops.model.tables import BATCH_ID, ENVELOPE_NAMES, EXTRA, PARSE_ERRORS
from lean_ops.standardize.first_copy import MESSAGE, ROW, first_copies, may_be_copies, passing, with_row_address
from lean_ops.standardize.flatten import (
    ERROR_MESSAGE,
    ERROR_TYPE,
    FLAT,
    PlaceCounts,
    Report,
    flatten,
    flattened,
)
from lean_ops.standardize.repeats import rows_to_leave_out
from lean_ops.standardize.source import (
    RangeFiles,
    earlier_messages,
    range_files,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.ground import Ground
    from lean_ops.model.batch import Batch
    from lean_ops.standardize.columns import PayloadColumns
    from lean_ops.standardize.first_copy import Address

_ERROR_TYPE: Final = f"{FLAT}.`{ERROR_TYPE}`"
_ERROR_SLICE_BYTES: Final = 64 * 1024 * 1024
_SMALL_ROWS: Final = 50_000
_SMALL_BYTES: Final = 32 * 1024 * 1024
# Up to so many ids are handed out as they are; of more, first those that the batch does not hold are left out.
_MANY_EARLIER: Final = 100_000


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
    """A batch's rows as Spark will read them; nothing has run yet.

    Of a small batch the rows to leave out are known; of another one Spark finds out, by the ids of `earlier`.
    """

    spark: SparkSession
    batch: Batch
    files: RangeFiles
    raw: str
    earlier: DataFrame | None
    left_out: tuple[Address, ...] | None
    turns: Mapping[str, int] = field(default_factory=dict)

    def first_copies(self) -> DataFrame:
        """New messages that still need a look."""
        if self.left_out is not None:
            with passing(self.spark, self.left_out) as first:
                return self.spark.sql(f"SELECT {ROW} FROM {self.raw} WHERE {first}")  # noqa: S608  names are our own
        return first_copies(self.with_addresses(), self.earlier, turns=self.turns)

    @contextmanager
    def first_copies_of(self, report: Report) -> Iterator[str]:
        """What a statement in the block reads them from; each row of the batch is counted as it passes."""
        with passing(self.spark, self.left_out or (), report) as seen:
            if self.left_out is not None:
                yield f"{self.raw} WHERE {seen}"
                return
            frame = first_copies(self.with_addresses(), self.earlier, self.with_addresses(f" WHERE {seen}"), self.turns)
            with sql.viewed(frame) as view:
                yield view

    def with_addresses(self, which: str = "") -> DataFrame:
        """All rows of the batch with their addresses."""
        return self.spark.sql(with_row_address(self.raw + which))


def batch_frames(
    spark: SparkSession, lake: Lake, ground: Ground, batch: Batch, records: int, settled: bool
) -> BatchFrames:
    """The frames of a batch; `settled` says that this batch's refused messages are kept already."""
    files = range_files(lake, batch)
    raw = range_of(spark, lake, batch, files.size)
    earlier = earlier_messages(lake, ground, batch, files, with_own=settled)
    left_out, turns = None, ground.turns(batch)
    if records + earlier.rows <= _SMALL_ROWS and files.size <= _SMALL_BYTES:
        left_out = rows_to_leave_out(lake.load(source_table(lake, batch)).io, files.paths, earlier.files(), turns)
    if left_out is not None:
        return BatchFrames(spark, batch, files, raw, None, left_out)
    frames = BatchFrames(spark, batch, files, raw, earlier.messages(spark, lake), None, turns)
    if frames.earlier is not None and earlier.rows > _MANY_EARLIER:
        return replace(frames, earlier=may_be_copies(frames.earlier, frames.with_addresses(), records))
    return frames


class _Job:
    """A job over all rows of a batch, and what it sees on the way; one job only."""

    def __init__(self, frames: BatchFrames, columns: Mapping[str, str]) -> None:
        self._frames, self._columns, self._report = frames, columns, Report(frames.spark)

    @contextmanager
    def flat(self) -> Iterator[str]:
        """The flat rows as the one statement of the block reads them: all in one, so that Spark looks at it once."""
        with (
            self._frames.first_copies_of(self._report) as first,
            flattened(self._frames.spark, first, self._columns, self._report) as flat,
        ):
            yield flat

    def observed(self) -> Observed:
        """What it saw, once it has ended."""
        read = self._report.read()
        return Observed(
            records_in=read.seen,
            first_copies=read.records,
            errors=read.errors,
            error_bytes=read.error_bytes,
            last_ingestion_ts=read.last_ingestion_ts,
            places=read.places,
            refused=read.refused,
        )


def look_at_rows(spark: SparkSession, frames: BatchFrames) -> Observed:
    """See what the batch holds and write nothing."""
    job = _Job(frames, {})
    with job.flat() as flat:
        spark.sql(f"SELECT count({_ERROR_TYPE}) FROM {flat}").collect()  # noqa: S608  our own names
    return job.observed()


def write_rows(spark: SparkSession, frames: BatchFrames, stage: Stage, columns: PayloadColumns) -> Observed:
    """Append the batch's flat rows to its branch: one pass, one parse of each payload."""
    job, given = _Job(frames, columns.by_pointer), _table_columns(frames.batch, columns)
    with job.flat() as flat:
        spark.sql(
            f"INSERT INTO {stage.spark_table} WITH ({_options(frames)}) ({', '.join(map(sql.name, given))})"  # noqa: S608  names are quoted
            f" SELECT {', '.join(given.values())} FROM {flat} WHERE {_ERROR_TYPE} IS NULL"
        )
    return job.observed()


def _options(frames: BatchFrames) -> str:
    """How rows are written: a file open for each of many days would be too much, so each day's rows come together."""
    how = ("fanout-enabled", "true") if frames.files.few_days else ("distribution-mode", "hash")
    properties = ((f"snapshot-property.{key}", value) for key, value in commit_properties(frames.batch).items())
    return ", ".join(f"{sql.text(key)} = {sql.text(value)}" for key, value in (how, *properties))


def _table_columns(batch: Batch, columns: PayloadColumns) -> dict[str, str]:
    """What goes into each column of the table: NULL into any that somebody added by hand."""
    leaves = (*columns.by_pointer.values(), EXTRA)
    return {
        **dict.fromkeys(sorted(columns.all_names), "CAST(NULL AS string)"),
        **{name: name for name in ENVELOPE_NAMES},
        **{leaf: f"{FLAT}.{sql.name(leaf)}" for leaf in leaves},
        BATCH_ID: sql.text(batch.batch_id),
    }


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
    first = frames.first_copies()
    missing = first.select(*MESSAGE).join(staged.select(*MESSAGE), on=list(MESSAGE), how="left_anti")
    candidates = first.join(F.broadcast(missing), on=list(MESSAGE), how="left_semi")
    refused = (
        flatten(candidates, {})
        .where(F.col(_ERROR_TYPE).isNotNull())
        .select(
            *("message_id", "idempotency_key", "topic_name", "ingestion_ts"),
            F.unix_micros("publish_time").alias("publish_time"),
            F.col("json_payload").alias("raw_payload"),
            F.col(_ERROR_TYPE).alias("error_type"),
            F.col(f"{FLAT}.`{ERROR_MESSAGE}`").alias("error_message"),
        )
    )
    slices = observed.error_bytes // _ERROR_SLICE_BYTES + 1
    for part in range(slices):
        yield refused.where(F.pmod(F.xxhash64("message_id"), F.lit(slices)) == part).toArrow()
