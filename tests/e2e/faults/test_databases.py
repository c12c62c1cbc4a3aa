"""The catalog's and the state's database: locked by somebody else, damaged, or deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Timer

import pytest
from tests.e2e.cli import CommandLine, body, curated_schema_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

DATABASES = ("catalog.db", "state.db")
INGEST = ("ingest", "events", "-")
BODY = body("m2", {"a": 2}, idempotency_key="k2").encode()


@pytest.fixture
def command_line(tmp_path: Path) -> CommandLine:
    return new_home(tmp_path)


def new_home(folder: Path) -> CommandLine:
    """A home with one topic, a message in RAW and an open gate."""
    command_line = CommandLine(folder / "home")
    schema = folder / "schema.json"
    schema.write_text(curated_schema_of("events", {"a": {"type": "INT"}}))
    command_line.run(*INGEST, stdin=body("m1", {"a": 1}, idempotency_key="k1").encode())
    command_line.run("schema", "submit", "events", str(schema))
    return command_line


@contextmanager
def locked(database: Path) -> Iterator[sqlite3.Connection]:
    """Another process's transaction, as far as SQLite can tell."""
    with closing(sqlite3.connect(database, isolation_level=None, check_same_thread=False)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield db


def rows(command_line: CommandLine) -> int:
    [row] = command_line.json("query", "SELECT count(*) AS n FROM raw.events")
    return int(row["n"])


def test_a_database_that_stays_locked_stops_who_writes_and_nobody_who_reads(tmp_path: Path) -> None:
    """Two homes at once: to give up takes as long as a database may be busy."""
    homes = {}
    for database in DATABASES:
        (tmp_path / database).mkdir()
        homes[database] = new_home(tmp_path / database)

    def while_locked(database: str) -> str:
        home = homes[database]
        with locked(home.home / database):
            assert "events" in home.run("status")
            assert rows(home) == 1
            return home.run(*INGEST, code=1, stdin=BODY)

    with ThreadPoolExecutor(len(DATABASES)) as pool:
        said = dict(zip(DATABASES, pool.map(while_locked, DATABASES), strict=True))
    for database, words in said.items():
        assert f"{database}: another process keeps it locked" in words
        assert "Do the same again once that one is done." in words
        assert "Traceback" not in words
        homes[database].run(*INGEST, stdin=BODY)
        assert rows(homes[database]) == 2
        assert homes[database].json("reconcile", "--recount")["balanced"]


@pytest.mark.parametrize("database", DATABASES)
def test_a_database_that_is_locked_for_a_moment_is_waited_for(command_line: CommandLine, database: str) -> None:
    with locked(command_line.home / database) as db:
        timer = Timer(4, lambda: db.execute("ROLLBACK"))
        timer.start()
        command_line.run(*INGEST, stdin=BODY)
        timer.join()
    assert rows(command_line) == 2


def test_a_damaged_catalog_is_named_by_every_command_and_changed_by_none(command_line: CommandLine) -> None:
    file = command_line.home / "catalog.db"
    whole = file.read_bytes()
    file.write_bytes(b"no database " * 500)
    for arguments in (INGEST, ("run",), ("status",), ("query", "SELECT 1 FROM raw.events"), ("reconcile",)):
        said = command_line.run(*arguments, code=1, stdin=BODY)
        assert "catalog.db: it is damaged; found file is not a database. Restore the file from a backup." in said
        assert "Traceback" not in said
    file.write_bytes(whole)
    command_line.run(*INGEST, stdin=BODY)
    assert rows(command_line) == 2


def test_a_damaged_state_is_named_and_can_be_moved_away(command_line: CommandLine, tmp_path: Path) -> None:
    file = command_line.home / "state.db"
    file.write_bytes(b"no database " * 500)
    for arguments in (INGEST, ("run",), ("status",), ("reconcile",), ("schema", "list")):
        said = command_line.run(*arguments, code=1, stdin=BODY)
        assert "state.db: it is damaged" in said
        assert "Restore the file from a backup; " in said
        assert "Traceback" not in said
    assert rows(command_line) == 1
    file.rename(tmp_path / "moved away")
    command_line.run(*INGEST, stdin=BODY)
    assert "no schema" in command_line.run("run")
    command_line.run("schema", "submit", "events", str(tmp_path / "schema.json"))
    assert "process" in command_line.run("run", "--explain")
    assert command_line.json("reconcile", "--recount")["balanced"]
