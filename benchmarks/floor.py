"""The floor: plain Spark jobs that write the same tables from rows that need no more work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.catalog import CATALOG_NAME
from lean_ops.lake.spark import prepare_for
from lean_ops.model.tables import TableName

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.home import Home

_DATABASE: Final = "floor_db"


def session_for(home: Home, rows: int) -> SparkSession:
    """The session that a hop would use, set up as for a batch of so many rows."""
    session = home.services.sessions.mine()
    prepare_for(session, rows)
    return session


def empty_copy(home: Home, like: TableName, name: str) -> TableName:
    """An empty table with another's columns, partitions and properties."""
    lake, made = home.services.lake, TableName(_DATABASE, name)
    model: Table = lake.load(like)
    lake.catalog.create_namespace_if_not_exists(_DATABASE)
    lake.catalog.create_table(
        (made.database, made.table), model.schema(), partition_spec=model.spec(), properties=_own(model)
    )
    return made


def _own(model: Table) -> dict[str, str]:
    """A table's properties without what the product keeps there for itself."""
    kept = {key: value for key, value in model.properties.items() if not key.startswith("lean-ops.")}
    return {**kept, "format-version": str(model.format_version)}


def append(rows: DataFrame, name: TableName, **options: Any) -> None:
    """Append rows to a table by Spark, one file open for each partition as the product has it."""
    writer = rows.writeTo(spark_table(name)).option("fanout-enabled", "true")
    for key, value in options.items():
        writer = writer.option(key, value)
    writer.append()


def spark_table(name: TableName) -> str:
    """A table's name in SQL."""
    return f"`{CATALOG_NAME}`.`{name.database}`.`{name.table}`"
