"""The one committer of the shared tables, on real tables.

As a script (`python test_shared_tables.py HOME TOPIC APPENDS`) it appends rows once a line comes on stdin.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from lean_ops.lake.catalog import Lake
from lean_ops.lake.shared import SharedTables
from lean_ops.model.errors import TransientError
from lean_ops.model.tables import PARSE_ERRORS, TableName
from lean_ops.settings import load_settings

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
HOSTILE = [
    "plain",
    "it's",
    'say "hi"',
    "'; DROP TABLE parse_errors; --",
    "' OR '1' = '1",
    "%",
    "_",
    "*",
    "back\\slash",
    "line\nbreak\ttab",
    "ünï-çødé 漢字 🎈",
    "\u202eright to left",
    " leading and trailing ",
    "",
    "None",
    "NULL",
    "a/b=c&d#e?f",
    "x" * 5000,
]


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


def error(topic: str, message_id: str, batch_id: str | None = "b1", **values: Any) -> dict[str, Any]:
    return {"topic_name": topic, "message_id": message_id, "batch_id": batch_id, "processed_ts": NOW, **values}


def part(table: Table, *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow())


def written(lake: Lake, name: TableName) -> list[tuple[str, str]]:
    rows = lake.load(name).scan(selected_fields=("topic_name", "message_id")).to_arrow().to_pylist()
    return sorted((row["topic_name"], row["message_id"]) for row in rows)


def commits(lake: Lake, name: TableName) -> int:
    return len(lake.load(name).snapshots())


def test_rows_come_back_as_they_were_appended_and_what_a_row_lacks_is_null(
    lake: Lake, shared: SharedTables, name: TableName
) -> None:
    given = error("events", "m1", raw_payload="{ 'ü' ", ingestion_ts=2**62, publish_time=NOW)
    shared.append_rows(name, [given, {"topic_name": "events"}])
    columns = [column.name for column in PARSE_ERRORS.columns]
    rows = sorted(lake.load(name).scan().to_arrow().to_pylist(), key=lambda row: str(row["message_id"]))
    assert rows == [{column: row.get(column) for column in columns} for row in ({"topic_name": "events"}, given)]


def test_several_parts_are_one_snapshot(lake: Lake, shared: SharedTables, name: TableName) -> None:
    table = lake.load(name)
    parts = (part(table, *(error(f"t{topic}", f"m{number}") for topic in range(3))) for number in range(4))
    shared.append(name, parts)
    assert commits(lake, name) == 1
    assert written(lake, name) == [(f"t{topic}", f"m{number}") for topic in range(3) for number in range(4)]


def test_nothing_to_append_commits_nothing(lake: Lake, shared: SharedTables, name: TableName) -> None:
    shared.append_rows(name, [])
    shared.append(name, [])
    shared.append(name, [part(lake.load(name))])
    assert commits(lake, name) == 0


def test_parts_that_break_off_leave_nothing_and_hold_nobody_up(
    lake: Lake, shared: SharedTables, name: TableName
) -> None:
    def parts() -> Iterator[pa.Table]:
        yield part(lake.load(name), error("events", "m1"))
        raise ConnectionError("the source is gone")

    with pytest.raises(ConnectionError):
        shared.append(name, parts())
    assert commits(lake, name) == 0
    shared.append_rows(name, [error("events", "m2")])
    assert written(lake, name) == [("events", "m2")]


def test_rows_of_sixteen_threads_are_all_there(lake: Lake, shared: SharedTables, name: TableName) -> None:
    threads, each = 16, 2
    start = Barrier(threads)

    def work(number: int) -> None:
        start.wait(30)
        for turn in range(each):
            shared.append_rows(name, [error(f"t{number:02}", f"m{turn}-{row}") for row in range(3)])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    assert written(lake, name) == [
        (f"t{number:02}", f"m{turn}-{row}") for number in range(threads) for turn in range(each) for row in range(3)
    ]
    assert commits(lake, name) <= threads * each


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_commit_that_fails_fails_everybody_who_waited_for_it_and_nobody_else(
    lake: Lake, shared: SharedTables, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, sizes = shared._commit, list[int]()

    def scripted(name: TableName, group: list[Any]) -> None:
        sizes.append(len(group))
        if len(sizes) == 1:  # the first one's commit takes until all others wait behind it
            wait_until(lambda: len(shared._waiting[name]) == 7)
        if len(sizes) == 2:
            raise OSError("no space left")
        commit(name, group)

    def attempt(number: int) -> str | None:
        try:
            shared.append_rows(name, [error(f"t{number}", "m")])
        except OSError as failure:
            return str(failure)
        return None

    monkeypatch.setattr(shared, "_commit", scripted)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(attempt, 0)
        wait_until(lambda: sizes == [1])
        others = list(pool.map(attempt, range(1, 8)))
    assert first.result() is None
    assert others == ["no space left"] * 7
    assert sizes == [1, 7]
    assert written(lake, name) == [("t0", "m")]
    assert attempt(9) is None
    assert len(written(lake, name)) == 2


def test_a_commit_that_loses_against_other_writers_is_tried_again(
    lake: Lake, shared: SharedTables, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, lost = lake.catalog.commit_table, iter([True, True, False])

    def commit_table(*arguments: Any) -> Any:
        if next(lost):
            raise CommitFailedException("somebody was faster")
        return commit(*arguments)

    monkeypatch.setattr(lake.catalog, "commit_table", commit_table)
    shared.append_rows(name, [error("events", "m1")])
    assert written(lake, name) == [("events", "m1")]
    assert commits(lake, name) == 1


def test_commits_that_lose_without_end_are_given_up_with_nothing_written(
    lake: Lake, shared: SharedTables, name: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commit_table(*_: Any) -> Any:
        raise CommitFailedException("somebody was faster")

    with monkeypatch.context() as patch:
        patch.setattr(lake.catalog, "commit_table", commit_table)
        patch.setattr(time, "sleep", lambda _: None)
        with pytest.raises(TransientError, match="commits in a row lost"):
            shared.append_rows(name, [error("events", "m1")])
    assert commits(lake, name) == 0
    shared.append_rows(name, [error("events", "m2")])
    assert written(lake, name) == [("events", "m2")]


def test_counts_and_values_are_exact_for_hostile_texts(lake: Lake, shared: SharedTables, name: TableName) -> None:
    rows = [
        error(text[:50], f"m-{text}", batch_id=text, error_type=text)
        for number, text in enumerate(HOSTILE)
        for _ in range(number + 1)
    ]
    shared.append_rows(name, rows)
    assert commits(lake, name) == 1
    for number, text in enumerate(HOSTILE):
        assert shared.rows_of_batch(name, text[:50], text) == number + 1, text
        assert shared.count(name, message_id=f"m-{text}", error_type=text) == number + 1, text
        assert shared.values(name, "error_type", batch_id=text) == {text}
        assert shared.rows_of_batch(name, text[:50], text + " ") == 0
        assert shared.values(name, "error_type", batch_id=text + " ") == set()
    assert shared.values(name, "batch_id") == set(HOSTILE)
    assert shared.count(name) == len(rows)


def test_nulls_match_nothing_and_are_no_value(shared: SharedTables, name: TableName) -> None:
    shared.append_rows(name, [error("events", "m1", None), error("events", "m2", "b1")])
    assert shared.values(name, "batch_id", topic_name="events") == {"b1"}
    assert shared.rows_of_batch(name, "events", "None") == 0
    assert shared.rows_of_batch(name, "events", "") == 0


def test_rows_of_a_batch_are_those_of_one_topic_over_all_commits(shared: SharedTables, name: TableName) -> None:
    for number in range(3):
        shared.append_rows(name, [error("events", f"m{number}"), error("events", "x", "b2"), error("orders", "m0")])
    assert shared.rows_of_batch(name, "events", "b1") == 3
    assert shared.rows_of_batch(name, "orders", "b1") == 3
    assert shared.rows_of_batch(name, "orders", "b2") == 0


# more than one process

Starter = Callable[[int], list[subprocess.Popen[str]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts processes that append to one home; all are ended at the end."""
    processes: list[subprocess.Popen[str]] = []

    def start_all(count: int) -> list[subprocess.Popen[str]]:
        for number in range(count):
            command = [sys.executable, __file__, str(tmp_path / "home"), f"t{number}", "6"]
            pipe = subprocess.PIPE
            processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        return processes

    yield start_all
    for process in processes:
        process.kill()
        process.communicate(timeout=30)


def finish(processes: list[subprocess.Popen[str]]) -> None:
    """Let all go at once; all must end well."""
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [(process.communicate(timeout=120)[1], process.returncode) for process in processes]
    assert [code for _, code in ends] == [0] * len(ends), "\n".join(said for said, _ in ends)


def test_rows_of_two_processes_at_once_are_all_there(lake: Lake, name: TableName, start: Starter) -> None:
    lake.ensure_shared()
    finish(start(2))
    assert written(lake, name) == [(f"t{number}", f"m{turn}") for number in range(2) for turn in range(6)]


def test_processes_that_make_one_home_at_once_all_find_it_made(tmp_path: Path, start: Starter) -> None:
    finish(start(3))
    lake = lake_of(tmp_path / "home")
    assert len(written(lake, lake.names.parse_errors)) == 18
    lake.catalog.close()


def append_on_command(home: str, topic: str, appends: str) -> None:
    """Make the home if it is not there, and append rows one by one."""
    import_module("pyiceberg.catalog.sql")  # before the start, so that all start together
    lake = lake_of(Path(home))
    print("ready", flush=True)
    sys.stdin.readline()
    lake.ensure_shared()
    shared = SharedTables(lake)
    for turn in range(int(appends)):
        shared.append_rows(lake.names.parse_errors, [error(topic, f"m{turn}")])


if __name__ == "__main__":
    append_on_command(*sys.argv[1:])
