"""What submissions promise wherever schema files are kept: judged once, however often, and whoever dies meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.contract.schema_desk import (
    ACTIVE,
    LEASE_SECONDS,
    NOW,
    PENDING,
    DeadError,
    Desk,
    Mortal,
    bucket_files,
    desk,
    files,
    folder_files,
    schema,
    seaweed,
)

from lean_ops.govern.submit import SchemaRefusedError
from lean_ops.govern.uploads import Outcome, judge
from lean_ops.model.errors import TransientError
from lean_ops.model.registry import Status
from lean_ops.model.stored_file import MovedError
from lean_ops.model.strict_json import MAX_BYTES

__all__ = ["bucket_files", "desk", "files", "folder_files", "seaweed"]


def test_an_upload_becomes_active_and_a_repeated_event_changes_nothing(desk: Desk) -> None:
    desk.upload(schema(), b'{"justification": "asked for"}')
    assert desk.judge() is Outcome.ACTIVE
    assert desk.keys() == [ACTIVE]
    assert desk.content(ACTIVE) == schema()
    item = desk.registry.item("events")
    assert item is not None
    assert (item.status, item.schema_version, item.processing_enabled) == (Status.READY, "1.0.0", True)
    assert [(row["schema_version"], row["submitted_by"], row["justification"]) for row in desk.history] == [
        ("1.0.0", "ann", "asked for")
    ]
    assert desk.judge() is Outcome.NOTHING_PENDING
    desk.upload(schema())
    assert desk.judge() is Outcome.ACTIVE_ALREADY
    assert desk.keys() == [ACTIVE]
    assert desk.registry.item("events") == item
    assert len(desk.history) == 1


@pytest.mark.parametrize(
    ("content", "request_file", "told"),
    [
        (b"{", None, "$"),
        (b"", None, "$"),
        (b" " * (MAX_BYTES + 5), None, f"at most {MAX_BYTES}"),
        (schema("0.9.0"), None, "schema_version"),
        (schema("2.0.0").replace(b"events", b"orders"), None, "table_name"),
        (schema("2.0.0"), b"[", "request"),
        (schema("2.0.0"), b'{"justification": 7}', "justification"),
    ],
    ids=["no json", "empty", "too large", "older", "another topic", "bad request", "bad justification"],
)
def test_a_bad_upload_is_put_aside_with_its_reasons_and_leaves_the_active_schema(
    desk: Desk, content: bytes, request_file: bytes | None, told: str
) -> None:
    desk.upload(schema())
    desk.judge()
    desk.upload(content, request_file)
    assert desk.judge() is Outcome.REFUSED
    assert desk.content(ACTIVE) == schema()
    assert desk.keys() == [ACTIVE, "events/failed/error.json", "events/failed/schema.json"]
    assert told in (desk.content("events/failed/error.json") or b"").decode()
    failed = desk.content("events/failed/schema.json")
    assert failed is not None
    assert failed[:MAX_BYTES] == content[:MAX_BYTES]
    item = desk.registry.item("events")
    assert item is not None
    assert item.processing_enabled
    assert item.last_error
    assert desk.judge() is Outcome.NOTHING_PENDING


@pytest.mark.parametrize("folder", ["Events", "dlq", "a b", "events_staging", "%2e"])
def test_an_upload_to_a_folder_that_is_no_topic_is_answered_there_and_registers_nothing(
    desk: Desk, folder: str
) -> None:
    desk.files.write(f"{folder}/pending/schema.json", schema())
    judgement = judge(desk.submissions(), folder, submitted_by="ann", now=NOW)
    assert judgement.outcome is Outcome.REFUSED
    assert "topic" in judgement.problems[0]
    assert desk.files.read(f"{folder}/failed/error.json") is not None
    assert desk.files.read(f"{folder}/pending/schema.json") is None
    assert desk.registry.items() == {}


NEWER = schema("1.1.0", note={})
BAD = schema("1.1.0", user={"type": "INT"})


@pytest.mark.parametrize("way", ["upload", "submit"])
@pytest.mark.parametrize("content", [NEWER, BAD], ids=["activated", "refused"])
def test_a_death_after_any_step_is_made_good_by_doing_the_same_again(desk: Desk, way: str, content: bytes) -> None:
    for step in range(1, 20):
        desk.begin_again()
        if way == "upload":
            desk.upload(content, b'{"justification": "x"}')
        if not _dies(desk, way, content, step):
            break
        assert desk.content(ACTIVE) in {schema(), content}
        desk.now += timedelta(seconds=LEASE_SECONDS + 1)
        assert not _dies(desk, way, content, None)
        _check_end(desk, content)
    assert step in range(4, 10)


def _dies(desk: Desk, way: str, content: bytes, after: int | None) -> bool:
    """Do it, and die after so many changes; whether it came to that."""
    files = Mortal(desk.files, after)
    try:
        if way == "upload":
            desk.judge(files)
        else:
            desk.submissions(files).submit("events", content, submitted_by="ann", now=desk.now)
    except DeadError:
        return True
    except SchemaRefusedError:
        return False
    return False


def _check_end(desk: Desk, content: bytes) -> None:
    item = desk.registry.item("events")
    assert item is not None
    assert item.processing_enabled
    found, archived = desk.keys(), desk.files.keys("events/archive/1.0.0_")
    if content == NEWER:
        assert found == [ACTIVE, *archived]
        assert [desk.content(key) for key in archived] == [schema()]
        assert (desk.content(ACTIVE), item.schema_version) == (NEWER, "1.1.0")
        assert {row["schema_version"] for row in desk.history} == {"1.1.0"}
    else:
        assert found == [ACTIVE, "events/failed/error.json", "events/failed/schema.json"]
        assert (desk.content(ACTIVE), item.schema_version) == (schema(), "1.0.0")
        assert item.last_error
        assert desk.history == []


@pytest.mark.parametrize("first", [NEWER, BAD], ids=["activated", "refused"])
def test_an_upload_that_comes_while_another_is_judged_waits_for_its_own_judgement(desk: Desk, first: bytes) -> None:
    desk.upload(schema())
    desk.judge()
    later = schema("1.2.0", note={}, other={})

    def upload(kind: str, key: str) -> None:
        if kind in {"replace", "write"} and key in {ACTIVE, "events/failed/error.json"}:
            desk.files.write(PENDING, later)

    desk.upload(first)
    desk.judge(Mortal(desk.files, on_change=upload))
    assert desk.content(PENDING) == later
    assert desk.judge() is Outcome.ACTIVE
    assert desk.content(ACTIVE) == later


def test_a_submission_by_hand_takes_nothing_from_an_upload_that_waits(desk: Desk) -> None:
    desk.upload(schema("1.1.0"))
    desk.submissions().submit("events", schema(), submitted_by="bob", now=desk.now)
    assert desk.content(PENDING) == schema("1.1.0")
    assert desk.judge() is Outcome.ACTIVE
    assert [(row["schema_version"], row["submitted_by"]) for row in desk.history] == [
        ("1.0.0", "bob"),
        ("1.1.0", "ann"),
    ]


def test_while_another_submission_is_at_work_a_second_one_is_told_to_come_again(desk: Desk) -> None:
    desk.upload(schema())
    with desk.lock_of(desk)("events"), pytest.raises(TransientError, match="another submission"):
        desk.judge()
    assert desk.keys() == [PENDING]
    assert desk.judge() is Outcome.ACTIVE


def test_the_active_schema_is_never_replaced_by_one_that_was_compared_with_another(desk: Desk) -> None:
    """What a holder does whose lock has expired meanwhile."""
    desk.upload(schema())
    desk.judge()
    desk.upload(NEWER)

    def overtake(kind: str, key: str) -> None:
        if (kind, key) == ("replace", ACTIVE):
            desk.files.write(ACTIVE, schema("1.5.0"))

    with pytest.raises(MovedError):
        desk.judge(Mortal(desk.files, on_change=overtake))
    assert desk.content(ACTIVE) == schema("1.5.0")
    assert desk.content(PENDING) == NEWER
