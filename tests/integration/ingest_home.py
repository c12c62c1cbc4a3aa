"""A home as the ingestion tests handle it."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lean_ops.ingest.intake import Intake, Report
from lean_ops.lake.snapshots import history_of
from lean_ops.model.tables import TableName
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

START = datetime(2026, 2, 3, 12, 0, 0, tzinfo=UTC)
TOPIC = "events"


class Clock:
    """Time that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Home:
    """One process's view of a home, with what the tests ask of it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clock = Clock()
        self.services = Services(load_settings({"home": folder / "home", **settings}, {}), clock=self.clock)
        self.folder = folder

    def intake(self) -> Intake:
        services = self.services
        return Intake(
            services.settings,
            services.landing,
            services.clock,
            new_id=lambda: uuid.uuid4().hex,
            prepare=lambda: services.prepare_topic(TOPIC, TOPIC),
        )

    def take(self, *contents: str | bytes) -> Report:
        names = []
        for content in contents:
            file = self.folder / f"in-{uuid.uuid4().hex}.jsonl"
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            names.append(str(file))
        return self.intake().take(TOPIC, names)

    def rows(self, name: TableName) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.services.lake.load(name).scan().to_arrow().to_pylist()
        return rows

    @property
    def raw(self) -> list[dict[str, Any]]:
        return self.rows(self.services.lake.names.raw(TOPIC))

    @property
    def ledger(self) -> list[dict[str, Any]]:
        return self.rows(self.services.lake.names.ops("reconciliation_log"))

    @property
    def dead_letters(self) -> list[dict[str, Any]]:
        return self.rows(self.services.lake.names.dlq_errors)

    @property
    def snapshots(self) -> list[Any]:
        history = history_of(self.services.lake.load(self.services.lake.names.raw(TOPIC)))
        return list(history.ancestors(history.head))[::-1]

    def finish(self) -> int:
        return self.services.flush_recovery.finish_flushes(TOPIC)

    def assert_books_are_right(self, raw: int, dead: int) -> None:
        assert len(self.raw) == raw
        assert len(self.dead_letters) == len({row["archive_path"] for row in self.dead_letters}) == dead
        assert len({row["batch_id"] for row in self.ledger}) == len(self.ledger) == len(self.snapshots)
        assert sum(row["inserted"] for row in self.ledger) == raw
        assert sum(row["errors"] for row in self.ledger) == dead
        assert all(row["balanced"] and row["variance"] == 0 for row in self.ledger)


def body(number: int, **members: Any) -> str:
    whole = {
        "message_id": f"m-{number}",
        "publish_time": f"2026-02-{number % 3 + 1:02d}T10:15:30.123456Z",
        "payload": {"_metadata": {"idempotencyKeyResource": f"k-{number}"}, "n": number},
        **members,
    }
    return json.dumps(whole) + "\n"


def bodies(count: int, start: int = 0) -> str:
    return "".join(body(number) for number in range(start, start + count))
