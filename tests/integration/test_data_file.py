"""Data files of ours are those that pyiceberg would have written, down to what a manifest says of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import write_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, WriteTask
from pyiceberg.types import ListType, StringType

from lean_ops.lake.append import _parts, append_files, write_files
from lean_ops.lake.catalog import Lake
from lean_ops.lake.local_files import local_path
from lean_ops.settings import load_settings

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    lake.ensure_shared()
    yield lake
    lake.catalog.close()


def raw(lake: Lake) -> tuple[Table, list[dict[str, Any]]]:
    """Payloads of two days, one of them NULL, one longer than bounds are."""
    rows = [
        {
            "topic_name": "t",
            "message_id": f"m{number}",
            "publish_time": NOW + timedelta(days=number % 2),
            "ingestion_ts": number,
            "json_payload": None if number == 3 else "é" * 30 * number,
        }
        for number in range(8)
    ]
    return lake.ensure_raw("t"), rows


def refused(lake: Lake) -> tuple[Table, list[dict[str, Any]]]:
    """Lists, an empty one and none among them."""
    lists = (["a", "b"], [], None, [None, "c"])
    rows = [{"topic_name": "t", "error_fields": fields, "processed_ts": NOW} for fields in lists]
    return lake.load(lake.names.curated_errors), rows


def booked(lake: Lake) -> tuple[Table, list[dict[str, Any]]]:
    """Numbers, a time and booleans of two topics."""
    rows = [
        {"topic_name": topic, "records_in": 2**60, "variance": variance, "balanced": True, "recorded_at": NOW}
        for topic in ("t", "u / v")
        for variance in (0.0, -1.5, None)
    ]
    return lake.load(lake.names.ops("reconciliation_log")), rows


def grown(lake: Lake) -> tuple[Table, list[dict[str, Any]]]:
    """A table that got columns by hand, with names that Avro does not allow."""
    table, rows = booked(lake)
    with table.update_schema() as update:
        update.add_column("größe in %", StringType()).add_column(
            "9 lists", ListType(element_id=-1, element_type=StringType())
        )
    rows[0] |= {"größe in %": "x", "9 lists": ["y"]}
    return table.refresh(), rows


def as_pyiceberg_writes(table: Table, rows: pa.Table) -> list[DataFile]:
    tasks = (
        WriteTask(uuid.uuid4(), number, table.schema(), part.to_batches(), partition_key=key)
        for number, (key, part) in enumerate(_parts(table, rows))
    )
    return list(write_file(table.io, table.metadata, tasks))


def told(file: DataFile) -> dict[str, Any]:
    """What a manifest says of a file but its place."""
    names = ("content", "file_format", "record_count", "file_size_in_bytes", "column_sizes", "value_counts")
    more = ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds", "split_offsets", "sort_order_id")
    said = {name: getattr(file, name) for name in (*names, *more, "key_metadata", "equality_ids")}
    return {**said, "partition": tuple(file.partition[place] for place in range(len(file.partition)))}


@pytest.mark.parametrize("example", [raw, refused, booked, grown])
def test_a_file_is_the_one_that_pyiceberg_would_write(lake: Lake, example: Any) -> None:
    table, rows = example(lake)
    given = pa.Table.from_pylist(rows, schema=table.schema().as_arrow())
    ours, theirs = write_files(table, given), as_pyiceberg_writes(table, given)
    assert [told(file) for file in ours] == [told(file) for file in theirs]
    for one, other in zip(ours, theirs, strict=True):
        schemas = [pq.read_schema(local_path(file.file_path)) for file in (one, other)]
        assert schemas[0].equals(schemas[1], check_metadata=True)
        assert pq.read_table(local_path(one.file_path)) == pq.read_table(local_path(other.file_path))


@pytest.mark.parametrize("example", [raw, refused, booked, grown])
def test_rows_come_back_as_they_were_given(lake: Lake, example: Any) -> None:
    table, rows = example(lake)
    given = pa.Table.from_pylist(rows, schema=table.schema().as_arrow())
    append_files(table, write_files(table, given), {})
    back = lake.load(_name(lake, table)).scan().to_arrow().cast(given.schema)
    assert sorted(map(repr, back.to_pylist())) == sorted(map(repr, given.to_pylist()))


def test_rows_of_an_older_file_get_the_table_s_types_and_null_for_columns_that_it_lacks(lake: Lake) -> None:
    table, _ = grown(lake)
    old = pa.table({"topic_name": pa.array(["t"], pa.string()), "records_in": pa.array([1], pa.int32())})
    old = old.append_column("recorded_at", pa.array([NOW], pa.timestamp("us", tz="UTC")))
    append_files(table, write_files(table, old), {})
    (row,) = lake.load(_name(lake, table)).scan().to_arrow().to_pylist()
    assert {name: value for name, value in row.items() if value is not None} == {
        "topic_name": "t",
        "records_in": 1,
        "recorded_at": NOW,
    }


def test_many_bytes_are_written_by_several_threads_in_the_order_of_their_partitions(lake: Lake) -> None:
    table = lake.ensure_raw("t")
    rows = [
        {
            "topic_name": "t",
            "message_id": f"m{day}",
            "publish_time": NOW + timedelta(days=day),
            "json_payload": "x" * 2**20,
        }
        for day in range(6)
    ]
    files = write_files(table, pa.Table.from_pylist(rows, schema=table.schema().as_arrow()))
    first = (NOW - datetime(1970, 1, 1, tzinfo=UTC)).days
    assert [(file.partition[0], file.record_count) for file in files] == [(first + day, 1) for day in range(6)]


def _name(lake: Lake, table: Table) -> Any:
    database, name = table.name()
    return next(
        each
        for each in (lake.names.raw("t"), lake.names.curated_errors, lake.names.ops("reconciliation_log"))
        if (each.database, each.table) == (database, name)
    )
