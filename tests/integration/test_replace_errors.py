"""A topic's error rows give way to those of its rebuild in one commit; what replays noted stays where it is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lean_ops.lake.append import write_files
from lean_ops.lake.replace_errors import ErrorRows
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

AT = datetime(2026, 2, 3, 10, tzinfo=UTC)
REBUILD = "rebuild-batch"


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    made = Services(load_settings({"home": tmp_path / "home"}, environ={}))
    made.lake.ensure_shared()
    yield made
    made.close()


def row(
    message_id: str, status: str = "NEW", *, topic: str = "events", batch: str = "old", **more: Any
) -> dict[str, Any]:
    usual = {"message_id": message_id, "topic_name": topic, "batch_id": batch, "replay_status": status}
    said = {"error_type": "INVALID_JSON", "error_message": "stopped", "raw_payload": "{", "publish_time": AT}
    return {**usual, **said, "replay_id": None if status == "NEW" else "r1", **more}


def set_aside(services: Services, *rows: dict[str, Any]) -> ErrorRows:
    """The rebuild's rows as files that no snapshot has."""
    lake = services.lake
    table = lake.load(lake.names.parse_errors)
    values = pa.Table.from_pylist([{**one, "batch_id": REBUILD} for one in rows], schema=table.schema().as_arrow())
    paths = [file.file_path for file in write_files(table, values)]
    return ErrorRows(lake, lake.names.parse_errors, "events", REBUILD, paths)


def live(services: Services, *rows: dict[str, Any]) -> None:
    services.shared.append_rows(services.lake.names.parse_errors, rows)


def found(services: Services) -> list[tuple[str, str, str, str, str | None]]:
    names = ("topic_name", "message_id", "batch_id", "replay_status", "replay_id")
    rows = services.lake.load(services.lake.names.parse_errors).scan().to_arrow().to_pylist()
    return sorted(tuple(one[name] for name in names) for one in rows)


def nothing() -> None:
    """Nobody has taken the lease."""


def test_only_the_topics_rows_are_replaced_and_marks_go_over(services: Services) -> None:
    live(services, row("a"), row("b", "FAILED"), row("c"), row("x", topic="other"))
    rows = set_aside(services, row("a"), row("b"), row("new"))
    rows.replace(nothing)
    assert found(services) == [
        ("events", "a", REBUILD, "NEW", None),
        ("events", "b", REBUILD, "FAILED", "r1"),
        ("events", "new", REBUILD, "NEW", None),
        ("other", "x", "old", "NEW", None),
    ]


def test_a_message_that_was_fixed_keeps_its_row_unless_it_is_refused_again(services: Services) -> None:
    live(services, row("fixed", "FIXED"), row("refused", "FIXED"))
    rows = set_aside(services, row("refused"))
    assert rows.kept() == 1
    rows.replace(nothing)
    assert found(services) == [
        ("events", "fixed", "old", "FIXED", "r1"),
        ("events", "refused", REBUILD, "NEW", None),
    ]
    assert rows.kept() == 1


def test_a_copy_of_another_time_is_another_message(services: Services) -> None:
    live(services, row("a", "FAILED"))
    set_aside(services, row("a", publish_time=AT + timedelta(microseconds=1))).replace(nothing)
    assert found(services) == [("events", "a", REBUILD, "NEW", None)]


def test_doing_it_again_changes_nothing(services: Services) -> None:
    live(services, row("a"))
    rows = set_aside(services, row("a"), row("b"))
    rows.replace(nothing)
    live(services, row("later", batch="newer"))
    before = found(services)
    rows.replace(nothing)
    assert found(services) == before
    assert len(before) == 3


def test_without_rows_on_either_side_nothing_is_committed(services: Services) -> None:
    live(services, row("x", topic="other"))
    head = services.lake.load(services.lake.names.parse_errors).metadata.current_snapshot_id
    set_aside(services).replace(nothing)
    assert services.lake.load(services.lake.names.parse_errors).metadata.current_snapshot_id == head


def test_rows_go_if_the_rebuild_refuses_nothing(services: Services) -> None:
    live(services, row("a"), row("x", topic="other"))
    set_aside(services).replace(nothing)
    assert found(services) == [("other", "x", "old", "NEW", None)]


def test_who_lost_the_right_to_write_learns_it_before_the_commit(services: Services) -> None:
    class LostError(Exception):
        """The lease is another's."""

    def lost() -> None:
        raise LostError

    live(services, row("a"))
    with pytest.raises(LostError):
        set_aside(services, row("a")).replace(lost)
    assert found(services) == [("events", "a", "old", "NEW", None)]


def test_what_others_write_meanwhile_is_seen_and_stays(services: Services) -> None:
    live(services, row("a"))
    rows = set_aside(services, row("a"))
    looks: list[Callable[[], None]] = []

    def confirm() -> None:
        if not looks:
            live(services, row("x", topic="other"), row("late", "FIXED"))
        looks.append(nothing)

    rows.replace(confirm)
    assert len(looks) == 2
    assert found(services) == [
        ("events", "a", REBUILD, "NEW", None),
        ("events", "late", "old", "FIXED", "r1"),
        ("other", "x", "old", "NEW", None),
    ]


def test_the_difference_tells_what_goes_comes_and_says_something_else(services: Services) -> None:
    live(services, row("same"), row("gone"), row("other"), row("fixed", "FIXED"), row("x", topic="other"))
    rows = set_aside(services, row("same"), row("other", error_message="elsewhere"), row("new"))
    difference = rows.difference()
    assert (difference.before, difference.after) == (4, 4)
    assert (difference.gone, difference.new, difference.changed) == (1, 1, 1)
    assert difference.ids == {"gone": ["gone"], "new": ["new"], "changed": ["other"]}
    assert not difference.is_none
