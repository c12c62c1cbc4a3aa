"""Generated topics in memory: every kind of body there is, with its line of the fates."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from lean_ops.operate.generate.families import FAMILIES
from lean_ops.operate.generate.kinds import Kind
from lean_ops.operate.generate.plan import Segment, Window
from lean_ops.operate.generate.story import Story

EVERY_KIND = {kind: 40 for kind in Kind if kind not in {Kind.NEW, Kind.OVERSIZED}} | {Kind.NEW: 200, Kind.OVERSIZED: 1}
ONE_DAY = (Window(datetime(2026, 1, 5, tzinfo=UTC), timedelta(days=1)),)


class Sent(NamedTuple):
    """A body and what is told of it."""

    body: bytes
    told: dict[str, Any]


def story_of(family: str, counts: dict[Kind, int], seed: int = 7) -> Story:
    return Story.of("topic", FAMILIES[family], seed).with_segment(Segment("all", counts, ONE_DAY))


def sent_by(story: Story, processed: int | None = None) -> list[Sent]:
    chunks = list(story.chunks(story.part(0), story.foretold(processed)))
    bodies = b"".join(chunk.bodies for chunk in chunks).splitlines()
    fates = b"".join(chunk.fates for chunk in chunks).splitlines()
    assert len(bodies) == len(fates) == len(story.rows)
    return [Sent(body, json.loads(line)) for body, line in zip(bodies, fates, strict=True)]


@cache
def everything(family: str) -> list[Sent]:
    """A topic with all kinds of bodies."""
    return sent_by(story_of(family, EVERY_KIND))
