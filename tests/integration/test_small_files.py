"""Small files of a shared table put together: the same rows in fewer files, whoever else writes meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from lean_ops.lake import guarded, small_files
from lean_ops.lake.catalog import Lake
from lean_ops.lake.once import manifest_files
from lean_ops.lake.restate import restate
from lean_ops.lake.shared import SharedTables
from lean_ops.lake.small_files import ENOUGH_TO_SPARE, Gathered, gather_small_files
from lean_ops.lake.table_files import open_table, plan
from lean_ops.model.tables import TableName
from lean_ops.settings import load_settings

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
HOSTILE = 'it\'s "a" 漢字; DROP TABLE x --'


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    for name, shape in lake.names.shared.items():
        lake.ensure(name, shape)
    yield lake
    lake.catalog.close()


@pytest.fixture
def name(lake: Lake) -> TableName:
    return lake.names.curated_errors


@pytest.fixture
def shared(lake: Lake) -> SharedTables:
    return SharedTables(lake)


def error(topic: str | None, number: int, **more: Any) -> dict[str, Any]:
    fields = None if number % 3 else [f"field {number}", HOSTILE]
    known = {"message_id": f"m{number}", "error_fields": fields, "raw_record": HOSTILE, "batch_id": f"b{number}"}
    return {"topic_name": topic, **known, "publish_time": NOW + timedelta(microseconds=number), **more}


def rows_of(lake: Lake, name: TableName) -> list[dict[str, Any]]:
    return sorted(lake.load(name).scan().to_arrow().to_pylist(), key=repr)


def files_by_topic(table: Table) -> Counter[str]:
    return Counter(str(file.partition[0]) for _, file in manifest_files(table))


def data_folder(table: Table) -> set[Path]:
    return set(Path(table.location().removeprefix("file://"), "data").rglob("*.parquet"))


def test_each_topic_has_one_file_afterwards_and_every_row_is_as_it_was(
    lake: Lake, name: TableName, shared: SharedTables
) -> None:
    for number in range(5):
        shared.append_rows(name, [error(topic, number) for topic in ("a", HOSTILE, None)])
    before, head = rows_of(lake, name), lake.load(name).current_snapshot()
    found = gather_small_files(lake.load(name), enough=12)
    table = lake.load(name)
    assert found is not None
    assert (found.files_before, found.files_after) == (15, 3)
    assert found.bytes_after < found.bytes_before
    assert files_by_topic(table) == {"a": 1, HOSTILE: 1, "None": 1}
    assert rows_of(lake, name) == before
    assert len(before) == 15
    counts = table.current_snapshot().summary.additional_properties  # type: ignore[union-attr]
    assert (counts["total-data-files"], counts["total-records"]) == ("3", "15")
    assert head is not None
    assert sorted(table.scan(snapshot_id=head.snapshot_id).to_arrow().to_pylist(), key=repr) == before


def test_bounds_of_times_and_the_readers_plan_stay_right(lake: Lake, name: TableName, shared: SharedTables) -> None:
    for number in range(4):
        shared.append_rows(name, [error("a", number)])
    assert gather_small_files(lake.load(name), enough=3) is not None
    (file,) = SharedTables(lake).files_of_topic(name, "a")
    micros = round(NOW.timestamp() * 1_000_000)
    assert (file.rows, file.first, file.last) == (4, micros, micros + 3)
    assert shared.rows_of_batch(name, "a", "b2") == 1
    assert len(plan(open_table(lake.load(name).metadata_location)).data) == 1


def test_while_few_can_be_spared_nothing_is_done(lake: Lake, name: TableName, shared: SharedTables) -> None:
    for number in range(5):
        shared.append_rows(name, [error("a", number), error("b", number)])
    location = lake.load(name).metadata_location
    assert gather_small_files(lake.load(name), enough=9) is None
    assert gather_small_files(lake.load(name)) is None
    assert ENOUGH_TO_SPARE > 9
    assert lake.load(name).metadata_location == location


def test_an_empty_table_is_left_alone(lake: Lake, name: TableName) -> None:
    assert gather_small_files(lake.load(name), enough=0) is None


def test_a_file_with_many_rows_beside_few_is_not_written_again(
    lake: Lake, name: TableName, shared: SharedTables
) -> None:
    shared.append_rows(name, [error("a", number) for number in range(20)])
    large = {file.file_path for _, file in manifest_files(lake.load(name))}
    for number in range(4):
        shared.append_rows(name, [error("a", 100 + number)])
    assert gather_small_files(lake.load(name), enough=1) is not None
    assert sorted(file.record_count for _, file in manifest_files(lake.load(name))) == [4, 20]
    assert large <= {file.file_path for _, file in manifest_files(lake.load(name))}
    shared.append_rows(name, [error("a", 200), error("b", 200)])
    assert gather_small_files(lake.load(name), enough=1) is not None
    assert files_by_topic(lake.load(name)) == {"a": 1, "b": 1}


def test_however_many_batches_there_were_files_are_few_and_rows_are_written_again_a_few_times(
    lake: Lake, name: TableName, shared: SharedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    write = small_files.write_files

    def counted(table: Table, rows: Any) -> Any:
        written.append(rows.num_rows)
        return write(table, rows)

    monkeypatch.setattr(small_files, "write_files", counted)
    most = 0
    for number in range(60):
        shared.append_rows(name, [error("a", number)])
        gather_small_files(lake.load(name), enough=1)
        most = max(most, files_by_topic(lake.load(name))["a"])
    assert len(rows_of(lake, name)) == 60
    assert most <= 4
    assert sum(written) <= 60 * 6


def test_what_would_be_large_is_left_alone_and_the_rest_is_read_in_portions(
    lake: Lake, name: TableName, shared: SharedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        shared.append_rows(name, [error(topic, number) for topic in ("a", "b", "c")])
    sizes = [file.file_size_in_bytes for _, file in manifest_files(lake.load(name))]
    monkeypatch.setattr(small_files, "_MOST_BYTES", 2 * max(sizes))
    monkeypatch.setattr(small_files, "_BYTES_AT_A_TIME", 1)
    before = rows_of(lake, name)
    assert gather_small_files(lake.load(name), enough=3) is not None
    assert files_by_topic(lake.load(name)) == {"a": 2, "b": 2, "c": 2}
    assert rows_of(lake, name) == before


def in_the_midst(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen after the new files are written and before their commit, once."""
    commit, acts = guarded._commit, [act]

    def late(*arguments: Any) -> None:
        if acts:
            acts.pop()()
        commit(*arguments)

    monkeypatch.setattr(guarded, "_commit", late)


def test_who_appends_meanwhile_loses_nothing(
    lake: Lake, name: TableName, shared: SharedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        shared.append_rows(name, [error("a", number)])
    in_the_midst(monkeypatch, lambda: SharedTables(lake).append_rows(name, [error("a", 4)]))
    assert gather_small_files(lake.load(name), enough=3) is not None
    assert [row["message_id"] for row in rows_of(lake, name)] == [f"m{number}" for number in range(5)]
    assert files_by_topic(lake.load(name)) == {"a": 2}


def test_what_was_restated_meanwhile_is_not_taken_back_and_nothing_stays(
    lake: Lake, name: TableName, shared: SharedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        shared.append_rows(name, [error("a", number, replay_status="NEW")])
    change = {"m2": {"replay_status": "FIXED"}}
    in_the_midst(monkeypatch, lambda: restate(lake, name, "a", "message_id", change))
    assert gather_small_files(lake.load(name), enough=3) is None
    assert [row["replay_status"] for row in rows_of(lake, name)] == ["NEW", "NEW", "FIXED", "NEW"]
    assert len(data_folder(lake.load(name))) == 5  # four, and the one that was restated


def test_a_missing_file_is_told_of_and_nothing_is_changed(lake: Lake, name: TableName, shared: SharedTables) -> None:
    for number in range(4):
        shared.append_rows(name, [error("a", number)])
    missing = min(data_folder(lake.load(name)))
    missing.unlink()
    location = lake.load(name).metadata_location
    with pytest.raises(Exception, match=missing.name):
        gather_small_files(lake.load(name), enough=3)
    assert lake.load(name).metadata_location == location


def test_a_manifest_that_only_tells_what_was_taken_away_goes_with_the_next_change(
    lake: Lake, name: TableName, shared: SharedTables
) -> None:
    for round_ in range(2):
        for number in range(3):
            shared.append_rows(name, [error("a", 10 * round_ + number)])
        assert gather_small_files(lake.load(name), enough=2) is not None
    table = lake.load(name)
    head = table.current_snapshot()
    assert head is not None
    told = [
        (one.added_files_count, one.existing_files_count, one.deleted_files_count) for one in head.manifests(table.io)
    ]
    assert sorted(told) == [(0, 0, 4), (1, 0, 0)]


def test_files_are_taken_out_by_many_manifests_at_once(lake: Lake, name: TableName, shared: SharedTables) -> None:
    topics = [f"t{number:02}" for number in range(12)]
    for number in range(20):  # fewer than are merged
        shared.append_rows(name, [error(topic, number) for topic in topics])
    assert shared.gather_small_files(name) is None
    found = gather_small_files(lake.load(name), enough=100)
    assert found is not None
    assert (found.files_before, found.files_after) == (240, 12)
    assert isinstance(found, Gathered)
    assert Counter(row["topic_name"] for row in rows_of(lake, name)) == dict.fromkeys(topics, 20)
