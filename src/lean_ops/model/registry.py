"""A topic's registry item: the stage gate's state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """How far a topic's schema is."""

    NO_SCHEMA = "NO_SCHEMA"
    READY = "READY"
    ERROR = "ERROR"
    REBUILDING = "REBUILDING"
    DISABLED = "DISABLED"


class Flow(StrEnum):
    """Whether an open topic is let through."""

    ENABLED = "ENABLED"
    PAUSED = "PAUSED"


@dataclass(frozen=True, slots=True)
class RegistryItem:
    """What is known of one topic."""

    topic_name: str
    status: Status = Status.NO_SCHEMA
    flow: Flow = Flow.ENABLED
    flow_reason: str | None = None
    schema_version: str | None = None
    schema_path: str | None = None
    error_path: str | None = None
    last_error: str | None = None
    source_name: str | None = None
    updated_at: str | None = None
    curated: bool = False

    @property
    def processing_enabled(self) -> bool:
        """The gate: a deployed schema, and nobody paused the topic."""
        return self.status in {Status.READY, Status.REBUILDING} and self.flow is Flow.ENABLED

    def paused(self, reason: str, now: str) -> RegistryItem:
        """The same topic, held back."""
        return replace(self, flow=Flow.PAUSED, flow_reason=reason, updated_at=now)

    def resumed(self, now: str) -> RegistryItem:
        """The same topic, let through again."""
        return replace(self, flow=Flow.ENABLED, flow_reason=None, updated_at=now)


@dataclass(frozen=True, slots=True)
class Gate:
    """The gate's answer for one topic: open with the schema to use, or shut with the reason.

    `curated` says whether the schema leads on from Standardized to Curated.
    """

    open: bool
    reason: str
    schema_version: str = ""
    declared: tuple[str, ...] = ()
    curated: bool = False


NO_SCHEMA: Final = Gate(open=False, reason="no schema deployed")
