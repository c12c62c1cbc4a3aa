"""What a person does to a topic's gate: pause and resume its flow, disable and enable its schema."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from lean_ops.model.errors import WrongUseError
from lean_ops.model.registry import RegistryItem, Status

if TYPE_CHECKING:
    from datetime import datetime

    from lean_ops.govern.submit import Submissions
    from lean_ops.state.port import Registry


def known_item(registry: Registry, topic: str) -> RegistryItem:
    """A topic's item, or WrongUseError that names topics it may have been meant for."""
    item = registry.item(topic)
    if item is None:
        near = get_close_matches(topic, registry.items(), n=3, cutoff=0.6)
        raise WrongUseError(
            "no such topic",
            where=f"topic {topic!r}",
            remedy=f"Did you mean {' or '.join(near)}?" if near else "`lean-ops schema list` shows all topics.",
        )
    return item


def pause(registry: Registry, topic: str, reason: str, now: datetime) -> RegistryItem:
    """Stop a topic between batches until somebody resumes it."""
    known_item(registry, topic)
    return registry.update_item(topic, lambda item: item.paused(reason, now.isoformat()))


def resume(registry: Registry, topic: str, now: datetime) -> RegistryItem:
    """Let a paused topic go on."""
    known_item(registry, topic)
    return registry.update_item(topic, lambda item: item.resumed(now.isoformat()))


def disable(registry: Registry, topic: str, now: datetime) -> RegistryItem:
    """Shut a topic's gate whatever schema it has or gets."""
    item = known_item(registry, topic)
    if item.schema_version is None:
        raise WrongUseError("its gate is shut already: no schema is deployed", where=f"topic {topic!r}")
    return _set_status(registry, topic, Status.DISABLED, now)


def enable(submissions: Submissions, topic: str, now: datetime) -> RegistryItem:
    """Open the gate of a disabled topic again, with the schema that is active in the folder."""
    item = known_item(submissions.registry, topic)
    if submissions.folder.active(topic) is None:
        raise WrongUseError(
            "there is no active schema to enable",
            where=f"topic {topic!r}",
            remedy=f"Submit one first: `lean-ops schema submit {topic} FILE`.",
        )
    if item.status is Status.DISABLED:
        _set_status(submissions.registry, topic, Status.READY, now)
    return submissions.reconcile_registry(topic, now) or item


def _set_status(registry: Registry, topic: str, status: Status, now: datetime) -> RegistryItem:
    return registry.update_item(topic, lambda item: replace(item, status=status, updated_at=now.isoformat()))
