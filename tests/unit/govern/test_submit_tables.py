"""Submitting: the tables that a schema asks for, before its gate opens."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from tests.registry import put
from tests.unit.govern.test_submit import COLUMNS, content, submit

from lean_ops.govern.gate import RegistryGate
from lean_ops.govern.submit import SchemaRefusedError, Submissions
from lean_ops.model.problem import Problem
from lean_ops.model.registry import Status

if TYPE_CHECKING:
    from lean_ops.govern.store import SchemaFolder
    from lean_ops.model.schema import Schema
    from lean_ops.state.sqlite import SqliteStateStore


class Witness:
    """Tables that remember what the gate said while they were made."""

    def __init__(self, registry: SqliteStateStore, folder: SchemaFolder) -> None:
        self._gates = RegistryGate(registry, folder).gates
        self._folder = folder
        self.seen: list[tuple[str, str | None, bytes | None]] = []

    def problems(self, _: Schema) -> tuple[Problem, ...]:
        return ()

    def ensure(self, schema: Schema) -> None:
        gate = self._gates().get("events")
        opened = gate.schema_version if gate else None
        self.seen.append((schema.schema_version, opened, self._folder.active("events")))


def test_tables_are_made_before_the_schema_is_active_and_the_gate_opens(
    submissions: Submissions, folder: SchemaFolder, registry: SqliteStateStore, now: datetime
) -> None:
    witness = Witness(registry, folder)
    desk = replace(submissions, tables=witness)
    submit(desk, content(), now)
    submit(desk, content("1.1.0"), now)
    assert witness.seen == [("1.0.0", None, None), ("1.1.0", "1.0.0", content())]


@pytest.mark.parametrize("had_active", [False, True])
def test_tables_that_could_not_be_made_leave_everything_as_it_was_and_the_next_submission_succeeds(
    had_active: bool,
    submissions: Submissions,
    folder: SchemaFolder,
    registry: SqliteStateStore,
    tables: Any,
    history: Any,
    now: datetime,
) -> None:
    if had_active:
        submit(submissions, content("0.9.0"), now)
    before, active = registry.item("events"), folder.active("events")
    history.rows.clear()
    tables.failures_to_come = 1
    with pytest.raises(ConnectionError):
        submit(submissions, content(), now)
    assert (registry.item("events"), folder.active("events"), history.rows) == (before, active, [])
    assert submissions.finish_interrupted(now) == ()
    submit(submissions, content("1.1.0"), now)
    item = registry.item("events")
    assert item is not None
    assert (item.status, item.schema_version) == (Status.READY, "1.1.0")
    assert [row["schema_version"] for row in history.rows] == ["1.1.0"]


IN_THE_WAY = Problem(("payload_columns", "note", "type"), "the table has another type", "STRING", "long")


@pytest.mark.parametrize("had_active", [False, True])
def test_a_table_in_the_way_refuses_the_schema_and_touches_nothing(
    had_active: bool,
    submissions: Submissions,
    folder: SchemaFolder,
    registry: SqliteStateStore,
    tables: Any,
    history: Any,
    now: datetime,
) -> None:
    if had_active:
        submit(submissions, content(), now)
    rows, made, active = list(history.rows), list(tables.made_for), folder.active("events")
    tables.in_the_way = (IN_THE_WAY,)
    with pytest.raises(SchemaRefusedError) as refused:
        submit(submissions, content("1.1.0", {**COLUMNS, "note": {}}), now)
    assert refused.value.error_file == folder.root / "events" / "failed" / "error.json"
    assert json.loads(refused.value.error_file.read_bytes())["errors"] == [
        {
            "path": "$.payload_columns.note.type",
            "found": "STRING",
            "expected": "long",
            "message": "the table has another type",
        }
    ]
    assert (folder.active("events"), tables.made_for, history.rows) == (active, made, rows)
    item = registry.item("events")
    assert item is not None
    assert (item.status, item.schema_version) == ((Status.READY, "1.0.0") if had_active else (Status.ERROR, None))
    assert "the table has another type" in str(item.last_error)


def test_the_registry_follows_the_zones_of_the_schema(
    submissions: Submissions, registry: SqliteStateStore, now: datetime
) -> None:
    curated = []
    for version, zones in (("1.0.0", ["standardized"]), ("1.1.0", ["standardized", "curated"])):
        submit(submissions, content(version, zones=zones), now)
        item = registry.item("events")
        assert item is not None
        curated.append(item.curated)
    assert curated == [False, True]


def test_a_registry_that_does_not_know_of_curated_yet_learns_it_from_the_file(
    submissions: Submissions, registry: SqliteStateStore, now: datetime
) -> None:
    submit(submissions, content(), now)
    item = registry.item("events")
    assert item is not None
    put(registry, replace(item, curated=False))
    assert submissions.reconcile_registry("events", now) == item
    assert registry.item("events") == item
