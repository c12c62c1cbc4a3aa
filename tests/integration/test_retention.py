"""Old snapshots of the shared tables are forgotten, and nobody loses a row by it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from lean_ops.lake.catalog import Lake
from lean_ops.lake.local_files import local_path
from lean_ops.lake.query import QuerySession
from lean_ops.lake.retention import forget_old_snapshots
from lean_ops.lake.shared import SharedTables
from lean_ops.model.tables import PARSE_ERRORS, TableName
from lean_ops.settings import load_settings

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
MINUTES_MS = 60_000


def lake_of(home: Path) -> Lake:
    return Lake(load_settings({"home": home}, environ={}).settings)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = lake_of(tmp_path / "home")
    lake.ensure(lake.names.parse_errors, PARSE_ERRORS)
    yield lake
    lake.catalog.close()


@pytest.fixture
def shared(lake: Lake) -> SharedTables:
    return SharedTables(lake)


@pytest.fixture
def name(lake: Lake) -> TableName:
    return lake.names.parse_errors


def append(shared: SharedTables, name: TableName, count: int, start: int = 0) -> None:
    """One snapshot for each row."""
    for number in range(start, start + count):
        shared.append_rows(name, [{"topic_name": "events", "message_id": f"m{number}", "processed_ts": NOW}])


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> int:
    """More than twenty are many here, and the newest four stay: a test needs fewer commits."""
    monkeypatch.setattr("lean_ops.lake.retention._MANY", 20)
    monkeypatch.setattr("lean_ops.lake.retention._NEWEST_KEPT", 4)
    return 26


@pytest.fixture
def table(lake: Lake, shared: SharedTables, name: TableName, many: int) -> Table:
    """A table with 26 snapshots, all of them young."""
    append(shared, name, many)
    return lake.load(name)


def later() -> int:
    """A time at which all that was written is old."""
    return int(time.time() * 1000) + 10 * MINUTES_MS


def ids(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.metadata.snapshots]


def lists(table: Table) -> set[Path]:
    return {local_path(snapshot.manifest_list) for snapshot in table.metadata.snapshots}


def lists_on_disk(table: Table) -> set[Path]:
    return set((local_path(table.location()) / "metadata").glob("snap-*.avro"))


def metadata_on_disk(table: Table) -> int:
    return len(list((local_path(table.location()) / "metadata").glob("*.metadata.json")))


def messages(table: Table) -> list[str]:
    return sorted(table.scan(selected_fields=("message_id",)).to_arrow().column("message_id").to_pylist())


def expected(count: int) -> list[str]:
    return sorted(f"m{number}" for number in range(count))


def test_hundreds_of_appends_keep_few_snapshots_and_every_row(
    lake: Lake, shared: SharedTables, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lean_ops.lake.retention._PATIENCE_MS", -10 * MINUTES_MS)
    most = 0
    for start in range(0, 210, 10):
        append(shared, name, 10, start)
        most = max(most, len(ids(lake.load(name))))
    table = lake.load(name)
    assert most <= 101
    assert lists_on_disk(table) == lists(table)
    assert metadata_on_disk(table) == 21
    assert messages(table) == expected(210)
    query = QuerySession(lake.names, lake.file)
    told = query.query("SELECT message_id FROM standardized.parse_errors ORDER BY 1")
    assert [row["message_id"] for row in told] == expected(210)
    assert shared.count(name, topic_name="events") == 210


def test_the_newest_stay_and_the_lists_of_the_forgotten_are_gone(lake: Lake, name: TableName, table: Table) -> None:
    before = ids(table)
    assert forget_old_snapshots(table, later()) == 22
    after = lake.load(name)
    assert ids(after) == before[-4:]
    assert lists_on_disk(after) == lists(after)
    assert len(lists(after)) == 4
    assert messages(after) == expected(26)
    assert [entry.snapshot_id for entry in after.metadata.snapshot_log] == before[-4:]


def test_those_who_have_just_begun_to_read_an_older_snapshot_can_finish(table: Table) -> None:
    half = sorted(snapshot.timestamp_ms for snapshot in table.metadata.snapshots)[15]
    seen = table.scan(snapshot_id=ids(table)[16])
    assert forget_old_snapshots(table, half + 2 * MINUTES_MS) == 15
    assert seen.count() == 17


def test_nothing_is_forgotten_while_all_are_young(lake: Lake, name: TableName, table: Table) -> None:
    assert forget_old_snapshots(table) == 0
    assert lake.load(name).metadata_location == table.metadata_location
    assert len(lists_on_disk(table)) == 26


def test_nothing_is_forgotten_for_a_few_one_commit_takes_out_many(lake: Lake, name: TableName, table: Table) -> None:
    eleventh = sorted(snapshot.timestamp_ms for snapshot in table.metadata.snapshots)[10]
    assert forget_old_snapshots(table, eleventh + 2 * MINUTES_MS) == 0
    assert lake.load(name).metadata_location == table.metadata_location


@pytest.mark.usefixtures("many")
def test_nothing_is_forgotten_of_a_table_that_has_not_many(lake: Lake, shared: SharedTables, name: TableName) -> None:
    append(shared, name, 20)
    assert forget_old_snapshots(lake.load(name), later()) == 0
    assert len(ids(lake.load(name))) == 20


def test_an_empty_table_is_left_as_it_is(lake: Lake, name: TableName) -> None:
    assert forget_old_snapshots(lake.load(name), later()) == 0


def test_what_branches_and_tags_refer_to_stays(lake: Lake, name: TableName, table: Table) -> None:
    before = ids(table)
    table.manage_snapshots().create_branch(before[3], "wap").create_tag(before[5], "kept").commit()
    assert forget_old_snapshots(lake.load(name), later()) == 20
    after = lake.load(name)
    assert ids(after) == [before[3], before[5], *before[-4:]]
    assert {ref: point.snapshot_id for ref, point in after.metadata.refs.items()} == {
        "main": before[-1],
        "wap": before[3],
        "kept": before[5],
    }
    assert after.scan(snapshot_id=before[3]).count() == 4


def test_main_stays_where_somebody_set_it_back_to(lake: Lake, name: TableName, table: Table) -> None:
    before = ids(table)
    table.manage_snapshots().set_current_snapshot(before[10]).commit()
    assert forget_old_snapshots(lake.load(name), later()) == 21
    after = lake.load(name)
    assert ids(after) == [before[10], *before[-4:]]
    assert messages(after) == expected(11)


def test_a_branch_that_was_made_after_the_look_stays(lake: Lake, name: TableName, table: Table) -> None:
    oldest = ids(table)[0]
    lake.load(name).manage_snapshots().create_branch(oldest, "wap").commit()
    assert forget_old_snapshots(table, later()) == 0
    after = lake.load(name)
    assert after.metadata.refs["wap"].snapshot_id == oldest
    assert len(ids(after)) == 26
    assert len(lists_on_disk(after)) == 26


def test_a_commit_of_another_process_after_the_look_is_not_lost(tmp_path: Path, table: Table) -> None:
    other = lake_of(tmp_path / "home")
    append(SharedTables(other), other.names.parse_errors, 1, start=26)
    forget_old_snapshots(table, later())
    assert messages(other.load(other.names.parse_errors)) == expected(27)
    other.catalog.close()


def test_of_two_that_forget_the_same_one_does(lake: Lake, name: TableName, table: Table) -> None:
    stale = lake.load(name)
    assert forget_old_snapshots(table, later()) == 22
    assert forget_old_snapshots(stale, later()) == 0
    assert messages(lake.load(name)) == expected(26)


def test_a_race_that_is_lost_changes_nothing(
    lake: Lake, name: TableName, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faster(*_: Any) -> Any:
        raise CommitFailedException("somebody was faster")

    monkeypatch.setattr(lake.catalog, "commit_table", faster)
    assert forget_old_snapshots(table, later()) == 0
    assert lake.load(name).metadata_location == table.metadata_location
    assert len(lists_on_disk(table)) == 26


def test_a_manifest_list_that_is_gone_already_is_no_matter(table: Table) -> None:
    local_path(table.metadata.snapshots[0].manifest_list).unlink()
    assert forget_old_snapshots(table, later()) == 22
    assert len(lists_on_disk(table)) == 4


@pytest.mark.usefixtures("many")
def test_rows_whose_tidying_failed_are_not_written_so_that_trying_again_writes_them_once(
    lake: Lake, shared: SharedTables, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(shared, name, 21)

    def refused(*_: Any) -> int:
        raise PermissionError("not yours")

    with monkeypatch.context() as patch:
        patch.setattr("lean_ops.lake.retention._PATIENCE_MS", -10 * MINUTES_MS)
        patch.setattr("lean_ops.lake.retention._delete_lists", refused)
        with pytest.raises(PermissionError):
            append(shared, name, 1, start=21)
    append(shared, name, 1, start=21)
    assert messages(lake.load(name)) == expected(22)
