"""A schema is submitted: validated, compared with the active one, then active or failed; never in between."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from lean_ops.govern.gate import parse_active
from lean_ops.model.change import Change, ChangeClass, classify, compare
from lean_ops.model.problem import Problem, SchemaError
from lean_ops.model.registry import RegistryItem, Status
from lean_ops.model.schema import Schema, parse_schema
from lean_ops.model.strict_json import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lean_ops.govern.schema_files import Place
    from lean_ops.govern.store import Pending, SchemaStore
    from lean_ops.state.port import Registry

_KEPT_STATUS: Final = frozenset({Status.DISABLED, Status.REBUILDING})


class SchemaRefusedError(SchemaError):
    """A submitted schema that did not become active; `error_file` has the same problems."""

    def __init__(self, topic: str, problems: tuple[Problem, ...], error_file: Place, *, had_active: bool) -> None:
        self.error_file = error_file
        stays = "The active schema stays in force." if had_active else "The topic still has no schema."
        super().__init__(f"schema of topic {topic!r}", problems, remedy=f"{stays} The reasons are in {error_file}.")


@dataclass(frozen=True, slots=True)
class Activation:
    """A schema that is active now; `changed` is False when it already was."""

    topic: str
    schema: Schema
    change_class: ChangeClass
    changes: tuple[Change, ...]
    archived: Place | None
    changed: bool = True


class Tables(Protocol):
    """The lake's tables, as far as schemas shape them."""

    def problems(self, schema: Schema) -> Iterable[Problem]:
        """Why the tables that are there can't become what the schema asks for."""

    def ensure(self, schema: Schema) -> None:
        """Make the schema's tables, or bring them up to date."""


@dataclass(frozen=True, slots=True)
class Submissions:
    """The desk where schemas are handed in.

    `tables` makes a schema's tables or brings them up to date; `record_version` appends one row to the schema history.
    After a crash both may see the same schema again.
    """

    folder: SchemaStore
    registry: Registry
    tables: Tables
    record_version: Callable[[Mapping[str, Any]], None]
    can_hash: bool

    def submit(
        self,
        topic: str,
        content: bytes,
        *,
        submitted_by: str,
        now: datetime,
        request: Mapping[str, Any] | None = None,
    ) -> Activation:
        """Make `content` the topic's active schema, or raise SchemaRefusedError and leave the active one alone."""
        with self.folder.locked(topic):
            self._reconcile(topic, now)
            active = self._active(topic)
            if active is not None and self.folder.active(topic) == content:
                return _unchanged(topic, active)
            pending = self.folder.put_pending(topic, content, request)
            return self._judge(topic, pending, active, _History(submitted_by, request), now)

    def submit_pending(self, topic: str, *, submitted_by: str, now: datetime) -> Activation | None:
        """The same for what was uploaded as pending; None if nothing waits there. Safe to repeat at any time."""
        with self.folder.locked(topic):
            self._reconcile(topic, now)
            pending = self.folder.pending(topic)
            if pending is None:
                return None
            active = self._active(topic)
            if active is not None and self.folder.active(topic) == pending.schema.content:
                self.folder.discard(topic, pending)
                return _unchanged(topic, active)
            try:
                history = _History(submitted_by, _request(pending))
            except SchemaError as error:
                raise self._refused(topic, pending, error, now, had_active=active is not None) from None
            return self._judge(topic, pending, active, history, now)

    def _judge(
        self, topic: str, pending: Pending, active: Schema | None, history: _History, now: datetime
    ) -> Activation:
        try:
            schema = self._validated(topic, pending.schema.content, active)
        except SchemaError as error:
            raise self._refused(topic, pending, error, now, had_active=active is not None) from None
        # Before the schema is active: what its gate lets through needs somewhere to go. Tables that this can't
        # make leave the active schema in force.
        self.tables.ensure(schema)
        activation = self._activate(topic, pending, schema, active, history, now)
        self.folder.discard(topic, pending)
        return activation

    def reconcile_registry(self, topic: str, now: datetime) -> RegistryItem | None:
        """Make registry and history follow the folder, finishing what a crash interrupted."""
        with self.folder.locked(topic):
            return self._reconcile(topic, now)

    def finish_interrupted(self, now: datetime) -> tuple[str, ...]:
        """Reconcile every topic whose activation was interrupted; those topics. One folder listing if there is none."""
        topics = self.folder.open_activations()
        for topic in topics:
            self.reconcile_registry(topic, now)
        return topics

    # validation

    def _active(self, topic: str) -> Schema | None:
        content = self.folder.active(topic)
        return None if content is None else parse_active(content, str(self.folder.active_file(topic)))

    def _validated(self, topic: str, content: bytes, active: Schema | None) -> Schema:
        schema = parse_schema(content, topic)
        problems = [*self._problems(topic, schema), *(_steps_back(active, schema) if active else ())]
        if problems:
            raise SchemaError(topic, problems)
        return schema

    def _problems(self, topic: str, schema: Schema) -> Iterator[Problem]:
        if schema.table_name != topic:
            yield Problem(("table_name",), "is not this topic", shown(schema.table_name), shown(topic))
        for name, column in schema.payload_columns.items():
            if column.pii == "hash" and not self.can_hash:
                keys = ("payload_columns", name, "pii")
                yield Problem(keys, "hashing needs a key", '"hash"', "the setting with the key, or pii mask or drop")
        yield from self.tables.problems(schema)

    # success

    def _activate(
        self,
        topic: str,
        pending: Pending,
        schema: Schema,
        active: Schema | None,
        history: _History,
        now: datetime,
    ) -> Activation:
        changes = compare(active, schema) if active else ()
        change_class = classify(changes) if active else ChangeClass.NEW
        note = {
            "topic_name": topic,
            "schema_version": schema.schema_version,
            "change_class": change_class.value,
            "changes": json.dumps([change.to_dict() for change in changes], ensure_ascii=False),
            "submitted_by": history.submitted_by,
            "justification": history.justification,
            "applied_at": now.isoformat(),
        }
        old_version = active.schema_version if active else None
        archived = self.folder.activate(topic, pending.schema.content, old_version, note, now)
        self._reconcile(topic, now)
        return Activation(topic, schema, change_class, changes, archived)

    def _reconcile(self, topic: str, now: datetime) -> RegistryItem | None:
        active = self._active(topic)
        item = self._follow(topic, active, now) if active else self.registry.item(topic)
        if active is not None:
            self._write_history(topic, active)  # after the gate: a topic need not wait for its history
        self.folder.close_activation(topic)
        return item

    def _write_history(self, topic: str, active: Schema) -> None:
        note = self.folder.activation(topic)
        if note is not None and note["schema_version"] == active.schema_version:
            text = (self.folder.active(topic) or b"").decode()
            self.record_version({**note, "schema": text, "applied_at": datetime.fromisoformat(note["applied_at"])})

    def _follow(self, topic: str, active: Schema, now: datetime) -> RegistryItem:
        def ready(item: RegistryItem) -> RegistryItem:
            status = item.status if item.status in _KEPT_STATUS else Status.READY
            known = (item.schema_version, item.status, item.curated)
            if known == (active.schema_version, status, active.is_curated):
                return item
            return replace(
                item,
                status=status,
                schema_version=active.schema_version,
                curated=active.is_curated,
                schema_path=str(self.folder.active_file(topic)),
                error_path=None,
                last_error=None,
                updated_at=now.isoformat(),
            )

        item = self.registry.item(topic) or RegistryItem(topic)
        return item if ready(item) is item else self.registry.update_item(topic, ready)

    # failure

    def _refused(
        self, topic: str, pending: Pending, error: SchemaError, now: datetime, *, had_active: bool
    ) -> SchemaRefusedError:
        errors = [problem.to_dict() for problem in error.problems]
        failed = {"errors": errors, "submitted_at": now.isoformat()}
        file = self.folder.fail(topic, pending.schema.content, failed)

        def told(item: RegistryItem) -> RegistryItem:
            never_ready = not had_active and item.status not in _KEPT_STATUS
            return replace(
                item,
                status=Status.ERROR if never_ready else item.status,
                error_path=str(file),
                last_error=error.summary,
                updated_at=now.isoformat(),
            )

        self.registry.update_item(topic, told)
        self.folder.discard(topic, pending)
        return SchemaRefusedError(topic, error.problems, file, had_active=had_active)


@dataclass(frozen=True, slots=True)
class _History:
    """What the schema history says of a submission beside its changes."""

    submitted_by: str
    request: Mapping[str, Any] | None

    @property
    def justification(self) -> str | None:
        return (self.request or {}).get("justification")


def _unchanged(topic: str, active: Schema) -> Activation:
    return Activation(topic, active, ChangeClass.COMPATIBLE, (), None, changed=False)


def _request(pending: Pending) -> dict[str, Any] | None:
    """What was asked along with an upload; SchemaError if that can't be understood."""
    if pending.request is None:
        return None
    try:
        request = json.loads(pending.request.content)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        raise SchemaError("request", [Problem(("request",), "request.json is not a JSON object")])
    justification = request.get("justification")
    if not isinstance(justification, str | None):
        found = Problem(("request", "justification"), "is no text", shown(justification), "a sentence")
        raise SchemaError("request", [found])
    return request


def _steps_back(active: Schema, schema: Schema) -> Iterator[Problem]:
    """Why a schema may not follow the active one: its version does not rise, or it breaks something."""
    if schema.version <= active.version:
        expected = f"a version above the active {active.schema_version}"
        yield Problem(("schema_version",), "does not rise", shown(schema.schema_version), expected)
    for change in compare(active, schema):
        if change.breaks:
            message = f"breaks the active schema: {change.kind.value}"
            yield Problem(change.keys, message, change.new or "none", change.old or "none")
