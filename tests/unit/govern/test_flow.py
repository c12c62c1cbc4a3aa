from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.registry import put

from lean_ops.govern.flow import disable, enable, pause, resume
from lean_ops.model.errors import WrongUseError
from lean_ops.model.registry import Flow, RegistryItem, Status

if TYPE_CHECKING:
    from datetime import datetime

    from lean_ops.govern.submit import Submissions
    from lean_ops.state.sqlite import SqliteStateStore

SCHEMA = b'{"schema_version": "1.0.0", "table_name": "events", "envelope_columns": {}, "payload_columns": {}}'


def test_pause_and_resume(registry: SqliteStateStore, now: datetime) -> None:
    item = RegistryItem("events", Status.READY, schema_version="1.0.0")
    put(registry, item)
    paused = replace(item, flow=Flow.PAUSED, flow_reason="night", updated_at=now.isoformat())
    assert pause(registry, "events", "night", now) == paused
    assert registry.item("events") == paused
    assert resume(registry, "events", now) == replace(item, updated_at=now.isoformat())
    assert registry.item("events") == replace(item, updated_at=now.isoformat())


def test_an_unknown_topic_is_wrong_use_and_near_names_are_told(registry: SqliteStateStore, now: datetime) -> None:
    for name in ("events", "events_eu", "orders"):
        put(registry, RegistryItem(name))
    with pytest.raises(WrongUseError, match=r"topic 'evnts': no such topic. Did you mean events or events_eu\?"):
        pause(registry, "evnts", "x", now)
    with pytest.raises(WrongUseError, match="`lean-ops schema list` shows all topics"):
        resume(registry, "zzz", now)


def test_disable_and_enable(submissions: Submissions, now: datetime) -> None:
    registry = submissions.registry
    submissions.submit("events", SCHEMA, submitted_by="ann", now=now)
    ready = registry.item("events")
    assert ready is not None
    assert disable(registry, "events", now) == replace(ready, status=Status.DISABLED)
    assert enable(submissions, "events", now) == ready
    assert registry.item("events") == ready
    assert enable(submissions, "events", now) == ready


def test_disabling_without_a_schema_is_wrong_use(registry: SqliteStateStore, now: datetime) -> None:
    put(registry, RegistryItem("events"))
    with pytest.raises(WrongUseError, match="no schema is deployed"):
        disable(registry, "events", now)


def test_enabling_without_an_active_schema_is_wrong_use(submissions: Submissions, now: datetime) -> None:
    put(submissions.registry, RegistryItem("events", Status.DISABLED))
    with pytest.raises(WrongUseError, match="Submit one first: `lean-ops schema submit events FILE`"):
        enable(submissions, "events", now)
