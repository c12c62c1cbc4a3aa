"""Files that may hold rows, found without working out what is left of the filter for each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan

from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.catalog import Lake
from lean_ops.lake.file_plan import FilePlanner
from lean_ops.lake.shared import SharedTables
from lean_ops.model.tables import PARSE_ERRORS, RAW
from lean_ops.settings import load_settings

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    yield lake
    lake.catalog.close()


@pytest.mark.parametrize(("first", "last"), [(-100, 100), (0, 1), (5, 30), (25, 26), (60, 61), (13, 12)])
def test_it_finds_the_files_that_a_scan_finds(lake: Lake, first: int, last: int) -> None:
    table = lake.ensure(lake.names.raw("orders"), RAW)
    for hours in ((0, 1), (5, 26), (29,), (50, 51)):
        rows = [{"message_id": f"m{hour}", "publish_time": NOON + timedelta(hours=hour)} for hour in hours]
        append_files(table, write_files(table, pa.Table.from_pylist(rows, schema=table.schema().as_arrow())), {})
        table.refresh()
    start, end = ((NOON + timedelta(hours=hour)).isoformat() for hour in (first, last))
    near = And(GreaterThanOrEqual("publish_time", start), LessThan("publish_time", end))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    planned = FilePlanner(table.metadata, table.io, near).plan_files(snapshot.manifests(table.io))
    scanned = table.scan(row_filter=near).plan_files()
    assert sorted(task.file.file_path for task in planned) == sorted(task.file.file_path for task in scanned)
    assert {task.residual for task in planned} <= {near}


def test_files_of_shared_tables_tell_their_times_and_nothing_of_other_columns(lake: Lake) -> None:
    lake.ensure_shared()
    name = lake.names.parse_errors
    rows = [{"topic_name": "orders", "message_id": "m1", "publish_time": NOON, "processed_ts": NOON}]
    SharedTables(lake).append_rows(name, rows)
    table = lake.load(name)
    (task,) = table.scan().plan_files()
    told = {table.schema().find_column_name(field_id) for field_id in task.file.lower_bounds}
    assert told == {column.name for column in PARSE_ERRORS.columns if column.name in {"publish_time", "processed_ts"}}
    assert task.file.record_count == 1
