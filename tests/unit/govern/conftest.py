from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from lean_ops.govern.store import SchemaFolder
from lean_ops.govern.submit import Submissions
from lean_ops.state.sqlite import SqliteStateStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lean_ops.model.problem import Problem
    from lean_ops.model.schema import Schema

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)


class History:
    """The schema history's port, with a switch that makes its next writes fail."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.failures_to_come = 0

    def __call__(self, row: Mapping[str, Any]) -> None:
        if self.failures_to_come:
            self.failures_to_come -= 1
            raise ConnectionError("the history can't be written now")
        self.rows.append(dict(row))


class Tables:
    """The lake's tables: the versions they were made for, what is in the way, and a switch that makes them fail."""

    def __init__(self) -> None:
        self.made_for: list[str] = []
        self.in_the_way: tuple[Problem, ...] = ()
        self.failures_to_come = 0

    def problems(self, _: Schema) -> Iterator[Problem]:
        yield from self.in_the_way

    def ensure(self, schema: Schema) -> None:
        if self.failures_to_come:
            self.failures_to_come -= 1
            raise ConnectionError("the tables can't be made now")
        self.made_for.append(schema.schema_version)


@pytest.fixture
def now() -> datetime:
    return NOW


@pytest.fixture
def folder(tmp_path: Path) -> SchemaFolder:
    return SchemaFolder(tmp_path / "schemas")


@pytest.fixture
def registry(tmp_path: Path) -> SqliteStateStore:
    return SqliteStateStore(tmp_path / "state.db", 300, lambda _: False)


@pytest.fixture
def history() -> History:
    return History()


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
def submissions(folder: SchemaFolder, registry: SqliteStateStore, tables: Tables, history: History) -> Submissions:
    return Submissions(folder, registry, tables, history, can_hash=False)
