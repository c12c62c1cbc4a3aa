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
    from lean_ops.lake.shared import SharedTables
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


def earlier_messages(
    spark: SparkSession, lake: Lake, shared: SharedTables, batch: Batch, files: RangeFiles, *, with_own: bool
) -> Earlier:
    """Ids of messages that are standardized or refused already, `with_own` also those that this batch has refused.

    A copy carries the same publish_time, so only the batch's own days are looked at.
    """
    days = within("publish_time", files.publish_times())
    standardized, parse_errors = lake.names.standardized(batch.topic), lake.names.parse_errors
    rows_there, rows_refused = _rows_near(lake, standardized, files), _refused_near(shared, parse_errors, batch, files)
    found: list[DataFrame] = []
    if rows_there:
        found.append(iceberg_reader(spark).load(spark_name(standardized)).where(days).select(*MESSAGE))
    if rows_refused:
        refused = iceberg_reader(spark).load(spark_name(parse_errors)).where(F.col("topic_name") == batch.topic)
        refused = refused if with_own else refused.where(F.col("batch_id") != batch.batch_id)
        found.append(refused.where(days).select(*MESSAGE))
    ids = reduce(lambda left, right: left.unionAll(right), found) if found else None
    return Earlier(ids, rows_there + rows_refused)


def _rows_near(lake: Lake, name: TableName, files: RangeFiles) -> int:
    """Rows of the files that may hold messages of the batch's days, by metadata: no join is planned for nothing."""
    from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan, Reference
    from pyiceberg.expressions.literals import literal

    start, end = _span(files)
    publish_time = Reference("publish_time")
    row_filter = And(
        GreaterThanOrEqual(term=publish_time, value=literal(start.isoformat())),
        LessThan(term=publish_time, value=literal(end.isoformat())),
    )
    return sum(task.file.record_count for task in lake.load(name).scan(row_filter=row_filter).plan_files())


def _refused_near(shared: SharedTables, name: TableName, batch: Batch, files: RangeFiles) -> int:
    """The same for the topic's refused messages."""
    start, end = (round(time.timestamp()) * 1_000_000 for time in _span(files))
    return sum(file.rows for file in shared.files_of_topic(name, batch.topic) if file.may_hold(start, end))


def _span(files: RangeFiles) -> tuple[datetime, datetime]:
    intervals = files.publish_times()
    return intervals[0][0], intervals[-1][1]
