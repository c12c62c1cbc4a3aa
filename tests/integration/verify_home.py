"""Topics and what an oracle says of them: each is the same story, with one thing disturbed in one of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.integration.reconcile_home import Home, Row, Told, message

from lean_ops.model.data_type import DataType, Kind
from lean_ops.model.tables import CURATED_AUDIT, ENVELOPE, STANDARDIZED, Column, TableShape

TIME = "2026-02-03T10:00:00.000000Z"
BODY = '{"message_id": "d1", "no payload": "\U0001f600"}'
_TYPES = {
    "amount": DataType(Kind.DECIMAL, 10, 2),
    "express": DataType(Kind.BOOLEAN),
    "updated_at": DataType(Kind.TIMESTAMP),
    "ordered_on": DataType(Kind.DATE),
    "quality": DataType(Kind.DOUBLE),
    "item_count": DataType(Kind.INT),
    "note": DataType(Kind.STRING),
    "columns": DataType(Kind.STRING),  # called as the comparison's own SQL calls things
    "place": DataType(Kind.STRING),
    "version": DataType(Kind.STRING),
}
CURATED_VALUES: Row = {
    "amount": Decimal("19.90"),
    "express": False,
    "updated_at": datetime(2026, 2, 3, 10, 15, 30, 120000, tzinfo=UTC),
    "ordered_on": date(2026, 2, 3),
    "quality": 0.912,
    "item_count": 3,
    "note": None,
}
TOLD_VALUES: Row = {
    "amount": "19.90",
    "express": False,
    "updated_at": "2026-02-03T10:15:30.120000Z",
    "ordered_on": "2026-02-03",
    "quality": 0.912,
    "item_count": 3,
    "note": None,
}


def line(number: int, message_id: str | None, fate: str, **more: Any) -> Row:
    """A line of a fates file; its topic and file come with the topic."""
    return {"line": number, "kind": "plain", "message_id": message_id, "publish_time": TIME, "fate": fate, **more}


def letter(body: str = BODY, reason: str = "INVALID_CONTRACT", **more: Any) -> Row:
    return {"body": body, "error_type": reason, "message_id": None, "archive_path": "a/f1-1.json", **more}


def dead(number: int, body: str = BODY, reason: str = "INVALID_CONTRACT") -> Row:
    sha256 = hashlib.sha256(body.encode()).hexdigest()
    return {"line": number, "kind": "no_payload", "fate": "dead_letter", "reason": reason, "body_sha256": sha256}


def refused(message_id: str, batch: str, reason: str, fields: list[str] | None = None) -> Row:
    more = {} if fields is None else {"error_fields": fields}
    return {**message(message_id, None, batch), "error_type": reason, **more}


def curated(message_id: str, key: str, batch: str = "c2", **values: Any) -> Row:
    return {**message(message_id, key, batch), **CURATED_VALUES, **values}


def good_lake(topic: str) -> Told:
    """m2 corrects m1, which came twice; `bad` is no JSON, m4 has no key, and a body has no payload."""
    return Told(
        topic,
        curated=[[], [curated("m2", "k1"), curated("m3", "k2")]],
        parse_errors=[refused("bad", "b1", "INVALID_JSON")],
        errors=[refused("m4", "c2", "CDE_VIOLATION", ["idempotency_key", "amount"])],
        letters=[letter()],
    )


def good_fates() -> list[Row]:
    return [
        line(1, "m1", "superseded", idempotency_key="k1", version="m2"),
        line(2, "m1", "duplicate", idempotency_key="k1"),
        line(3, "bad", "parse_error", reason="INVALID_JSON"),
        dead(4),
        line(5, "m2", "curated", idempotency_key="k1", version="m2", curated=TOLD_VALUES),
        line(6, "m3", "curated", idempotency_key="k2", version="m3", curated=TOLD_VALUES),
        line(7, "m4", "error", reason="CDE_VIOLATION", fields=["amount", "idempotency_key"]),
    ]


@dataclass
class Story:
    """A topic as the lake has it, and as an oracle tells of it."""

    lake: Told
    fates: list[Row] = field(default_factory=good_fates)

    def of(self, message_id: str) -> Row:
        """The message's first line, to be changed."""
        return next(row for row in self.fates if row.get("message_id") == message_id)


Change = Callable[[Story], None]


class VerifyHome(Home):
    """Services over a fresh folder, topics told in it, and the lines of an oracle."""

    curated_shape = TableShape(
        (*ENVELOPE, *(Column(name, kind) for name, kind in _TYPES.items()), *CURATED_AUDIT), STANDARDIZED.partitions
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.topics: dict[str, Told] = {}
        self.lines: dict[str, list[Row]] = {}

    def add(self, topic: str, change: Change) -> None:
        """A topic and its lines, with what `change` did to both."""
        story = Story(good_lake(topic))
        change(story)
        self.topics[topic] = self.tell(story.lake)
        self.lines[topic] = [{"topic": topic, "file": f"{topic}.jsonl", **row} for row in story.fates]

    def finish(self) -> None:
        """Write what the topics have in shared tables."""
        self.book(list(self.topics.values()))

    def write(self, file: Path, *topics: str) -> Path:
        """A fates file of these topics, or of all; lines of different topics stand mixed."""
        rows = [row for topic in topics or self.lines for row in self.lines[topic]]
        rows.sort(key=lambda row: row["line"])
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file
