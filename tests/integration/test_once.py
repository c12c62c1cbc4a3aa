"""Rows that are brought more than once, and at once, into a shared table."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table
from tests.integration.ingest_home import START

from lean_ops.lake import guarded, manifest_tiers, once
from lean_ops.lake.catalog import Lake
from lean_ops.lake.once import OnceTable, files_since
from lean_ops.lake.restate import restate
from lean_ops.lake.shared import SharedTables
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.model.tables import DLQ_ERRORS
from lean_ops.settings import load_settings


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(load_settings({"home": tmp_path / "home"}, {}).settings)
    lake.ensure(lake.names.dlq_errors, DLQ_ERRORS)
    return lake


@pytest.fixture
def table(lake: Lake) -> OnceTable:
    return OnceTable(lake, lake.names.dlq_errors, "archive_path")


def row(key: str, topic: str = "events", **more: Any) -> dict[str, Any]:
    return {"topic_name": topic, "archive_path": key, "archived_at": START, "replay_status": "NEW", **more}


def rows_of(table: OnceTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.lake.load(table.name).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["archive_path"], row["topic_name"]))


def keys_of(table: OnceTable) -> list[str]:
    return [row["archive_path"] for row in rows_of(table)]


def data_files(lake: Lake) -> set[Path]:
    folder = Path(lake.load(lake.names.dlq_errors).location().removeprefix("file://"))
    return set(folder.rglob("*.parquet"))


# appending


def test_rows_are_appended_in_one_snapshot(table: OnceTable) -> None:
    assert table.append_missing([row("a"), row("b", "orders"), row("c")]) == 3
    assert keys_of(table) == ["a", "b", "c"]
    assert len(table.lake.load(table.name).metadata.snapshots) == 1


def test_rows_that_are_there_are_not_appended_again(table: OnceTable) -> None:
    table.append_missing([row("a"), row("b")])
    assert table.append_missing([row("a"), row("c"), row("b")]) == 1
    assert table.append_missing([row("a"), row("b"), row("c")]) == 0
    assert keys_of(table) == ["a", "b", "c"]
    assert len(table.lake.load(table.name).metadata.snapshots) == 2


def test_a_row_that_is_brought_twice_in_one_call_is_one(table: OnceTable) -> None:
    assert table.append_missing([row("a"), row("a")]) == 1
    assert keys_of(table) == ["a"]


def test_nothing_is_committed_for_nothing(table: OnceTable) -> None:
    assert table.append_missing([]) == 0
    assert table.head() is None


def test_of_new_keys_only_what_came_since_is_looked_at(table: OnceTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append_missing([row("a")])
    since = table.head()
    table.append_missing([row("b")])
    read: list[str] = []
    real = once.read_columns
    monkeypatch.setattr(once, "read_columns", lambda io, path, names: read.append(path) or real(io, path, names))
    assert table.append_missing([row("b"), row("c")], {"b", "c"}, since) == 1
    assert len(read) == 1
    assert table.append_missing([row("d")], {"d"}, table.head()) == 1
    assert len(read) == 1
    assert keys_of(table) == ["a", "b", "c", "d"]


def test_what_came_since_is_found_behind_merged_manifests_and_other_topics(
    table: OnceTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_tiers, "TOGETHER", 3)
    middle = None
    for number in range(12):
        key = f"k{number:02}"
        table.append_missing([row(key, "events" if number % 2 else "orders")], {key}, table.head())
        middle = table.head() if number == 5 else middle
    newest = table.lake.load(table.name).current_snapshot()
    assert newest is not None
    assert len(newest.manifests(table.lake.load(table.name).io)) < 6
    assert len(set(files_since(table.lake.load(table.name), middle, {"events"}))) == 3
    assert table.append_missing([row("k07"), row("k11")], {"k07", "k11"}, middle) == 0


def test_a_snapshot_that_is_forgotten_makes_all_files_be_looked_at(table: OnceTable) -> None:
    table.append_missing([row("a")])
    assert table.append_missing([row("a")], {"a"}, since=12345) == 0


def test_of_many_who_bring_the_same_rows_at_once_each_row_stays_one(table: OnceTable) -> None:
    barrier = threading.Barrier(4)
    since = table.head()

    def bring(number: int) -> int:
        barrier.wait()
        rows = [row(f"k{key}") for key in range(number, number + 6)]
        return table.append_missing(rows, {each["archive_path"] for each in rows}, since)

    with ThreadPoolExecutor(4) as pool:
        appended = sum(pool.map(bring, range(4)))
    assert keys_of(table) == [f"k{key}" for key in range(9)]
    assert appended == 9


def test_a_row_that_slips_in_before_the_commit_is_seen(table: OnceTable, monkeypatch: pytest.MonkeyPatch) -> None:
    real = once.commit_if_unmoved
    others = iter([True])

    def slow(seen: Table, added: Any) -> bool:
        if next(others, False):
            SharedTables(table.lake).append_rows(table.name, [row("a"), row("x")])
        return real(seen, added)

    monkeypatch.setattr(once, "commit_if_unmoved", slow)
    assert table.append_missing([row("a"), row("b")], {"a", "b"}, table.head()) == 1
    assert keys_of(table) == ["a", "b", "x"]


def test_a_commit_that_was_lost_leaves_no_files(table: OnceTable, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "wait_after_loss", lambda _: None)
    monkeypatch.setattr(guarded, "_commit", lambda *_: _raise_conflict())
    with pytest.raises(TransientError, match="Nothing was written"):
        table.append_missing([row("a")])
    assert data_files(lake) == set()


def _raise_conflict() -> None:
    from pyiceberg.exceptions import CommitFailedException

    raise CommitFailedException("moved")


def test_an_outcome_that_nobody_knows_is_an_error(table: OnceTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise ConnectionError("no answer")

    monkeypatch.setattr(guarded, "_commit", lost)
    with pytest.raises(ConnectionError):
        table.append_missing([row("a")])


def test_appends_of_others_go_on_meanwhile(table: OnceTable) -> None:
    shared = SharedTables(table.lake)

    def others() -> None:
        for number in range(12):
            shared.append_rows(table.name, [row(f"o{number:02}", "orders")])

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(others)
        for number in range(6):
            assert table.append_missing([row(f"k{number}")]) == 1
        running.result()
    assert keys_of(table) == [*(f"k{number}" for number in range(6)), *(f"o{number:02}" for number in range(12))]


# new values


@pytest.fixture
def booked(table: OnceTable) -> OnceTable:
    for part in ("a", "b"):
        table.append_missing(
            [row(f"{part}{number}", body=f"body {number}", receive_count=number) for number in range(3)]
        )
    table.append_missing([row("a1", "orders")])
    return table


def change(**changes: str) -> dict[str, dict[str, Any]]:
    return {key: {"replay_status": status, "replay_id": "r1"} for key, status in changes.items()}


def test_rows_get_their_new_values_and_nothing_else_changes(booked: OnceTable) -> None:
    before = rows_of(booked)
    assert restate(booked.lake, booked.name, "events", "archive_path", change(a1="FIXED", b2="FAILED")) == 2
    wanted = [
        {**each, **({"replay_status": status, "replay_id": "r1"} if status else {})}
        for each in before
        for status in [
            {"a1": "FIXED", "b2": "FAILED"}.get(each["archive_path"]) if each["topic_name"] == "events" else None
        ]
    ]
    assert rows_of(booked) == wanted


def test_it_is_one_snapshot_and_files_without_such_rows_stay(booked: OnceTable) -> None:
    before = set(files_since(booked.lake.load(booked.name), None, {"events", "orders"}))
    count = len(booked.lake.load(booked.name).metadata.snapshots)
    restate(booked.lake, booked.name, "events", "archive_path", change(a1="FIXED"))
    table = booked.lake.load(booked.name)
    assert len(table.metadata.snapshots) == count + 1
    assert len(before & set(files_since(table, None, {"events", "orders"}))) == 2
    assert SharedTables(booked.lake).count(booked.name, topic_name="events", archive_path="a1") == 1


def test_the_same_again_commits_nothing(booked: OnceTable) -> None:
    restate(booked.lake, booked.name, "events", "archive_path", change(a1="FIXED"))
    head = booked.head()
    assert restate(booked.lake, booked.name, "events", "archive_path", change(a1="FIXED")) == 0
    assert restate(booked.lake, booked.name, "events", "archive_path", change(nothing="FIXED")) == 0
    assert restate(booked.lake, booked.name, "events", "archive_path", {}) == 0
    assert booked.head() == head


def test_a_change_that_slips_in_between_is_not_undone(booked: OnceTable, monkeypatch: pytest.MonkeyPatch) -> None:
    real = guarded._commit
    others: Iterator[bool] = iter([True])

    def slow(*commit: Any) -> None:
        if next(others, False):
            restate(booked.lake, booked.name, "events", "archive_path", change(a2="FAILED"))
            SharedTables(booked.lake).append_rows(booked.name, [row("new")])
        real(*commit)

    monkeypatch.setattr(guarded, "_commit", slow)
    assert restate(booked.lake, booked.name, "events", "archive_path", change(a1="FIXED")) == 1
    found = {each["archive_path"]: each["replay_status"] for each in rows_of(booked) if each["topic_name"] == "events"}
    assert found == {"a0": "NEW", "a1": "FIXED", "a2": "FAILED", "b0": "NEW", "b1": "NEW", "b2": "NEW", "new": "NEW"}


def test_many_who_change_different_rows_at_once_all_do(booked: OnceTable) -> None:
    keys = ("a0", "a1", "a2", "b0", "b1", "b2")

    def fix(key: str) -> int:
        return restate(booked.lake, booked.name, "events", "archive_path", change(**{key: "FIXED"}))

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(fix, keys)) == 6
    rows = [each for each in rows_of(booked) if each["topic_name"] == "events"]
    assert [(each["archive_path"], each["replay_status"]) for each in rows] == [(key, "FIXED") for key in keys]


def test_a_large_file_is_written_anew_in_parts(booked: OnceTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lean_ops.lake.restate._PART_BYTES", 1)
    before = rows_of(booked)
    restate(booked.lake, booked.name, "events", "archive_path", change(a1="FIXED"))
    assert [each["body"] for each in rows_of(booked)] == [each["body"] for each in before]


def test_a_column_that_somebody_added_keeps_its_values(booked: OnceTable) -> None:
    from pyiceberg.types import StringType

    table = booked.lake.load(booked.name)
    with table.update_schema() as update:
        update.add_column("note", StringType())
    booked.append_missing([row("c0", note="kept")])
    restate(booked.lake, booked.name, "events", "archive_path", change(c0="FIXED", a0="FIXED"))
    assert {each["archive_path"]: each["note"] for each in rows_of(booked)}["c0"] == "kept"


def test_a_file_that_is_gone_is_named(booked: OnceTable) -> None:
    for path in files_since(booked.lake.load(booked.name), None, {"events"}):
        Path(path.removeprefix("file://")).unlink()
    with pytest.raises(TerminalError, match="missing"):
        restate(booked.lake, booked.name, "events", "archive_path", change(a1="FIXED"))
