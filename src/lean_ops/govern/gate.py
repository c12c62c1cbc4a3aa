"""The stage gate: nothing is processed before a topic's schema is deployed.

Asked at the start of every run, so it imports no schema model before a schema is really read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import NO_SCHEMA, Flow, Gate, RegistryItem, Status

if TYPE_CHECKING:
    from lean_ops.govern.store import SchemaStore
    from lean_ops.model.schema import Schema
    from lean_ops.state.port import Registry


class RegistryGate:
    """The gates as the registry has them; an open one's schema comes from the schema folder."""

    def __init__(self, registry: Registry, folder: SchemaStore) -> None:
        self._registry = registry
        self._folder = folder

    def gates(self) -> dict[str, Gate]:
        """Every known topic's gate, without declared pointers: no schema file is opened."""
        return {topic: gate_of(item) for topic, item in self._registry.items().items()}

    def gate(self, topic: str) -> Gate:
        """One topic's gate; if it is open, with the version and pointers of the active file."""
        return self._gate(topic, self._registry.item(topic))

    def gate_to_rebuild(self, topic: str) -> Gate:
        """The same for a rebuild, which a pause does not keep back: it may be what the topic waits for."""
        item = self._registry.item(topic)
        return self._gate(topic, item.resumed(item.updated_at or "") if item else None)

    def _gate(self, topic: str, item: RegistryItem | None) -> Gate:
        gate = gate_of(item) if item else NO_SCHEMA
        if not gate.open:
            return gate
        schema = self.schema(topic)
        version, declared = schema.schema_version, schema.declared_pointers()
        return Gate(True, f"schema {version}", version, declared, schema.is_curated)

    def schema_of_version(self, topic: str, version: str) -> Schema:
        """A topic's schema of one version, active or archived: an open batch keeps the schema that it began with."""
        from lean_ops.model.schema import parse_schema

        active = self.schema(topic)
        if active.schema_version == version:
            return active
        for file, content in self._folder.archived(topic, version):
            return parse_schema(content, str(file))
        raise TerminalError(
            f"schema {version} is neither active nor archived",
            where=f"topic {topic!r}",
            found=f"active: {active.schema_version}",
            remedy="Put that version's file back into the topic's archive folder: an open batch was begun with it.",
        )

    def schema(self, topic: str) -> Schema:
        """A topic's active schema, which must be there and readable."""
        file = self._folder.active_file(topic)
        content = self._folder.active(topic)
        if content is None:
            raise TerminalError(
                "the registry says this topic has a schema, but its file is gone",
                where=f"topic {topic!r}",
                expected=str(file),
                remedy="Put the newest file of its archive folder back there, or submit the schema again.",
            )
        return parse_active(content, str(file))


def parse_active(content: bytes, where: str) -> Schema:
    """An active schema, which was good when it was deployed."""
    from lean_ops.model.problem import SchemaError
    from lean_ops.model.schema import parse_schema

    try:
        return parse_schema(content, where)
    except SchemaError as error:
        remedy = "The active schema was changed by hand: put it right, or remove the file and submit the schema again."
        raise SchemaError(where, error.problems, remedy=remedy) from None


def gate_of(item: RegistryItem) -> Gate:
    """The gate as a registry item has it, without the schema's declared pointers."""
    if item.processing_enabled:
        return Gate(True, f"schema {item.schema_version}", item.schema_version or "", curated=item.curated)
    return Gate(open=False, reason=_why_shut(item))


def _why_shut(item: RegistryItem) -> str:
    """The reason in words; a missing schema comes before a pause, because resuming alone would not help."""
    if item.status is Status.DISABLED:
        return "disabled"
    if item.status is Status.ERROR:
        return f"its only schema failed: {item.last_error}"
    if item.flow is Flow.PAUSED and item.status is not Status.NO_SCHEMA:
        return f"paused: {item.flow_reason or 'no reason given'}"
    return NO_SCHEMA.reason
