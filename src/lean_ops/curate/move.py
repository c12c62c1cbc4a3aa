"""A Curated table written anew, in another layout or in fewer files: all live rows, on a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from lean_ops.lake.catalog import CATALOG_NAME
from lean_ops.lake.one_file import is_little, write_in_one_file
from lean_ops.lake.ranges import iceberg_reader, spark_name
from lean_ops.lake.spark import prepare_for
from lean_ops.model.curated_layout import LAYOUT_KEY, ROW_ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.layout import LayoutMove

_MOST_PARTITIONS: Final = 64


def write_anew(
    lake: Lake, session: Callable[[], SparkSession], move: LayoutMove, rows: int, properties: Mapping[str, str]
) -> None:
    """Everything that main has in place of everything on the branch; Spark is asked for only if that is not little."""
    if not move.buckets and is_little(lake.load(move.stage.name)):
        write_in_one_file(lake, move, properties)
    else:
        _write_by_spark(session(), move, rows, properties)


def _write_by_spark(spark: SparkSession, move: LayoutMove, rows: int, properties: Mapping[str, str]) -> None:
    """The same, by one statement and one commit with these properties."""
    prepare_for(spark, rows)
    live = iceberg_reader(spark).option("versionAsOf", str(move.stage.base)).load(spark_name(move.stage.name))
    writer = _clustered(live, move.buckets).writeTo(move.stage.spark_table).option("output-spec-id", str(move.new_spec))
    # The table would ask for an order by its present partitions, which takes these apart.
    writer = writer.option("use-table-distribution-and-ordering", "false")
    for key, value in properties.items():
        writer = writer.option(f"snapshot-property.{key}", value)
    writer.overwrite(F.lit(True))


def _clustered(live: DataFrame, buckets: int) -> DataFrame:
    """The rows bucket by bucket; without buckets, which are few rows, in one piece."""
    if not buckets:
        return live.coalesce(1).sortWithinPartitions(ROW_ORDER)
    bucket = F.expr(f"{CATALOG_NAME}.system.bucket({buckets}, {LAYOUT_KEY})")
    return live.repartition(min(buckets, _MOST_PARTITIONS), bucket).sortWithinPartitions(bucket, ROW_ORDER)
