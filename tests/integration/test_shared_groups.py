"""What callers who wait together for a shared table share: one snapshot, one file per topic, and an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.test_shared_tables import wait_until

from lean_ops.lake.catalog import Lake
from lean_ops.lake.local_files import local_path
from lean_ops.lake.shared import SharedTables
from lean_ops.model.errors import TerminalError
from lean_ops.model.tables import PARSE_ERRORS, TableName
from lean_ops.settings import load_settings

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
MEGABYTE = 1024 * 1024

Call = Callable[[], Any]
Together = Callable[[list[Call]], list[Future[Any]]]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    lake.ensure(lake.names.parse_errors, PARSE_ERRORS)
    yield lake
    lake.catalog.close()


@pytest.fixture
def shared(lake: Lake) -> SharedTables:
    return SharedTables(lake)


@pytest.fixture
def name(lake: Lake) -> TableName:
    return lake.names.parse_errors


@pytest.fixture
def together(shared: SharedTables, name: TableName) -> Iterator[Together]:
    """Makes all calls wait for the table's turn before the first gets it; what became of each."""
    with ThreadPoolExecutor(32) as pool:

        def call(calls: list[Call]) -> list[Future[Any]]:
            with shared._turns[name]:
                futures = [pool.submit(one) for one in calls]
                wait_until(lambda: len(shared._waiting[name]) == len(calls))
            return futures

        yield call


def part(lake: Lake, topic: str, *messages: str, payload: str | None = None) -> pa.Table:
    rows = [
        {"topic_name": topic, "message_id": message, "raw_payload": payload, "processed_ts": NOW}
        for message in messages
    ]
    return pa.Table.from_pylist(rows, schema=lake.load(lake.names.parse_errors).schema().as_arrow())


def written(lake: Lake) -> list[tuple[str, str]]:
    table = lake.load(lake.names.parse_errors)
    rows = table.scan(selected_fields=("topic_name", "message_id")).to_arrow().to_pylist()
    return sorted((row["topic_name"], row["message_id"]) for row in rows)


def topics_of_files(lake: Lake) -> list[str]:
    """The topic of each data file of the newest snapshot."""
    plan = lake.load(lake.names.parse_errors).scan().plan_files()
    return sorted(str(task.file.partition[0]) for task in plan)


def commits(lake: Lake) -> int:
    return len(lake.load(lake.names.parse_errors).snapshots())


def files_on_disk(lake: Lake) -> list[Path]:
    return list(local_path(lake.load(lake.names.parse_errors).location()).rglob("*.parquet"))


def test_rows_of_all_who_wait_land_in_one_snapshot_with_one_file_for_each_topic(
    lake: Lake, shared: SharedTables, name: TableName, together: Together
) -> None:
    def call(number: int) -> Call:
        return lambda: shared.append(name, [part(lake, f"t{number % 3}", f"m{number}a", f"m{number}b")])

    assert [future.result(30) for future in together([call(number) for number in range(12)])] == [2] * 12
    assert commits(lake) == 1
    assert topics_of_files(lake) == ["t0", "t1", "t2"]
    assert written(lake) == sorted((f"t{number % 3}", f"m{number}{row}") for number in range(12) for row in "ab")


def test_append_tells_the_number_of_rows_of_its_caller_alone(
    lake: Lake, shared: SharedTables, name: TableName, together: Together
) -> None:
    calls: list[Call] = [
        lambda: shared.append(name, [part(lake, "a", "1"), part(lake, "b", "2", "3"), part(lake, "c")]),
        lambda: shared.append(name, (part(lake, "a", str(number)) for number in range(5))),
    ]
    assert [future.result(30) for future in together(calls)] == [3, 5]
    assert shared.append(name, []) == 0
    assert shared.append(name, [part(lake, "a")]) == 0
    assert len(written(lake)) == 8


def test_few_rows_wait_in_memory_and_many_are_written_before_the_turn(
    lake: Lake, shared: SharedTables, name: TableName
) -> None:
    with ThreadPoolExecutor(2) as pool:
        with shared._turns[name]:
            few = pool.submit(shared.append, name, [part(lake, "few", "m")])
            many = pool.submit(shared.append, name, [part(lake, "many", "m", payload="x" * 5 * MEGABYTE)])
            wait_until(lambda: len(shared._waiting[name]) == 2)
            assert {file.parent.name for file in files_on_disk(lake)} == {"topic_name=many"}
            assert commits(lake) == 0
        assert (few.result(30), many.result(30)) == (1, 1)
    assert commits(lake) == 1
    assert written(lake) == [("few", "m"), ("many", "m")]


def test_of_many_parts_no_more_than_some_megabytes_are_in_memory(
    lake: Lake, shared: SharedTables, name: TableName
) -> None:
    on_disk = []

    def parts() -> Iterator[pa.Table]:
        for number in range(12):
            on_disk.append(len(files_on_disk(lake)))
            yield part(lake, "t", f"m{number:02}", payload="x" * MEGABYTE)

    assert shared.append(name, parts()) == 12
    assert on_disk == sorted(on_disk)
    assert on_disk[-1] == 2, "each five parts or so became a file while the next ones came"
    assert commits(lake) == 1
    assert written(lake) == [("t", f"m{number:02}") for number in range(12)]


def test_an_error_of_the_commit_reaches_everyone_who_waited_for_it(
    lake: Lake, shared: SharedTables, name: TableName, together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any) -> int:
        raise OSError("no space left")

    calls: list[Call] = [lambda: shared.append(name, [part(lake, "t", "m")])] * 6
    with monkeypatch.context() as patch:
        patch.setattr("lean_ops.lake.shared.append_files", no_space)
        errors = [future.exception(30) for future in together(calls)]
    assert [str(error) for error in errors] == ["no space left"] * 6
    assert commits(lake) == 0
    assert shared.append(name, [part(lake, "t", "later")]) == 1
    assert written(lake) == [("t", "later")]


def test_a_part_that_does_not_fit_the_table_fails_its_own_caller_and_nobody_else(
    lake: Lake, shared: SharedTables, name: TableName, together: Together
) -> None:
    with pytest.raises((ValueError, pa.ArrowInvalid)):
        shared.append(name, [pa.table({"nonsense": [1]})])
    with pytest.raises(TerminalError, match="no such column"):
        shared.append_rows(name, [{"topic": "misspelt"}])
    (good,) = together([lambda: shared.append(name, [part(lake, "t", "m")])])
    assert good.result(30) == 1
    assert written(lake) == [("t", "m")]


def test_rows_without_a_topic_have_a_file_of_their_own(
    lake: Lake, shared: SharedTables, name: TableName, together: Together
) -> None:
    calls: list[Call] = [
        lambda: shared.append_rows(name, [{"message_id": "m", "processed_ts": NOW}]),
        lambda: shared.append_rows(name, [{"topic_name": "None", "message_id": "m", "processed_ts": NOW}]),
    ]
    for future in together(calls):
        future.result(30)
    assert topics_of_files(lake) == ["None", "None"]
    assert commits(lake) == 1
    assert shared.count(name, topic_name="None") == 1


def test_where_many_come_and_go_a_commit_waits_for_them(
    lake: Lake, shared: SharedTables, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def others_come(seconds: float) -> None:
        waited.append(seconds)
        if seconds:
            pool.submit(shared.append, name, [part(lake, "late", "m")])
            wait_until(lambda: len(shared._waiting[name]) == 2)

    monkeypatch.setattr("lean_ops.lake.shared.time", SimpleNamespace(sleep=others_come))
    with ThreadPoolExecutor(1) as pool:
        with shared.gathering():
            assert shared.append(name, [part(lake, "early", "m")]) == 1
        assert shared.append(name, [part(lake, "alone", "m")]) == 1
    assert commits(lake) == 2
    assert written(lake) == [("alone", "m"), ("early", "m"), ("late", "m")]
    assert [seconds > 0 for seconds in waited] == [True, False]
