"""What three topics are sent on the local AWS, in two waves, and what must have become of all of it at any moment.

One topic goes all the way, one ends at Standardized, one has no schema. The oracle is that of `lean-ops generate`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from lean_ops.operate.generate.families import FAMILIES, schema_of
from lean_ops.operate.generate.order import kind_counts
from lean_ops.operate.generate.plan import Segment, Window
from lean_ops.operate.generate.story import Part, Story

FULL: Final = "events"
STANDARDIZED_ONLY: Final = "orders"
WITHOUT_SCHEMA: Final = "payments"
TOPICS: Final = (FULL, STANDARDIZED_ONLY, WITHOUT_SCHEMA)
# Faults of every sort that a queue takes: no bodies that are no text, and none of eleven megabytes.
_RATES: Final = {
    "duplicates": 0.04,
    "corrections": 0.06,
    "same_key": 0.02,
    "late": 0.02,
    "skewed": 0.02,
    "drift": 0.03,
    "removed": 0.03,
    "reordered": 0.02,
    "type_changes": 0.03,
    "malformed": 0.03,
    "empty": 0.02,
    "not_objects": 0.02,
    "cde_nulls": 0.02,
    "bad_types": 0.03,
    "bad_timestamps": 0.02,
    "broken_rules": 0.02,
    "combined": 0.02,
    "refused": 0.02,
}
_STARTS: Final = datetime(2026, 1, 5, tzinfo=UTC)
_DAY: Final = timedelta(days=1)
# Where a topic's schema ends at Standardized these are all the same.
_PAST_STANDARDIZED: Final = frozenset({"curated", "superseded", "error"})
_OF_CURATED: Final = ("reason", "fields", "version", "curated")
Fate = dict[str, Any]


@dataclass(frozen=True)
class StageStory:
    """How many bodies each topic is sent in each wave; the same seed makes the same bytes."""

    waves: tuple[Mapping[str, int], ...]
    seed: int = 1

    @cached_property
    def _stories(self) -> dict[str, Story]:
        return {topic: self._story(topic) for topic in TOPICS}

    def _story(self, topic: str) -> Story:
        story = Story.of(topic, FAMILIES[topic], self.seed)
        for number, wave in enumerate(self.waves):
            windows = [Window(_STARTS + number * _DAY, _DAY)]
            story = story.with_segment(Segment(f"wave {number}", kind_counts(wave[topic], _RATES), windows))
        return story

    def size(self, topic: str, waves: int) -> int:
        """How many bodies a topic has in the first waves."""
        return sum(wave[topic] for wave in self.waves[:waves])

    def bodies(self, topic: str, wave: int) -> list[str]:
        """The queue bodies of a wave, in their order."""
        story, part = self._stories[topic], self._part(topic, wave)
        text = b"".join(chunk.bodies for chunk in story.chunks(part, story.foretold())).decode()
        return text.removesuffix("\n").split("\n")

    def write_schemas(self, folder: Path) -> dict[str, Path]:
        """The schema files of the topics that have one."""
        folder.mkdir(parents=True, exist_ok=True)
        for topic, zones in ((FULL, ["standardized", "curated"]), (STANDARDIZED_ONLY, ["standardized"])):
            schema = {**json.loads(schema_of(topic, FAMILIES[topic])), "zones": zones}
            (folder / f"{topic}.json").write_text(json.dumps(schema, indent=2), encoding="utf-8")
        return {topic: folder / f"{topic}.json" for topic in (FULL, STANDARDIZED_ONLY)}

    def fates(self, sent: int, processed: Mapping[str, int]) -> list[Fate]:
        """What must have become of all that was sent, when so many waves were sent and so many of a topic processed."""
        return [fate for topic in TOPICS for fate in self._fates(topic, sent, processed.get(topic, 0))]

    def _fates(self, topic: str, sent: int, processed: int) -> Iterator[Fate]:
        story = self._stories[topic]
        foretold = story.foretold(self.size(topic, processed))
        for wave in range(sent):
            for chunk in story.chunks(self._part(topic, wave), foretold):
                told = map(json.loads, chunk.fates.decode().splitlines())
                yield from map(_ends_at_standardized, told) if topic == STANDARDIZED_ONLY else told

    def _part(self, topic: str, wave: int) -> Part:
        return Part(f"{topic}-{wave}.jsonl", self.size(topic, wave), self.size(topic, wave + 1))


def _ends_at_standardized(fate: Fate) -> Fate:
    if fate["fate"] not in _PAST_STANDARDIZED:
        return fate
    return {**{name: value for name, value in fate.items() if name not in _OF_CURATED}, "fate": "standardized"}


def rows_of(fates: list[Fate]) -> dict[str, dict[str, int]]:
    """How many rows each table must have, by topic; what waits is in RAW alone."""
    counted = Counter((fate["topic"], fate["fate"]) for fate in fates)
    standardized = ("curated", "superseded", "error", "standardized")
    raw = (*standardized, "duplicate", "parse_error", "pending")
    tables = {
        "raw": raw,
        "standardized": standardized,
        "parse_errors": ("parse_error",),
        "curated": ("curated",),
        "errors": ("error",),
        "dlq_errors": ("dead_letter",),
    }
    return {
        topic: {table: sum(counted[topic, fate] for fate in among) for table, among in tables.items()}
        for topic in TOPICS
    }
