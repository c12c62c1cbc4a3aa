from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.bridge.discovery import Choice, FoundTopic, Registered, Status, changes, newest, sorted_out
from lean_ops.model.errors import WrongUseError

NOW = datetime(2026, 2, 6, 12, tzinfo=UTC)
BEGINS = "projects/events-project/topics/"


def path(name: str) -> str:
    return f"{BEGINS}{name}"


def registered(name: str, status: Status = Status.ACTIVE, days_ago: int = 1) -> Registered:
    seen = NOW - timedelta(days=days_ago)
    return Registered(path(name), seen, seen, status)


# which names are topics


def test_names_become_topics_and_those_that_can_not_are_refused_with_the_reason() -> None:
    routes, refused = sorted_out(map(path, ["Meter-Readings.v1", "9lives", "dlq", "x_latest", "events"]), {})
    assert routes == {"events": path("events"), "meter_readings_v1": path("Meter-Readings.v1")}
    assert list(refused) == [path("9lives"), path("dlq"), path("x_latest")]
    assert "not a topic name" in refused[path("9lives")]
    assert "reserved" in refused[path("dlq")]


def test_two_new_names_for_one_topic_are_both_refused() -> None:
    routes, refused = sorted_out([path("a-b"), path("a.b"), path("c")], {})
    assert routes == {"c": path("c")}
    assert set(refused) == {path("a-b"), path("a.b")}
    assert "topic a_b" in refused[path("a-b")]
    assert path("a.b") in refused[path("a-b")]


def test_a_newcomer_does_not_take_the_name_of_a_topic_that_is_known() -> None:
    routes, refused = sorted_out([path("a-b"), path("A.b")], {"a_b": registered("A.b")})
    assert routes == {"a_b": path("A.b")}
    assert set(refused) == {path("a-b")}


names = st.lists(st.text("aAbB-._9", min_size=1, max_size=4), max_size=12, unique=True)


@given(names, names)
def test_every_name_is_either_a_topic_or_refused_and_no_topic_has_two(found: list[str], known: list[str]) -> None:
    before, _ = sorted_out(map(path, known), {})
    knows = {topic: Registered(of, NOW, NOW, Status.ACTIVE) for topic, of in before.items()}
    routes, refused = sorted_out(map(path, found), knows)
    assert sorted([*routes.values(), *refused]) == sorted(map(path, found))
    for topic, of in before.items():
        if of in map(path, found):
            assert routes[topic] == of


# what changes in the registry


def test_rows_are_written_for_changes_only() -> None:
    known = {
        "same": registered("same"),
        "went": registered("went"),
        "was_gone": registered("was_gone", Status.GONE),
        "stays_gone": registered("stays_gone", Status.GONE),
        "moved": registered("moved"),
        "elsewhere": Registered("projects/other/topics/elsewhere", NOW, NOW, Status.ACTIVE),
    }
    routes = {"same": path("same"), "was_gone": path("was_gone"), "moved": path("Moved"), "new": path("new")}
    rows = changes(routes, known, BEGINS, NOW)
    first = NOW - timedelta(days=1)
    assert rows == {
        "was_gone": Registered(path("was_gone"), first, NOW, Status.ACTIVE),
        "moved": Registered(path("Moved"), first, NOW, Status.ACTIVE),
        "new": Registered(path("new"), NOW, NOW, Status.ACTIVE),
        "went": Registered(path("went"), first, NOW, Status.GONE),
    }


def test_topics_that_were_not_looked_for_are_not_gone() -> None:
    known = {"orders": registered("orders"), "events": registered("events")}
    assert list(changes({}, known, Choice("events-project", "ev").begins, NOW)) == ["events"]


def test_the_latest_row_is_how_a_topic_is() -> None:
    def row(days: int, status: str) -> dict[str, object]:
        seen = NOW + timedelta(days=days)
        return {
            "topic_name": "a",
            "pubsub_topic": "p",
            "first_seen_at": NOW,
            "last_seen_at": seen,
            "status": status,
        }

    rows = [row(0, "ACTIVE"), row(2, "ACTIVE"), row(1, "GONE")]
    assert newest(rows)["a"].status is Status.ACTIVE
    assert newest(reversed(rows)) == newest(rows)
    assert newest([*rows, row(3, "GONE")])["a"].status is Status.GONE


# which topics are for the lake


def test_topics_are_chosen_by_project_prefix_and_label() -> None:
    topic = FoundTopic(path("meters-a"), {"lake": "yes"})
    assert Choice.of("events-project", "", "").takes(topic)
    assert Choice.of("events-project", "meters-", "lake=yes").takes(topic)
    assert not Choice.of("events-project", "orders-", "").takes(topic)
    assert not Choice.of("events-project", "", "lake=no").takes(topic)
    assert not Choice.of("events", "", "").takes(topic)
    for wrong in ("lake", "=yes"):
        with pytest.raises(WrongUseError, match="KEY=VALUE"):
            Choice.of("events-project", "", wrong)
