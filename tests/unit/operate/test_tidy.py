from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from lean_ops.lake.small_files import Gathered
from lean_ops.model.errors import TransientError
from lean_ops.model.tables import OPS_TABLES, TableName
from lean_ops.operate.tidy import Tidy

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
MANY, FEW = TableName("ops_db", "reconciliation_log"), TableName("ops_db", "alerts")
LOST = TransientError("20 commits in a row lost")


class Rows(list[tuple[str, dict[str, Any]]]):
    """Stands for the books."""

    def append(self, table: str, row: dict[str, Any]) -> None:  # type: ignore[override]
        super().append((table, row))


def tidied(found: dict[TableName, Gathered | Exception | None]) -> Rows:
    rows, seconds = Rows(), iter(range(100))

    def gather(name: TableName) -> Gathered | None:
        told = found[name]
        if isinstance(told, Exception):
            raise told
        return told

    books: Any = rows
    Tidy(tuple(found), gather, books, lambda: NOW + timedelta(seconds=next(seconds))).after_run("r1")
    return rows


def test_a_table_that_was_written_anew_is_a_row_and_one_that_was_not_is_none() -> None:
    rows = tidied({FEW: None, MANY: Gathered(2100, 700, 9_000, 5_000)})
    assert rows == [
        (
            "maintenance_log",
            {
                "run_id": "r1",
                "topic_name": None,
                "table_name": "ops_db.reconciliation_log",
                "action": "REWRITE_FILES",
                "files_before": 2100,
                "files_after": 700,
                "bytes_before": 9_000,
                "bytes_after": 5_000,
                "status": "SUCCEEDED",
                "error_message": None,
                "duration_ms": 1000,
                "run_at": NOW + timedelta(seconds=1),
            },
        )
    ]
    assert rows[0][1].keys() == {column.name for column in OPS_TABLES["maintenance_log"].columns}


@pytest.mark.parametrize("error", [LOST, OSError("disk full")])
def test_what_could_not_be_done_is_told_and_keeps_no_other_table_from_it(error: Exception) -> None:
    with capture_logs() as logs:
        rows = tidied({MANY: error, FEW: Gathered(3, 1, 2, 1)})
    assert [(row["table_name"], row["status"]) for _, row in rows] == [(str(MANY), "FAILED"), (str(FEW), "SUCCEEDED")]
    assert str(error) in rows[0][1]["error_message"]
    assert [(line["log_level"], line["table"]) for line in logs] == [("error", str(MANY))]
