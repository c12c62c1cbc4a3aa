"""The home's databases: opened to be read, and their errors in words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError
from lean_ops.sqlite_file import database_error, open_to_read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (1)")
        db.commit()
    return path


def test_a_reader_sees_what_was_committed_and_can_not_write(file: Path) -> None:
    with closing(open_to_read(file)) as db:
        assert db.execute("SELECT a FROM t").fetchall() == [(1,)]
        with pytest.raises(sqlite3.OperationalError) as refused:
            db.execute("DELETE FROM t")
    assert isinstance(database_error(file, refused.value), TerminalError)
    assert "it can't be written" in str(database_error(file, refused.value))


def test_a_lock_passes_and_says_so(file: Path) -> None:
    with closing(sqlite3.connect(file)) as holder, closing(sqlite3.connect(file, timeout=0)) as other:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError) as locked:
            other.execute("BEGIN EXCLUSIVE")
    told = database_error(file, locked.value)
    assert isinstance(told, TransientError)
    assert str(told).startswith(f"{file}: another process keeps it locked")


@pytest.mark.parametrize(("more", "remedy"), [(None, "a backup."), ("or go without.", "a backup; or go without.")])
def test_a_damaged_file_is_named_with_a_way_out(tmp_path: Path, more: str | None, remedy: str) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(b"no database " * 500)
    with closing(open_to_read(file)) as db, pytest.raises(sqlite3.DatabaseError) as damaged:
        db.execute("SELECT * FROM sqlite_master")
    told = database_error(file, damaged.value, more)
    assert "it is damaged; found file is not a database" in str(told)
    assert str(told.remedy).endswith(remedy)


def test_an_error_without_a_name_is_told_as_it_is(tmp_path: Path) -> None:
    told = database_error(tmp_path / "x.db", sqlite3.ProgrammingError("what now"))
    assert isinstance(told, LeanOpsError)
    assert "found what now" in str(told)
