"""What holds for every store: times that sort as text, how long things are kept, whose a name is."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING

from lean_ops.model.errors import WrongUseError
from lean_ops.model.registry import RegistryItem
from lean_ops.state.port import DELIVERIES_KEPT, ERRORS_KEPT

if TYPE_CHECKING:
    from datetime import datetime


def utc_text(time: datetime) -> str:
    """A time as text that sorts as the time does, whatever zone it came in."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def delivery_end(now: datetime) -> int:
    """The second at which a delivery that is remembered now is forgotten."""
    return math.ceil((now + DELIVERIES_KEPT).timestamp())


def errors_since(now: datetime) -> str:
    """Errors recorded after this, as text, are still known."""
    return utc_text(now - ERRORS_KEPT)


def claimed(known: RegistryItem | None, topic: str, source_name: str, now: datetime) -> RegistryItem:
    """A topic's item once a source name has claimed it; `known` itself if nothing changes."""
    item = known or RegistryItem(topic)
    if known and source_name in {topic, known.source_name}:
        return known
    if source_name != topic and item.source_name not in {None, topic, source_name}:
        raise WrongUseError(
            f"this name and {item.source_name!r} both become topic {topic!r}",
            where=f"topic {source_name!r}",
            remedy="Rename one of the two: mixed in one table they could not be told apart.",
        )
    return replace(item, source_name=source_name, updated_at=now.isoformat())
