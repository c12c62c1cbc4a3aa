"""What a Standardized batch reads: its RAW rows, and the messages that already have a fate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from lean_ops.lake.ranges import files_of_range, iceberg_reader, read_range, spark_name
from lean_ops.standardize.first_copy import MESSAGE, with_row_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, SparkSession

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.batch import Batch
    from lean_ops.model.tables import TableName

_MAX_DAY_RANGES: Final = 32
_MAX_OPEN_DAYS: Final = 100
_EPOCH: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class RangeFiles:
    """The data files of a RAW range, by their metadata: which days they hold and how big they are."""

    days: tuple[int, ...]
    size: int

    @property
    def few_days(self) -> bool:
        """Whether a writer can keep a file open for each day."""
        return len(self.days) <= _MAX_OPEN_DAYS

    def publish_times(self) -> list[tuple[datetime, datetime]]:
        """The times that the days cover, as few half-open intervals."""
        intervals: list[tuple[int, int]] = []
        for day in self.days:
            if intervals and intervals[-1][1] == day:
                intervals[-1] = (intervals[-1][0], day + 1)
            else:
                intervals.append((day, day + 1))
        if len(intervals) > _MAX_DAY_RANGES:
            intervals = [(intervals[0][0], intervals[-1][1])]
        return [(_midnight(start), _midnight(end)) for start, end in intervals]


def _midnight(day: int) -> datetime:
    return datetime.combine(_EPOCH + timedelta(days=day), datetime.min.time(), UTC)


def range_files(lake: Lake, batch: Batch) -> RangeFiles:
    """The files of a batch's RAW range; only metadata is read."""
    files = files_of_range(lake, batch)
    return RangeFiles(
        tuple(sorted({file.partition[0] for file in files})), sum(file.file_size_in_bytes for file in files)
    )


def read_raw(spark: SparkSession, lake: Lake, batch: Batch, files: RangeFiles) -> DataFrame:
    """The RAW rows of a batch with their addresses."""
    return with_row_address(read_range(spark, lake, batch, files.size))


def within(column: str, intervals: Iterable[tuple[datetime, datetime]]) -> Column:
    """Whether a time lies in one of the intervals."""
    each = [(F.col(column) >= _literal(start)) & (F.col(column) < _literal(end)) for start, end in intervals]
    return reduce(lambda left, right: left | right, each)


def _literal(time: datetime) -> Column:
    return F.timestamp_micros(F.lit(int(time.timestamp()) * 1_000_000))


@dataclass(frozen=True, slots=True)
class Earlier:
    """Messages of the batch's days that already have a fate, and about how many rows that is to read."""

    ids: DataFrame | None
    rows: int


def earlier_messages(spark: SparkSession, lake: Lake, batch: Batch, files: RangeFiles) -> Earlier:
    """Ids of messages that are standardized or refused already.

    A copy carries the same publish_time, so only the batch's own days are looked at.
    """
    days = within("publish_time", files.publish_times())
    standardized, parse_errors = lake.names.standardized(batch.topic), lake.names.parse_errors
    rows = {name: _rows_near(lake, name, batch, files) for name in (standardized, parse_errors)}
    found: list[DataFrame] = []
    if rows[standardized]:
        found.append(iceberg_reader(spark).load(spark_name(standardized)).where(days).select(*MESSAGE))
    if rows[parse_errors]:
        refused = refused_messages(spark, lake, batch).where(F.col("batch_id") != batch.batch_id)
        found.append(refused.where(days).select(*MESSAGE))
    ids = reduce(lambda left, right: left.unionAll(right), found) if found else None
    return Earlier(ids, sum(rows.values()))


def refused_messages(spark: SparkSession, lake: Lake, batch: Batch) -> DataFrame:
    """The topic's rows in parse_errors."""
    return iceberg_reader(spark).load(spark_name(lake.names.parse_errors)).where(F.col("topic_name") == batch.topic)


def _rows_near(lake: Lake, name: TableName, batch: Batch, files: RangeFiles) -> int:
    """Rows of the files that may hold messages of the batch's days, by metadata: no join is planned for nothing."""
    from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, LessThan, Reference
    from pyiceberg.expressions.literals import literal

    intervals = files.publish_times()
    publish_time = Reference("publish_time")
    row_filter = And(
        EqualTo(term=Reference("topic_name"), value=literal(batch.topic)),
        And(
            GreaterThanOrEqual(term=publish_time, value=literal(intervals[0][0].isoformat())),
            LessThan(term=publish_time, value=literal(intervals[-1][1].isoformat())),
        ),
    )
    return sum(task.file.record_count for task in lake.load(name).scan(row_filter=row_filter).plan_files())
