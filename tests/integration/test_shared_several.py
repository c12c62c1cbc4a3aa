"""Rows for several shared tables at once: one wait for all of them, and nothing left behind where one fails."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.integration.test_shared_tables import wait_until

from lean_ops.lake.catalog import Lake
from lean_ops.lake.shared import SharedTables
from lean_ops.model.errors import TerminalError
from lean_ops.model.tables import TableName
from lean_ops.settings import load_settings


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    lake.ensure_shared()
    yield lake
    lake.catalog.close()


@pytest.fixture
def shared(lake: Lake) -> SharedTables:
    return SharedTables(lake)


@pytest.fixture
def first(lake: Lake) -> TableName:
    return lake.names.ops("reconciliation_log")


@pytest.fixture
def second(lake: Lake) -> TableName:
    return lake.names.ops("job_run_history")


def row(batch: str) -> dict[str, str]:
    return {"topic_name": "t", "batch_id": batch}


def batches(shared: SharedTables, name: TableName) -> set[str]:
    return shared.values(name, "batch_id", topic_name="t")


def commits(lake: Lake, name: TableName) -> int:
    return len(lake.load(name).snapshots())


def test_each_table_gets_its_rows_in_one_commit(
    lake: Lake, shared: SharedTables, first: TableName, second: TableName
) -> None:
    shared.append_rows_of({first: [row("a"), row("b")], second: [row("c")], lake.names.ops("alerts"): []})
    assert (batches(shared, first), batches(shared, second)) == ({"a", "b"}, {"c"})
    assert (commits(lake, first), commits(lake, second), commits(lake, lake.names.ops("alerts"))) == (1, 1, 0)


def test_while_one_table_is_waited_for_others_may_commit_the_rest(
    lake: Lake, shared: SharedTables, first: TableName, second: TableName
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with shared._turns[first]:
            waits = pool.submit(shared.append_rows_of, {first: [row("a")], second: [row("a")]})
            wait_until(lambda: bool(shared._waiting[first] and shared._waiting[second]))
            shared.append_rows(second, [row("b")])
            assert batches(shared, second) == {"a", "b"}
            assert not waits.done()
        waits.result(30)
    assert batches(shared, first) == {"a"}
    assert (commits(lake, first), commits(lake, second)) == (1, 1)


def test_what_fails_in_one_table_is_not_committed_to_another_later(
    shared: SharedTables, first: TableName, second: TableName, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: Any) -> int:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("lean_ops.lake.shared.append_files", no_space)
        with pytest.raises(OSError, match="no space left"):
            shared.append_rows_of({first: [row("a")], second: [row("a")]})
    shared.append_rows(first, [row("later")])
    shared.append_rows(second, [row("later")])
    assert (batches(shared, first), batches(shared, second)) == ({"later"}, {"later"})


def test_a_row_that_does_not_fit_its_table_is_found_before_any_is_written(
    lake: Lake, shared: SharedTables, first: TableName, second: TableName
) -> None:
    with pytest.raises(TerminalError, match="no such column"):
        shared.append_rows_of({first: [row("a")], second: [{"misspelt": "a"}]})
    shared.append_rows(first, [row("later")])
    assert batches(shared, first) == {"later"}
    assert commits(lake, second) == 0
