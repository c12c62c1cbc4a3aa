"""Putting a registry item in place, whatever was there."""

from __future__ import annotations

from lean_ops.model.registry import RegistryItem
from lean_ops.state.port import Registry


def put(registry: Registry, item: RegistryItem) -> RegistryItem:
    return registry.update_item(item.topic_name, lambda _: item)
