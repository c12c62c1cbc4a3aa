"""Reading what a batch covers: the rows that a table got between two snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog import CATALOG_NAME

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

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


def read_range(spark: SparkSession, lake: Lake, batch: Batch, size: int) -> DataFrame:
    """The rows of a batch's range, split by their size in bytes so that every core has work."""
    cores = spark.sparkContext.defaultParallelism
    split = max(_MIN_SPLIT, min(_MAX_SPLIT, size // (2 * cores) + 1))
    reader = iceberg_reader(spark).option("split-size", str(split))
    if batch.from_snapshot is None:
        reader = reader.option("versionAsOf", str(batch.to_snapshot))
    else:
        reader = reader.option("start-snapshot-id", str(batch.from_snapshot)).option(
            "end-snapshot-id", str(batch.to_snapshot)
        )
    return reader.load(spark_name(source_table(lake, batch)))


def iceberg_reader(spark: SparkSession) -> DataFrameReader:
    """A reader of Iceberg tables that packs small files together."""
    return spark.read.format("iceberg").option("file-open-cost", str(_FILE_OPEN_COST))


def spark_name(name: TableName) -> str:
    """A table as Spark addresses it."""
    return f"{CATALOG_NAME}.{name.database}.`{name.table}`"
