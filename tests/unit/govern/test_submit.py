"""Submitting: pending, active, failed and archive, the registry beside them, and a crash at every step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.registry import put

from lean_ops.govern.gate import RegistryGate
from lean_ops.govern.submit import Activation, SchemaRefusedError, Submissions
from lean_ops.model.change import ChangeClass
from lean_ops.model.problem import SchemaError
from lean_ops.model.registry import Flow, RegistryItem, Status

if TYPE_CHECKING:
    from lean_ops.govern.store import SchemaFolder
    from lean_ops.state.sqlite import SqliteStateStore

COLUMNS: dict[str, Any] = {"user_id": {"json_path": "$.event.userId"}, "amount": {"type": "INT", "min": 0}}


def content(version: str = "1.0.0", columns: dict[str, Any] | None = None, **keys: Any) -> bytes:
    base = {"schema_version": version, "table_name": "events", "envelope_columns": {}}
    return json.dumps({**base, "payload_columns": COLUMNS if columns is None else columns, **keys}).encode()


def submit(submissions: Submissions, text: bytes, now: datetime, **keys: Any) -> Activation:
    return submissions.submit("events", text, submitted_by="ann", now=now, **keys)


def files_of(folder: SchemaFolder) -> dict[str, bytes]:
    topic = folder.root / "events"
    files = (file for file in topic.rglob("*") if file.is_file() and file.name != ".lock")
    return {str(file.relative_to(topic)): file.read_bytes() for file in files}


def test_a_first_schema_becomes_active_and_opens_the_gate(
    submissions: Submissions, folder: SchemaFolder, registry: SqliteStateStore, history: Any, now: datetime
) -> None:
    activation = submit(submissions, content(), now)
    assert (activation.change_class, activation.changes, activation.archived) == (ChangeClass.NEW, (), None)
    assert files_of(folder) == {"active/schema.json": content()}
    assert registry.item("events") == RegistryItem(
        "events",
        Status.READY,
        schema_version="1.0.0",
        schema_path=str(folder.root / "events" / "active" / "schema.json"),
        updated_at="2026-02-03T10:15:30+00:00",
        curated=True,
    )
    assert history.rows == [
        {
            "topic_name": "events",
            "schema_version": "1.0.0",
            "change_class": "NEW",
            "changes": "[]",
            "schema": content().decode(),
            "submitted_by": "ann",
            "justification": None,
            "applied_at": now,
        }
    ]


def test_a_later_version_takes_over_and_the_old_one_is_archived(
    submissions: Submissions, folder: SchemaFolder, registry: SqliteStateStore, history: Any, now: datetime
) -> None:
    newer = content("1.1.0", {**COLUMNS, "note": {}})
    submit(submissions, content(), now)
    activation = submit(submissions, newer, now + timedelta(hours=1), request={"justification": "asked for"})
    assert activation.change_class is ChangeClass.ENHANCEMENT
    assert activation.archived == folder.root / "events" / "archive" / "1.0.0_20260203T111530Z.json"
    assert files_of(folder) == {"active/schema.json": newer, "archive/1.0.0_20260203T111530Z.json": content()}
    item = registry.item("events")
    assert item is not None
    assert (item.status, item.schema_version) == (Status.READY, "1.1.0")
    row = history.rows[1]
    assert (row["schema_version"], row["change_class"], row["justification"]) == ("1.1.0", "ENHANCEMENT", "asked for")
    assert json.loads(row["changes"]) == [
        {
            "path": "$.payload_columns.note",
            "kind": "COLUMN_ADDED",
            "change_class": "ENHANCEMENT",
            "old": None,
            "new": "STRING",
        }
    ]


def test_the_active_file_again_changes_nothing(
    submissions: Submissions, folder: SchemaFolder, registry: SqliteStateStore, tables: Any, history: Any, now: datetime
) -> None:
    submit(submissions, content(), now)
    before = registry.item("events")
    activation = submit(submissions, content(), now + timedelta(hours=1))
    assert not activation.changed
    assert files_of(folder) == {"active/schema.json": content()}
    assert registry.item("events") == before
    assert len(history.rows) == 1
    assert tables.made_for == ["1.0.0"]


BAD_UPLOADS: list[tuple[bytes, list[dict[str, str | None]]]] = [
    (
        content("1.0.0", {**COLUMNS, "note": {}}),
        [
            {
                "path": "$.schema_version",
                "found": '"1.0.0"',
                "expected": "a version above the active 1.0.0",
                "message": "does not rise",
            }
        ],
    ),
    (
        content("0.9.0", {"amount": {"type": "DOUBLE", "min": 0}}),
        [
            {
                "path": "$.schema_version",
                "found": '"0.9.0"',
                "expected": "a version above the active 1.0.0",
                "message": "does not rise",
            },
            {
                "path": "$.payload_columns.user_id",
                "found": "none",
                "expected": "STRING",
                "message": "breaks the active schema: column removed",
            },
            {
                "path": "$.payload_columns.amount.type",
                "found": "DOUBLE",
                "expected": "INT",
                "message": "breaks the active schema: type changed",
            },
        ],
    ),
    (
        content("1.1.0", table_name="orders"),
        [
            {
                "path": "$.table_name",
                "found": '"orders"',
                "expected": '"events"',
                "message": "is not this topic",
            },
            {
                "path": "$.table_name",
                "found": "orders",
                "expected": "events",
                "message": "breaks the active schema: table renamed",
            },
        ],
    ),
    (
        content("1.1.0", {**COLUMNS, "email": {"pii": "hash"}}),
        [
            {
                "path": "$.payload_columns.email.pii",
                "found": '"hash"',
                "expected": "the setting with the key, or pii mask or drop",
                "message": "hashing needs a key",
            }
        ],
    ),
    (
        content("1.1.0", {**COLUMNS, "amount": {"type": "MONEY"}}),
        [
            {
                "path": "$.payload_columns.amount.type",
                "found": '"MONEY"',
                "expected": "STRING, INT, BIGINT, DOUBLE, DECIMAL(p,s) with 1 <= p <= 38 and 0 <= s <= p, BOOLEAN,"
                " DATE or TIMESTAMP",
                "message": "wrong value",
            }
        ],
    ),
]


@pytest.mark.parametrize(("bad", "errors"), BAD_UPLOADS)
def test_one_bad_upload_never_disturbs_the_active_schema(
    bad: bytes,
    errors: list[dict[str, str | None]],
    submissions: Submissions,
    folder: SchemaFolder,
    registry: SqliteStateStore,
    history: Any,
    now: datetime,
) -> None:
    submit(submissions, content(), now)
    gate = RegistryGate(registry, folder)
    before = gate.gate("events")
    with pytest.raises(SchemaRefusedError, match="The active schema stays in force") as caught:
        submit(submissions, bad, now + timedelta(hours=1), request={"justification": "because"})
    files = files_of(folder)
    error_file = folder.root / "events" / "failed" / "error.json"
    assert set(files) == {"active/schema.json", "failed/schema.json", "failed/error.json"}
    assert files["active/schema.json"] == content()
    assert files["failed/schema.json"] == bad
    assert json.loads(files["failed/error.json"]) == {"errors": errors, "submitted_at": "2026-02-03T11:15:30+00:00"}
    assert caught.value.error_file == error_file
    item = registry.item("events")
    assert item is not None
    assert (item.status, item.schema_version, item.error_path) == (Status.READY, "1.0.0", str(error_file))
    assert item.last_error == caught.value.summary
    assert gate.gate("events") == before
    assert len(history.rows) == 1


def test_a_bad_first_schema_leaves_the_gate_shut_with_the_reason(
    submissions: Submissions, folder: SchemaFolder, registry: SqliteStateStore, now: datetime
) -> None:
    with pytest.raises(SchemaRefusedError, match="The topic still has no schema"):
        submit(submissions, b"{", now)
    assert set(files_of(folder)) == {"failed/schema.json", "failed/error.json"}
    item = registry.item("events")
    assert item is not None
    assert item.status is Status.ERROR
    gate = RegistryGate(registry, folder).gate("events")
    assert not gate.open
    assert gate.reason.startswith("its only schema failed: $: the file is not JSON; found ")


def test_a_good_schema_after_a_bad_one_clears_the_error(
    submissions: Submissions, registry: SqliteStateStore, now: datetime
) -> None:
    with pytest.raises(SchemaRefusedError):
        submit(submissions, b"{", now)
    submit(submissions, content(), now)
    item = registry.item("events")
    assert item is not None
    assert (item.status, item.error_path, item.last_error) == (Status.READY, None, None)


@pytest.mark.parametrize(
    ("kept", "status"),
    [
        ({"flow": Flow.PAUSED, "flow_reason": "night"}, Status.READY),
        ({"status": Status.DISABLED}, Status.DISABLED),
        ({"status": Status.REBUILDING}, Status.REBUILDING),
        ({"source_name": "events.v1"}, Status.READY),
    ],
)
def test_a_submission_keeps_what_a_person_or_the_source_decided(
    kept: dict[str, Any], status: Status, submissions: Submissions, registry: SqliteStateStore, now: datetime
) -> None:
    submit(submissions, content(), now)
    item = registry.item("events")
    assert item is not None
    put(registry, replace(item, **kept))
    submit(submissions, content("1.1.0"), now)
    assert registry.item("events") == replace(item, **{**kept, "status": status}, schema_version="1.1.0")


def test_a_broken_active_file_is_told_and_nothing_is_touched(
    submissions: Submissions, folder: SchemaFolder, now: datetime
) -> None:
    submit(submissions, content(), now)
    folder.active_file("events").write_bytes(b"{}")
    with pytest.raises(SchemaError, match="active schema was changed by hand"):
        submit(submissions, content("1.1.0"), now)
    assert files_of(folder) == {"active/schema.json": b"{}"}


class CrashError(Exception):
    pass


class CrashingRegistry:
    """A registry whose process ends at the first write."""

    def __init__(self, registry: SqliteStateStore) -> None:
        self._registry = registry
        self.item = registry.item
        self.items = registry.items
        self.claim_name = registry.claim_name

    def update_item(self, topic: str, change: Callable[[RegistryItem], RegistryItem]) -> RegistryItem:
        raise CrashError(topic, change)


@pytest.mark.parametrize("had_active", [False, True])
def test_a_crash_between_the_file_and_the_registry_is_made_good(
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
    history.rows.clear()
    with pytest.raises(CrashError):
        submit(replace(submissions, registry=CrashingRegistry(registry)), content(), now)
    assert folder.active("events") == content()
    assert folder.open_activations() == ("events",)
    assert history.rows == []
    assert tables.made_for[-1] == "1.0.0"
    assert submissions.finish_interrupted(now + timedelta(hours=1)) == ("events",)
    item = registry.item("events")
    assert item is not None
    assert (item.status, item.schema_version) == (Status.READY, "1.0.0")
    assert [(row["schema_version"], row["applied_at"], row["submitted_by"]) for row in history.rows] == [
        ("1.0.0", now, "ann")
    ]
    assert submissions.finish_interrupted(now) == ()


def test_a_crash_before_the_history_is_written_is_made_good_by_the_next_submission(
    submissions: Submissions, registry: SqliteStateStore, history: Any, now: datetime
) -> None:
    history.failures_to_come = 1
    with pytest.raises(ConnectionError):
        submit(submissions, content(), now)
    item = registry.item("events")
    assert item is not None
    assert item.processing_enabled, "the topic need not wait for its history"
    submit(submissions, content("1.1.0"), now)
    assert [row["schema_version"] for row in history.rows] == ["1.0.0", "1.1.0"]


def crash_at_replace(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    replace_file = Path.replace

    def crashing(self: Path, other: Path) -> Path:
        if f"{Path(other).parent.name}/{Path(other).name}".startswith(target):
            raise CrashError(target)
        return replace_file(self, other)

    monkeypatch.setattr(Path, "replace", crashing)


@pytest.mark.parametrize(
    "target",
    ["pending/request.json", "pending/schema.json", "pending/activation.json", "archive/", "active/schema.json"],
)
def test_a_crash_at_any_move_leaves_the_old_schema_active(
    target: str,
    submissions: Submissions,
    folder: SchemaFolder,
    registry: SqliteStateStore,
    history: Any,
    now: datetime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submit(submissions, content(), now)
    before = registry.item("events")
    with monkeypatch.context() as patch:
        crash_at_replace(patch, target)
        with pytest.raises(CrashError):
            submit(submissions, content("1.1.0"), now, request={"justification": "x"})
    assert folder.active("events") == content()
    submissions.finish_interrupted(now)
    assert registry.item("events") == before
    activation = submit(submissions, content("1.1.0"), now + timedelta(hours=1))
    files = files_of(folder)
    assert activation.archived is not None
    assert set(files) == {"active/schema.json", f"archive/{activation.archived.name}"}
    assert files["active/schema.json"] == content("1.1.0")
    assert [row["schema_version"] for row in history.rows] == ["1.0.0", "1.1.0"]


@pytest.mark.parametrize("target", ["failed/error.json", "failed/schema.json"])
def test_a_crash_while_refusing_leaves_the_active_schema_alone(
    target: str, submissions: Submissions, folder: SchemaFolder, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(submissions, content(), now)
    with monkeypatch.context() as patch:
        crash_at_replace(patch, target)
        with pytest.raises(CrashError):
            submit(submissions, b"{", now)
    assert folder.active("events") == content()
    assert submit(submissions, content("1.1.0"), now).schema.schema_version == "1.1.0"


@pytest.mark.parametrize(
    ("item", "status"),
    [
        (None, Status.READY),
        (RegistryItem("events"), Status.READY),
        (RegistryItem("events", Status.ERROR, last_error="x", error_path="y"), Status.READY),
        (RegistryItem("events", Status.DISABLED), Status.DISABLED),
    ],
)
def test_the_registry_follows_the_folder(
    item: RegistryItem | None, status: Status, submissions: Submissions, folder: SchemaFolder, now: datetime
) -> None:
    folder.active_file("events").parent.mkdir(parents=True)
    folder.active_file("events").write_bytes(content())
    if item is not None:
        put(submissions.registry, item)
    assert submissions.reconcile_registry("events", now) == RegistryItem(
        "events",
        status,
        schema_version="1.0.0",
        schema_path=str(folder.active_file("events")),
        updated_at=now.isoformat(),
        curated=True,
    )


def test_without_an_active_schema_there_is_nothing_to_follow(submissions: Submissions, now: datetime) -> None:
    assert submissions.reconcile_registry("events", now) is None
