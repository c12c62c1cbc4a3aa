"""A whole table's files by its metadata alone: the same as pyiceberg plans, whoever wrote the manifests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyiceberg import types
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lean_ops.lake import whole_table as module
from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.catalog import Lake
from lean_ops.lake.guarded import replace_files
from lean_ops.lake.local_path import local_path
from lean_ops.lake.table_files import TableFiles, open_table, plan
from lean_ops.lake.whole_table import whole_table
from lean_ops.model.errors import LeanOpsError, TerminalError
from lean_ops.model.tables import RAW
from lean_ops.settings import load_settings


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "a home"}, environ={}).settings)
    yield lake
    lake.catalog.close()


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.ensure(lake.names.raw("orders"), RAW)


def add(table: Table, *ids: str) -> None:
    rows = pa.Table.from_pylist([{"message_id": one} for one in ids], schema=table.schema().as_arrow())
    append_files(table, write_files(table, rows), {})
    table.refresh()


def planned(table: Table) -> TableFiles:
    """What pyiceberg plans; of which files rows are deleted is left out."""
    files = plan(open_table(table.metadata_location))
    return replace(files, data=tuple(replace(file, has_deletes=False) for file in files.data))


def test_it_finds_the_files_that_pyiceberg_finds(table: Table) -> None:
    assert whole_table(table.metadata_location) == planned(table)
    for number in range(5):
        add(table, f"m{number}")
    found = whole_table(table.metadata_location)
    assert found == planned(table)
    assert len(found.data) == len({file.snapshot_id for file in found.data}) == 5


def test_files_that_were_taken_away_are_gone(table: Table) -> None:
    for number in range(3):
        add(table, f"m{number}")
    old = [task.file for task in table.scan().plan_files()][:2]
    new = write_files(table, pa.Table.from_pylist([{"message_id": "both"}], schema=table.schema().as_arrow()))
    replace_files(table, new, old)
    table.refresh()
    found = whole_table(table.metadata_location)
    assert found == planned(table)
    assert len(found.data) == 2


def test_every_type_is_read_as_the_same_one(lake: Lake) -> None:
    kinds: list[types.IcebergType] = [
        *(types.StringType(), types.IntegerType(), types.LongType(), types.FloatType(), types.DoubleType()),
        *(types.BooleanType(), types.DateType(), types.TimeType(), types.TimestampType(), types.TimestamptzType()),
        *(types.UUIDType(), types.BinaryType(), types.DecimalType(38, 9), types.FixedType(4)),
        types.ListType(element_id=101, element=types.DecimalType(5, 0)),
        types.MapType(key_id=102, key_type=types.StringType(), value_id=103, value_type=types.LongType()),
        types.StructType(types.NestedField(104, 'a "b"', types.ListType(element_id=105, element=types.DateType()))),
    ]
    schema = Schema(*(types.NestedField(number, f"c{number}", kind) for number, kind in enumerate(kinds, start=1)))
    lake.catalog.create_namespace_if_not_exists("odd")
    table = lake.catalog.create_table("odd.types", schema)
    found = whole_table(table.metadata_location)
    assert found == planned(table)
    expected = ["VARCHAR", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DATE", "TIME", "TIMESTAMP"]
    assert [column.type for column in found.columns][:9] == expected
    assert [column.type.replace(" ", "") for column in found.columns][12:16] == [
        *("DECIMAL(38,9)", "BLOB", "DECIMAL(5,0)[]", "MAP(VARCHAR,BIGINT)"),
    ]
    assert found.columns[16].type == 'STRUCT("a ""b""" DATE[])'


# manifests of other writers


def renamed(content: bytes, names: dict[str, str]) -> bytes:
    """The same Avro file with other names for its fields; their ids stay."""
    reader = fastavro.reader(BytesIO(content))
    schema: Any = reader.writer_schema
    fields = [{**field, "name": names.get(field["name"], field["name"])} for field in schema["fields"]]
    rows = [{names.get(name, name): value for name, value in row.items()} for row in reader]  # type: ignore[union-attr]
    target = BytesIO()
    plain = {key: value for key, value in schema.items() if not key.startswith("__")}
    fastavro.writer(target, {**plain, "fields": fields}, rows)
    return target.getvalue()


def manifest_list(table: Table) -> Path:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return local_path(snapshot.manifest_list)


def test_fields_are_known_by_their_ids(table: Table) -> None:
    add(table, "m1")
    before = whole_table(table.metadata_location)
    file = manifest_list(table)
    names = {"added_files_count": "added_data_files_count", "manifest_path": "path", "existing_files_count": "kept"}
    file.write_bytes(renamed(file.read_bytes(), names))
    assert whole_table(table.metadata_location) == before
    assert len(before.data) == 1


def live(content: int, file_format: str) -> Any:
    return module._LiveFile("file:/w/d/t/data/deletes", file_format, content, 1)


def test_deleted_positions_in_parquet_are_read() -> None:
    files = module._table_files((), [live(0, "PARQUET"), live(1, "parquet")])
    assert files.deletes == ("/w/d/t/data/deletes",)
    assert [file.has_deletes for file in files.data] == [True]


@pytest.mark.parametrize(("content", "file_format"), [(1, "PUFFIN"), (1, "AVRO"), (2, "PARQUET")])
def test_other_deletes_are_refused(content: int, file_format: str) -> None:
    with pytest.raises(TerminalError, match="only Spark reads here"):
        module._table_files((), [live(content, file_format)])


# damage


def with_type(kind: str) -> bytes:
    fields = f'[{{"id": 1, "name": "c", "type": {kind}}}]'
    return f'{{"schemas": [{{"schema-id": 0, "fields": {fields}}}], "current-schema-id": 0}}'.encode()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"{}", b"\xff", b'{"schemas": [], "current-schema-id": 0}'),
        *map(with_type, ("1", "{}", '{"type": "list"}', '{"type": "map", "key": null}', '{"type": "struct"}')),
    ],
)
def test_damaged_metadata_is_told_of(table: Table, content: bytes) -> None:
    local_path(table.metadata_location).write_bytes(content)
    with pytest.raises(TerminalError, match="its metadata file is damaged"):
        whole_table(table.metadata_location)


def test_metadata_that_is_gone_is_told_of(table: Table) -> None:
    local_path(table.metadata_location).unlink()
    with pytest.raises(TerminalError, match="its metadata file is missing"):
        whole_table(table.metadata_location)


def test_a_head_that_is_not_among_the_snapshots_is_damage(table: Table) -> None:
    add(table, "m1")
    file = local_path(table.metadata_location)
    file.write_text(json.dumps({**json.loads(file.read_text()), "snapshots": []}))
    with pytest.raises(TerminalError, match="its metadata file is damaged"):
        whole_table(table.metadata_location)


@pytest.mark.parametrize("of", ["list", "manifest"])
@pytest.mark.parametrize("harm", ["gone", "empty", "cut", "other"])
def test_a_damaged_manifest_is_named(table: Table, of: str, harm: str) -> None:
    add(table, "m1")
    file = manifest_list(table)
    if of == "manifest":
        (entry,) = fastavro.reader(BytesIO(file.read_bytes()))
        file = local_path(str(entry["manifest_path"]))  # type: ignore[index,call-overload]
    content = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "cut": content[: len(content) - 60], "other": b"PAR1" * 100}[harm])
    with pytest.raises(LeanOpsError) as told:
        whole_table(table.metadata_location)
    assert file.name in str(told.value)


def test_a_query_does_without_pyiceberg(table: Table) -> None:
    """It takes longer to load than most queries to answer."""
    add(table, "m1")
    script = (
        "import sys; from lean_ops.lake.query import whole_table; whole_table(sys.argv[1]);"
        " print(sorted({name.partition('.')[0] for name in sys.modules} & {'pyiceberg', 'pyarrow', 'pandas', 'numpy'}))"
    )
    command = [sys.executable, "-c", script, table.metadata_location]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"
