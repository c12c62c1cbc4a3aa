"""Reading what a batch covers: the rows that a table got between two snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog import CATALOG_NAME

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyspark.sql import DataFrameReader, SparkSession

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.batch import Batch
    from lean_ops.model.tables import TableName

_MIN_SPLIT: Final = 4 * 1024 * 1024
_MAX_SPLIT: Final = 128 * 1024 * 1024
# Iceberg counts a small file as 4 MB of work, so that a hundred tiny files would be a hundred tasks.
_FILE_OPEN_COST: Final = 128 * 1024


def source_table(lake: Lake, batch: Batch) -> TableName:
    """The table that a batch reads."""
    return lake.names.of_zone(batch.zone.source, batch.topic)


def files_of_range(lake: Lake, batch: Batch) -> list[DataFile]:
    """The data files of a batch's range; only metadata is read."""
    table = lake.load(source_table(lake, batch))
    if batch.from_snapshot is None:
        return [task.file for task in table.scan(snapshot_id=batch.to_snapshot).plan_files()]
    scan = table.incremental_append_scan(
        from_snapshot_id_exclusive=batch.from_snapshot, to_snapshot_id_inclusive=batch.to_snapshot
    )
    return [task.file for task in scan.plan_files()]


def range_of(spark: SparkSession, lake: Lake, batch: Batch, size: int) -> str:
    """What a statement reads a batch's rows from, split by their size in bytes so that every core has work.

    Said within the statement, a range is looked at once; a frame of it would be planned by itself before.
    """
    version, ends = "", {}
    if batch.from_snapshot is None:
        version = f" VERSION AS OF {batch.to_snapshot}"
    else:
        ends = {"start-snapshot-id": batch.from_snapshot, "end-snapshot-id": batch.to_snapshot}
    options = {"file-open-cost": _FILE_OPEN_COST, "split-size": _split_size(spark, size), **ends}
    said = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"{spark_name(source_table(lake, batch))}{version} WITH ({said})"


def _split_size(spark: SparkSession, size: int) -> int:
    if size <= _MIN_SPLIT:
        return _MIN_SPLIT
    cores = int(spark.sparkContext.defaultParallelism)
    return max(_MIN_SPLIT, min(_MAX_SPLIT, size // (2 * cores) + 1))


def iceberg_reader(spark: SparkSession) -> DataFrameReader:
    """A reader of Iceberg tables that packs small files together."""
    return spark.read.format("iceberg").option("file-open-cost", str(_FILE_OPEN_COST))


def spark_name(name: TableName) -> str:
    """A table as Spark addresses it."""
    return f"{CATALOG_NAME}.{name.database}.`{name.table}`"
