from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.model.errors import WrongUseError
from lean_ops.model.tables import Names
from lean_ops.model.topic import normalise, parse_topic


@pytest.mark.parametrize(
    ("source_name", "topic"),
    [
        ("events", "events"),
        ("My-Topic.v2", "my_topic_v2"),
        ("A", "a"),
        ("a__b", "a__b"),
        ("a--b..c", "a__b__c"),
        ("latest", "latest"),
        ("staging", "staging"),
        ("latest_events", "latest_events"),
        ("dlq2", "dlq2"),
        ("my_errors", "my_errors"),
        ("x" * 63, "x" * 63),
    ],
)
def test_a_source_name_becomes_its_topic(source_name: str, topic: str) -> None:
    assert parse_topic(source_name) == topic


@pytest.mark.parametrize(
    "source_name",
    [
        "",
        " ",
        "x" * 64,
        "1events",
        "_events",
        "-events",
        ".",
        "a b",
        "a/b",
        "../a",
        "a'b",
        "a;drop table",
        "a\n",
        "\na",
        "a\x00",
        "événements",
        "a\u0307",
        "\uff41",
        "a`b",
        "projects/p/topics/t",
    ],
)
def test_a_name_that_can_not_be_a_topic_is_wrong_use(source_name: str) -> None:
    with pytest.raises(WrongUseError, match="not a topic name") as refused:
        parse_topic(source_name)
    assert refused.value.where == f"topic {source_name!r}"


@pytest.mark.parametrize(
    "source_name",
    [
        "dlq",
        "DLQ",
        "errors",
        "parse_errors",
        "parse-errors",
        "dlq.errors",
        "events_latest",
        "events-Latest",
        "a_staging",
    ],
)
def test_reserved_names_are_wrong_use_however_they_are_spelt(source_name: str) -> None:
    with pytest.raises(WrongUseError, match="this name is reserved"):
        parse_topic(source_name)


@given(st.text(max_size=70) | st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,62}", fullmatch=True))
def test_whatever_is_accepted_is_a_topic_that_stands_for_itself(source_name: str) -> None:
    try:
        topic = parse_topic(source_name)
    except WrongUseError:
        return
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,62}", topic)
    assert parse_topic(topic) == topic == normalise(topic) == normalise(source_name)


@given(st.from_regex(r"[a-z][a-z0-9_]{0,62}", fullmatch=True))
def test_no_topics_tables_are_named_like_a_shared_table_or_another_topics(name: str) -> None:
    try:
        topic = parse_topic(name)
    except WrongUseError:
        return
    names = Names()
    own = {names.raw(topic), names.standardized(topic), names.curated(topic)}
    assert not own & set(names.shared)
    assert len(own) == 3
    assert not names.raw(topic).table.endswith("_latest")
