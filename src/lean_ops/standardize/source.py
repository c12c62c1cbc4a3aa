"""What a Standardized batch reads: its RAW rows, and the messages that already have a fate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from lean_ops.lake.file_rows import read_columns
from lean_ops.lake.ranges import files_of_range, iceberg_reader, spark_name
from lean_ops.lake.snapshots import history_of
from lean_ops.lake.topic_files import topic_file
from lean_ops.standardize.first_copy import MESSAGE
from lean_ops.standardize.repeats import EarlierFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.table import Table
    from pyspark.sql import Column, DataFrame, SparkSession

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.ground import Ground, Refused
    from lean_ops.lake.topic_files import TopicFile
    from lean_ops.model.batch import Batch

_MAX_DAY_RANGES: Final = 32
_MAX_OPEN_DAYS: Final = 100
_EPOCH: Final = date(1970, 1, 1)
_EPOCH_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RangeFiles:
    """The data files of a RAW range, by their metadata: which days they hold and how big they are."""

    days: tuple[int, ...]
    size: int
    paths: tuple[str, ...]
    known_times: tuple[datetime, datetime] | None

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

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The half-open interval that all publish times lie in; where files don't tell, that of whole days."""
        return self.known_times or (_midnight(self.days[0]), _midnight(self.days[-1] + 1))


def _midnight(day: int) -> datetime:
    return datetime.combine(_EPOCH + timedelta(days=day), datetime.min.time(), UTC)


def range_files(lake: Lake, batch: Batch) -> RangeFiles:
    """The files of a batch's RAW range; only metadata is read."""
    files = files_of_range(lake, batch)
    days = tuple(sorted({file.partition[0] for file in files}))
    time_id = lake.load(lake.names.raw(batch.topic)).schema().find_field("publish_time").field_id
    bounds = [topic_file(file, time_id) for file in files]
    size, paths = sum(file.file_size_in_bytes for file in files), tuple(file.file_path for file in files)
    return RangeFiles(days, size, paths, _times_of(bounds))


def _times_of(files: Iterable[TopicFile]) -> tuple[datetime, datetime] | None:
    """From the first publish time to just after the last, if every file says."""
    firsts, lasts = zip(*((file.first, file.last) for file in files), strict=True)
    if None in firsts or None in lasts:
        return None
    return _EPOCH_TIME + timedelta(microseconds=min(firsts)), _EPOCH_TIME + timedelta(microseconds=max(lasts) + 1)


def within(column: str, intervals: Iterable[tuple[datetime, datetime]]) -> Column:
    """Whether a time lies in one of the intervals."""
    each = [(F.col(column) >= _literal(start)) & (F.col(column) < _literal(end)) for start, end in intervals]
    return reduce(lambda left, right: left | right, each)


def _literal(time: datetime) -> Column:
    return F.timestamp_micros(F.lit(int(time.timestamp()) * 1_000_000))


@dataclass(frozen=True, slots=True)
class Earlier:
    """Where messages of the batch's days may be that already have a fate, by metadata; about how many rows that is.

    A copy carries the same publish_time, so only the batch's own days are looked at. `snapshot` is the Standardized
    one that the batch comes after.
    """

    batch: Batch
    days: list[tuple[datetime, datetime]]
    snapshot: int | None
    standardized: tuple[TopicFile, ...]
    refused: Refused
    rows: int

    def files(self) -> list[EarlierFiles]:
        """The files with their ids."""
        return [EarlierFiles(self.standardized), EarlierFiles(self.refused.files, self.refused.without_batch)]

    def messages(self, spark: SparkSession, lake: Lake) -> DataFrame | None:
        """Their ids (MESSAGE) as a frame; None if there are none, so that no join is planned for nothing."""
        days = within("publish_time", self.days)
        found: list[DataFrame] = []
        if self.standardized:
            reader = iceberg_reader(spark).option("versionAsOf", str(self.snapshot))
            standardized = reader.load(spark_name(lake.names.standardized(self.batch.topic)))
            found.append(standardized.where(days).select(*MESSAGE))
        if self.refused.files:
            found.append(self._refused(spark, lake).where(days).select(*MESSAGE))
        return reduce(lambda left, right: left.unionAll(right), found) if found else None

    def _refused(self, spark: SparkSession, lake: Lake) -> DataFrame:
        if self.refused.set_aside:
            import pyarrow as pa

            io = lake.load(lake.names.parse_errors).io
            parts = [read_columns(io, file.path, MESSAGE).select(list(MESSAGE)) for file in self.refused.files]
            return spark.createDataFrame(pa.concat_tables(parts))
        refused = iceberg_reader(spark).load(spark_name(lake.names.parse_errors))
        refused = refused.where(F.col("topic_name") == self.batch.topic)
        other = self.refused.without_batch
        return refused if other is None else refused.where(F.col("batch_id") != other)


def earlier_messages(lake: Lake, ground: Ground, batch: Batch, files: RangeFiles, *, with_own: bool) -> Earlier:
    """Where messages are that are standardized or refused already; only metadata is read."""
    days, (start, end) = files.publish_times(), files.span
    table = lake.load(lake.names.standardized(batch.topic))
    snapshot = ground.head(history_of(table))
    there = _files_between(table, snapshot, start, end)
    micros = [(time - _EPOCH_TIME) // timedelta(microseconds=1) for time in (start, end)]
    refused = ground.refused(lake.names.parse_errors, batch, with_own=with_own)
    refused = replace(refused, files=tuple(file for file in refused.files if file.may_hold(*micros)))
    rows = sum(file.rows for file in (*there, *refused.files))
    return Earlier(batch, days, snapshot, tuple(there), refused, rows)


def _files_between(table: Table, snapshot: int | None, start: datetime, end: datetime) -> list[TopicFile]:
    from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan, Reference
    from pyiceberg.expressions.literals import literal

    from lean_ops.lake.file_plan import FilePlanner, manifests_with_files

    publish_time = Reference("publish_time")
    row_filter = And(
        GreaterThanOrEqual(term=publish_time, value=literal(start.isoformat())),
        LessThan(term=publish_time, value=literal(end.isoformat())),
    )
    time_id = table.schema().find_field("publish_time").field_id
    there = table.snapshot_by_id(snapshot) if snapshot is not None else None
    tasks = FilePlanner(table.metadata, table.io, row_filter).plan_files(manifests_with_files(there, table.io))
    return [topic_file(task.file, time_id) for task in tasks]
