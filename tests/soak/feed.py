"""What the topics of a soak are sent, file by file, and what must have become of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from lean_ops.operate.generate.families import FAMILIES, schema_of
from lean_ops.operate.generate.kinds import Kind
from lean_ops.operate.generate.plan import Segment, Window
from lean_ops.operate.generate.story import Part, Story

PARTS_PER_SEGMENT = 10
LATE_ROUND = 8
_STARTS = datetime(2026, 1, 5, tzinfo=UTC)
_RARE = frozenset({Kind.NOT_AN_OBJECT, Kind.COMBINED, Kind.REFUSED, Kind.POISON, Kind.REPAIR, Kind.TIE})
_COUNTS = {kind: 8 if kind in _RARE else 20 for kind in Kind if kind not in {Kind.NEW, Kind.OVERSIZED}}
_ENDS_AT_STANDARDIZED = ("curated", "superseded", "error")
_TOLD_AT_STANDARDIZED = ("topic", "file", "line", "kind", "message_id", "publish_time", "idempotency_key")


@dataclass
class Feed:
    """A topic: its story so far, how much of it was sent, and the file that must be sent again.

    `opens_at` is the round before which its schema is submitted.
    """

    story: Story
    is_curated: bool = True
    opens_at: int = 0
    version: int = 0
    parts: list[Part] = field(default_factory=list)
    sent: list[Part] = field(default_factory=list)
    owed: Part | None = None
    segments: int = 0

    @property
    def topic(self) -> str:
        return self.story.topic

    @property
    def is_open(self) -> bool:
        """Whether its schema was ever submitted."""
        return self.version > 0

    def take_next(self) -> Part:
        """The next file to send: that which is owed, or a new one."""
        if self.owed is not None:
            return self.owed
        if not self.parts:
            self._grow()
        self.owed = self.parts.pop(0)
        return self.owed

    def landed(self) -> None:
        """The file at hand was taken in to its end."""
        assert self.owed is not None
        self.sent.append(self.owed)
        self.owed = None

    def write_bodies(self, part: Part, folder: Path) -> Path:
        """A file to ingest."""
        path = folder / part.file
        with path.open("wb") as file:
            file.writelines(chunk.bodies for chunk in self.story.chunks(part, self.story.foretold()))
        return path

    def write_fates(self, file: BinaryIO) -> None:
        """What must have become of every body that was sent, once everything is processed."""
        processed = self.sent[-1].last if self.sent else 0
        foretold = self.story.foretold(processed if self.is_open else 0)
        for part in self.sent:
            fates = (chunk.fates for chunk in self.story.chunks(part, foretold))
            file.writelines(fates if self.is_curated else map(_ending_at_standardized, fates))

    def next_schema(self) -> bytes:
        """The family's schema; from the second time on with another description and version."""
        schema: dict[str, Any] = json.loads(schema_of(self.topic, self.story.family))
        schema["schema_version"] = f"1.0.{self.version}"
        schema["description"] = f"as submitted {self.version + 1} times"
        if not self.is_curated:
            schema["zones"] = ["standardized"]
        self.version += 1
        return json.dumps(schema).encode()

    def _grow(self) -> None:
        """A further segment; every way to go wrong has its turn in its files."""
        before = len(self.story.rows)
        oversized = {Kind.OVERSIZED: 1} if self.segments % 4 == 1 and self.topic == "soak_events_1" else {}
        window = Window(_STARTS + timedelta(days=self.segments), timedelta(days=1))
        segment = Segment(f"segment {self.segments}", {Kind.NEW: 300} | _COUNTS | oversized, [window])
        self.story = self.story.with_segment(segment)
        self.parts = self.story.part(before, f"{self.topic}-{self.segments:03d}.jsonl").split(PARTS_PER_SEGMENT)
        self.segments += 1


def feeds_of(seed: int) -> list[Feed]:
    """Two topics of each family; one ends at Standardized, and one has no schema for a long time."""
    feeds = {
        topic: Feed(Story.of(topic, family, seed))
        for number in (1, 2)
        for name, family in FAMILIES.items()
        for topic in [f"soak_{name}_{number}"]
    }
    feeds["soak_readings_2"].is_curated = False
    feeds["soak_payments_2"].opens_at = LATE_ROUND
    return list(feeds.values())


def _ending_at_standardized(fates: bytes) -> bytes:
    return b"".join(_standardized(line) for line in fates.splitlines(keepends=True))


def _standardized(line: bytes) -> bytes:
    told: dict[str, Any] = json.loads(line)
    if told["fate"] not in _ENDS_AT_STANDARDIZED:
        return line
    kept = {name: told[name] for name in _TOLD_AT_STANDARDIZED if name in told}
    return json.dumps(kept | {"fate": "standardized"}).encode() + b"\n"
