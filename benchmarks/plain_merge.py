"""A MERGE by plain Spark into tables of format v2 and v3: what deletion vectors would change.

pyiceberg writes no v3 tables yet, so the product can't either; the statement alone can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.floor import session_for, spark_table
from benchmarks.rounds import Contender, Facts
from lean_ops.curate.merge import JOIN_BY_BUCKET
from lean_ops.model.tables import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from benchmarks.home import Home

VERSIONS: Final = (2, 3)
_DATABASE: Final = "floor_db"
_KEY: Final = "idempotency_key"
_BUCKETS: Final = 16


def name_of(rows: int, version: int) -> str:
    """The contender's name."""
    return f"MERGE alone into {rows / 1e6:g}M rows, format v{version}"


class PlainMerge:
    """Copies of Curated tables in both formats, and a MERGE into them."""

    def __init__(self, home: Home, batch: int) -> None:
        self._home = home
        self._batch = batch

    def copy(self, curated: TableName, rows: int) -> None:
        """A Curated table once in each format, in buckets of the key."""
        self._home.services.lake.catalog.create_namespace_if_not_exists(_DATABASE)
        for version in VERSIONS:
            properties = f"'format-version'='{version}', 'write.merge.mode'='merge-on-read'"
            self._session(rows).sql(
                f"CREATE TABLE {spark_table(_table(rows, version))} USING iceberg"  # noqa: S608  our names
                f" PARTITIONED BY (bucket({_BUCKETS}, {_KEY})) TBLPROPERTIES ({properties})"
                f" AS SELECT * FROM {spark_table(curated)}"
            )

    def contenders(self, sizes: Sequence[int]) -> Iterator[Contender]:
        """Both formats of each size."""
        for rows in sizes:
            for version in VERSIONS:
                yield Contender(name_of(rows, version), self._merge(rows, version))

    def _merge(self, rows: int, version: int) -> Callable[[int], Facts]:
        def work(number: int) -> Facts:
            session, table = self._session(rows), spark_table(_table(rows, version))
            self._source(session, table, rows, number)
            names = [f"`{name}`" for name in session.table(table).columns]
            updates = ", ".join(f"t.{name} = s.{name}" for name in names)
            values = ", ".join(f"s.{name}" for name in names)
            session.sql(
                f"MERGE INTO {table} AS t USING plain_merge_source AS s ON t.{_KEY} = s.{_KEY}"  # noqa: S608  our names
                f" WHEN MATCHED AND s.publish_time > t.publish_time THEN UPDATE SET {updates}"
                f" WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({values})"
            )
            return {}

        return work

    def _source(self, session: SparkSession, table: str, rows: int, number: int) -> None:
        """As many rows as the batch has: two thirds new keys, nine in thirty of recent keys, the rest of any key."""
        new, recent = self._batch * 2 // 3, self._batch * 3 // 10
        spread = f"pmod(xxhash64(id, {number}), {rows})"
        key = (
            f"CASE WHEN id < {new} THEN concat('new-{number}-', id)"
            f" WHEN id < {new + recent} THEN concat('order-', {rows - 1} - (id - {new}))"
            f" ELSE concat('order-', {spread}) END"
        )
        values = {_KEY: key, "publish_time": f"timestamp'2030-01-01 00:00:00' + make_dt_interval(0, {number + 1})"}
        expressions = (
            f"CAST({values.get(field.name, 'NULL')} AS {field.dataType.simpleString()}) AS `{field.name}`"
            for field in session.table(table).schema.fields
        )
        source = session.range(0, self._batch, 1, 1).selectExpr(*expressions).dropDuplicates([_KEY])
        source.createOrReplaceTempView("plain_merge_source")

    def _session(self, rows: int) -> SparkSession:
        session = session_for(self._home, rows)
        for key, value in JOIN_BY_BUCKET.items():
            session.conf.set(key, value)
        return session


def _table(rows: int, version: int) -> TableName:
    return TableName(_DATABASE, f"merged_{rows}_v{version}")
