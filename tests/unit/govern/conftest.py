from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from lean_ops.govern.store import SchemaFolder
from lean_ops.govern.submit import Submissions
from lean_ops.state.sqlite import SqliteStateStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
def submissions(folder: SchemaFolder, registry: SqliteStateStore, history: History) -> Submissions:
    return Submissions(folder, registry, history, can_hash=False)
