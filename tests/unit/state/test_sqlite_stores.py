"""What holds for the embedded stores alone; what all stores promise is in tests/contract."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.state import sqlite_connection
from lean_ops.state.port import TrackedError
from lean_ops.state.sqlite import SqliteStateStore
from lean_ops.state.sqlite_connection import StateFile
from lean_ops.state.sqlite_deliveries import SqliteDeliveries
from lean_ops.state.sqlite_errors import SqliteErrorTracker

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
ERROR = TrackedError("e1", "events", "8841-77", "UNKNOWN", "dlq-archive/events/e1.json", "NEW", NOW)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state.db"


def ids(file: Path, table: str, key: str) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        return [row[0] for row in db.execute(f"SELECT {key} FROM {table} ORDER BY 1")]  # noqa: S608  our own names


def test_nothing_is_made_before_it_is_needed(file: Path) -> None:
    SqliteStateStore(file, 300, lambda _: False)
    SqliteDeliveries(file)
    SqliteErrorTracker(file)
    assert not file.parent.exists()


def test_the_stores_of_a_home_share_one_file_whoever_opens_it_first(file: Path) -> None:
    SqliteDeliveries(file).remember(["a"], NOW)
    SqliteStateStore(file, 300, lambda _: False).claim_name("events", "events", NOW)
    SqliteErrorTracker(file).put(ERROR)
    assert SqliteDeliveries(file).seen(["a"], NOW) == {"a"}
    assert [child.name for child in file.parent.iterdir() if child.suffix == ".db"] == ["state.db"]


def test_forgotten_deliveries_are_deleted_with_the_next_write(file: Path) -> None:
    deliveries = SqliteDeliveries(file)
    deliveries.remember(["a", "b"], NOW)
    deliveries.remember(["b"], NOW + timedelta(hours=12))
    deliveries.remember(["c"], NOW + timedelta(hours=24))
    assert ids(file, "idempotency_keys", "id") == ["b", "c"]


def test_errors_past_their_days_are_deleted_with_the_next_write(file: Path) -> None:
    tracker = SqliteErrorTracker(file)
    tracker.put(ERROR)
    tracker.put(replace(ERROR, error_id="e2", recorded_at=NOW + timedelta(seconds=1)))
    tracker.put(replace(ERROR, error_id="e3", recorded_at=NOW + timedelta(days=90)))
    assert ids(file, "error_tracker", "error_id") == ["e2", "e3"]


def test_a_state_file_of_an_earlier_release_gets_the_new_tables(file: Path) -> None:
    SqliteStateStore(file, 300, lambda _: False).claim_name("events", "events", NOW)
    with closing(sqlite3.connect(file)) as db, db:
        db.executescript("DROP TABLE idempotency_keys; DROP TABLE error_tracker")
    assert SqliteDeliveries(file).seen(["a"], NOW) == set()
    assert SqliteErrorTracker(file).put(ERROR)
    assert set(SqliteStateStore(file, 300, lambda _: False).items()) == {"events"}


def test_a_damaged_file_is_named(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(TerminalError, match="it is damaged") as told:
        SqliteDeliveries(file).seen(["a"], NOW)
    assert told.value.where == str(file)


def test_threads_of_a_process_write_one_after_another_and_none_asks_sqlite_in_vain(file: Path) -> None:
    state = StateFile(file)
    asked: list[str] = []

    def write(number: int) -> None:
        state.connection().set_trace_callback(asked.append)
        with state.transaction() as db:
            db.execute("INSERT INTO settlements (topic_name, snapshot_id) VALUES ('a', ?)", (number,))
            if number < 0:
                raise RuntimeError("no")

    with ThreadPoolExecutor(1) as pool:
        with state.transaction() as db:
            failing = pool.submit(write, -1)
            wait([failing], 0.3)
            assert not [statement for statement in asked if statement.startswith("BEGIN")]
            db.execute("INSERT INTO settlements (topic_name, snapshot_id) VALUES ('b', 1)")
        with pytest.raises(RuntimeError, match="no"):
            failing.result(10)
        pool.submit(write, 2).result(10)  # whoever failed has given its turn back
    assert ids(file, "settlements", "topic_name || snapshot_id") == ["a2", "b1"]


def test_who_waits_too_long_for_its_turn_is_told_what_sqlite_says(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_connection, "BUSY_SECONDS", 0.05)
    state = StateFile(file)

    def write() -> None:
        with state.transaction():
            pass

    with ThreadPoolExecutor(1) as pool:
        with state.transaction(), pytest.raises(TransientError, match="another process keeps it locked"):
            pool.submit(write).result(10)
        pool.submit(write).result(10)
