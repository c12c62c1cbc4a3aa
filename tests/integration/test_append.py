"""Rows written as data files: each partition's in files of its own, each row once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.catalog import Lake
from lean_ops.model.partitioning import PartitionField, Transform
from lean_ops.model.tables import Column, ColumnType, TableName, TableShape
from lean_ops.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table

COLUMNS = (Column("name"), Column("at", ColumnType.TIMESTAMP), Column("number", ColumnType.BIGINT))
DAY = 86_400_000_000
BY_DAY, BY_NAME = PartitionField(Transform.DAY, "at"), PartitionField(Transform.IDENTITY, "name")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(load_settings({"home": tmp_path / "home"}, {}).settings)


def table_of(lake: Lake, *partitions: PartitionField) -> Table:
    return lake.ensure(TableName("db", "t"), TableShape(COLUMNS, partitions))


def rows_of(table: Table, *rows: tuple[str | None, int | None, int]) -> pa.Table:
    """Rows in two chunks, as a flush has them."""
    schema = table.schema().as_arrow()
    halves = (rows[: len(rows) // 2], rows[len(rows) // 2 :])
    return pa.concat_tables(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in half], schema=schema)
        for half in halves
    )


def written(table: Table, rows: pa.Table) -> list[tuple[tuple[Any, ...], int]]:
    """Partition and number of rows of each file, after they were committed and read back."""
    files = write_files(table, rows)
    append_files(table, files, {})
    read = table.refresh().scan().to_arrow()
    assert sorted(read.to_pylist(), key=lambda row: row["number"]) == rows.to_pylist()
    partitions = [tuple(file.partition[position] for position in range(len(file.partition))) for file in files]
    return sorted(zip(partitions, (file.record_count for file in files), strict=True), key=str)


def test_a_table_without_partitions_gets_one_file(lake: Lake) -> None:
    table = table_of(lake)
    assert written(table, rows_of(table, ("a", 0, 1), ("b", DAY, 2), (None, None, 3))) == [((), 3)]


def test_rows_of_one_day_lie_in_one_file(lake: Lake) -> None:
    table = table_of(lake, BY_DAY)
    assert written(table, rows_of(table, ("a", 5, 1), ("b", DAY - 1, 2), ("c", 0, 3))) == [((0,), 3)]


def test_each_day_has_a_file_of_its_own_and_so_have_rows_without_one(lake: Lake) -> None:
    table = table_of(lake, BY_DAY)
    rows = rows_of(table, ("a", 3 * DAY, 1), ("b", 0, 2), ("c", None, 3), ("d", 3 * DAY + 1, 4))
    assert written(table, rows) == [((0,), 1), ((3,), 2), ((None,), 1)]


def test_two_partition_fields_make_a_file_for_each_pair(lake: Lake) -> None:
    table = table_of(lake, BY_NAME, BY_DAY)
    rows = rows_of(table, ("a", 0, 1), ("b", 0, 2), ("a", DAY, 3), (None, 0, 4), ("a", 1, 5), (None, None, 6))
    assert written(table, rows) == [
        (("a", 0), 2),
        (("a", 1), 1),
        (("b", 0), 1),
        ((None, 0), 1),
        ((None, None), 1),
    ]


@pytest.mark.parametrize("times", [1, 500], ids=["in few runs", "mixed"])
def test_rows_of_a_partition_stay_in_their_order_however_they_are_mixed(lake: Lake, times: int) -> None:
    table = table_of(lake, BY_NAME, BY_DAY)
    some = (("a", 0), ("b", 0), ("a", 1), ("a", DAY), (None, 0), ("b", None))
    rows = rows_of(table, *((*row, number) for number, row in enumerate(some * times)))
    assert written(table, rows) == [
        (("a", 0), 2 * times),
        (("a", 1), times),
        (("b", 0), times),
        (("b", None), times),
        ((None, 0), times),
    ]
    for task in table.scan(row_filter="name = 'a'").plan_files():
        numbers = pq.read_table(task.file.file_path.removeprefix("file://")).column("number").to_pylist()
        assert numbers == sorted(numbers)


def test_no_rows_make_no_file(lake: Lake) -> None:
    table = table_of(lake, BY_DAY)
    assert write_files(table, rows_of(table)) == []
