"""All topics and their schemas at a glance, fast enough for hundreds of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lean_ops.govern.store import SchemaStore
    from lean_ops.model.registry import RegistryItem
    from lean_ops.state.port import Registry


@dataclass(frozen=True, slots=True)
class TopicLine:
    """One topic's line; columns and zones are None without a readable active schema."""

    topic: str
    status: str
    flow: str
    flow_reason: str | None
    version: str | None
    columns: int | None
    zones: tuple[str, ...] | None
    last_error: str | None


def overview(registry: Registry, folder: SchemaStore) -> tuple[TopicLine, ...]:
    """Every known topic, by name."""
    return tuple(_line(item, folder) for item in registry.items().values())


def _line(item: RegistryItem, folder: SchemaStore) -> TopicLine:
    columns, zones = _size(folder.active(item.topic_name))
    return TopicLine(
        item.topic_name,
        item.status.value,
        item.flow.value,
        item.flow_reason,
        item.schema_version,
        columns,
        zones,
        item.last_error,
    )


def _size(content: bytes | None) -> tuple[int | None, tuple[str, ...] | None]:
    """Number of columns and zones of an active file; it was validated when it came, so plain JSON will do."""
    try:
        document = json.loads(content or b"")
        return len(document["payload_columns"]), tuple(document.get("zones") or ("standardized", "curated"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, None
