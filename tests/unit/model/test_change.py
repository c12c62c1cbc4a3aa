"""Comparing schemas: a table of single changes, and properties over any two schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.model.change import Change, ChangeClass, ChangeKind, classify, compare
from lean_ops.model.schema import Schema, parse_schema


def schema_of(columns: dict[str, Any] | None = None, **keys: Any) -> Schema:
    base = {"schema_version": "1.0.0", "table_name": "events", "envelope_columns": {}}
    return parse_schema(json.dumps({**base, "payload_columns": columns or {}, **keys}), "x.json")


def change_of_column(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str]]:
    changes = compare(schema_of({"x": old}), schema_of({"x": new}))
    return [
        (change.path.removeprefix("$.payload_columns.x."), change.kind.name, change.change_class) for change in changes
    ]


COLUMN_CHANGES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, {"description": "d"}, "DESCRIPTION", "COMPATIBLE"),
    ({"required": True}, {}, "PRESENCE_LOOSENED", "COMPATIBLE"),
    ({"cde": True}, {"cde": False}, "PRESENCE_LOOSENED", "COMPATIBLE"),
    ({"required": True}, {"cde": True}, "PRESENCE_MARK", "COMPATIBLE"),
    ({}, {"required": True}, "PRESENCE_TIGHTENED", "BREAKING"),
    ({}, {"cde": True}, "PRESENCE_TIGHTENED", "BREAKING"),
    ({}, {"default": "a"}, "DEFAULT", "COMPATIBLE"),
    ({"default": "a"}, {"default": "b"}, "DEFAULT", "COMPATIBLE"),
    ({"default": "a"}, {}, "DEFAULT", "COMPATIBLE"),
    ({"default": "a", "required": True}, {"required": True}, "PRESENCE_TIGHTENED", "BREAKING"),
    ({"enum": ["a"]}, {"enum": ["b", "a"]}, "RULE_LOOSENED", "COMPATIBLE"),
    ({"enum": ["a"]}, {}, "RULE_LOOSENED", "COMPATIBLE"),
    ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}, "RULE_TIGHTENED", "BREAKING"),
    ({}, {"enum": ["a"]}, "RULE_TIGHTENED", "BREAKING"),
    ({"pattern": "a+"}, {}, "RULE_LOOSENED", "COMPATIBLE"),
    ({"pattern": "a+"}, {"pattern": "a*"}, "RULE_TIGHTENED", "BREAKING"),
    ({}, {"pattern": "a+"}, "RULE_TIGHTENED", "BREAKING"),
    ({"type": "INT", "min": 1}, {"type": "INT", "min": 0}, "RULE_LOOSENED", "COMPATIBLE"),
    ({"type": "INT", "min": 9}, {"type": "INT", "min": 10}, "RULE_TIGHTENED", "BREAKING"),
    ({"type": "INT"}, {"type": "INT", "min": 0}, "RULE_TIGHTENED", "BREAKING"),
    ({"type": "INT", "min": 0}, {"type": "INT"}, "RULE_LOOSENED", "COMPATIBLE"),
    ({"type": "INT", "max": 9}, {"type": "INT", "max": 10}, "RULE_LOOSENED", "COMPATIBLE"),
    ({"type": "INT", "max": 10}, {"type": "INT", "max": 9}, "RULE_TIGHTENED", "BREAKING"),
    ({"type": "INT"}, {"type": "BIGINT"}, "TYPE_WIDENED", "ENHANCEMENT"),
    ({"type": "DECIMAL(10,2)"}, {"type": "DECIMAL(12,2)"}, "TYPE_WIDENED", "ENHANCEMENT"),
    ({"type": "DECIMAL(12,2)"}, {"type": "DECIMAL(10,2)"}, "TYPE_CHANGED", "BREAKING"),
    ({"type": "DECIMAL(10,2)"}, {"type": "DECIMAL(12,3)"}, "TYPE_CHANGED", "BREAKING"),
    ({"type": "BIGINT"}, {"type": "INT"}, "TYPE_CHANGED", "BREAKING"),
    ({"type": "INT"}, {"type": "DOUBLE"}, "TYPE_CHANGED", "BREAKING"),
    ({"type": "INT"}, {}, "TYPE_CHANGED", "BREAKING"),
    ({"type": "TIMESTAMP"}, {"type": "TIMESTAMP", "format": "epoch_s"}, "FORMAT_CHANGED", "BREAKING"),
    ({"json_path": "$.a"}, {"json_path": "$.b"}, "SOURCE_CHANGED", "BREAKING"),
    ({}, {"json_path": "$.x"}, "SOURCE_CHANGED", "BREAKING"),
    ({}, {"pii": "hash"}, "PII_CHANGED", "BREAKING"),
    ({"pii": "hash"}, {"pii": "drop"}, "PII_CHANGED", "BREAKING"),
]


@pytest.mark.parametrize(("old", "new", "kind", "change_class"), COLUMN_CHANGES)
def test_one_change_of_a_column(old: dict[str, Any], new: dict[str, Any], kind: str, change_class: str) -> None:
    assert [found[1:] for found in change_of_column(old, new)] == [(kind, change_class)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "DECIMAL(5,2)", "min": 1}, {"type": "DECIMAL(5, 2)", "min": "1.00"}),
        ({"enum": ["a", "b"]}, {"enum": ["b", "a", "a"]}),
        ({"json_path": "$.a.b"}, {"json_path": "$['a'].b"}),
        ({"type": "TIMESTAMP"}, {"type": "TIMESTAMP", "format": "iso"}),
        ({"required": False}, {"default": None}),
    ],
)
def test_another_spelling_of_the_same_is_no_change(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert change_of_column(old, new) == []


def test_another_spelling_of_the_layout_is_no_change() -> None:
    old = schema_of(partitioning=["bucket(16,idempotency_key)", " message_id"], table_properties={"write.a": "b"})
    new = schema_of(partitioning=["bucket( 16, idempotency_key )", "message_id"], table_properties={"write.a": "b"})
    assert compare(old, new) == ()


def test_a_changed_layout_is_shown_in_its_usual_spelling() -> None:
    (change,) = compare(schema_of(), schema_of(partitioning=["bucket(16,message_id)", "day( publish_time )"]))
    assert str(change) == "$.partitioning: table layout changed (none -> bucket(16, message_id), day(publish_time))"


def test_rules_are_compared_through_a_widened_type() -> None:
    assert change_of_column(
        {"type": "INT", "min": 2, "enum": [3]}, {"type": "BIGINT", "min": 1, "enum": [3, 2**40]}
    ) == [
        ("type", "TYPE_WIDENED", "ENHANCEMENT"),
        ("enum", "RULE_LOOSENED", "COMPATIBLE"),
        ("min", "RULE_LOOSENED", "COMPATIBLE"),
    ]


FILE_CHANGES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({}, {"description": "d"}, "DESCRIPTION", "COMPATIBLE"),
    ({}, {"partitioning": ["day(t)"]}, "LAYOUT", "COMPATIBLE"),
    ({}, {"partitioning": []}, "LAYOUT", "COMPATIBLE"),
    ({"partitioning": ["day(t)"]}, {}, "LAYOUT", "COMPATIBLE"),
    ({"partitioning": ["day(t)"]}, {"partitioning": ["month(t)"]}, "LAYOUT", "COMPATIBLE"),
    ({}, {"table_properties": {"write.a": "b"}}, "LAYOUT", "COMPATIBLE"),
    ({"table_properties": {"write.a": "b"}}, {"table_properties": {"write.a": "c"}}, "LAYOUT", "COMPATIBLE"),
    ({"zones": ["standardized"]}, {}, "ZONE_ADDED", "ENHANCEMENT"),
    ({}, {"zones": ["standardized"]}, "ZONE_REMOVED", "BREAKING"),
    ({}, {"version_column": "t"}, "VERSION_COLUMN_CHANGED", "BREAKING"),
    ({}, {"table_name": "other"}, "TABLE_RENAMED", "BREAKING"),
    ({}, {"envelope_columns": {"correlation_id": {"required": True}}}, "PRESENCE_TIGHTENED", "BREAKING"),
    ({"envelope_columns": {"correlation_id": {"cde": True}}}, {}, "PRESENCE_LOOSENED", "COMPATIBLE"),
    ({}, {"envelope_columns": {"idempotency_key": {"cde": True}}}, "PRESENCE_MARK", "COMPATIBLE"),
]


@pytest.mark.parametrize(("old", "new", "kind", "change_class"), FILE_CHANGES)
def test_one_change_of_the_file(old: dict[str, Any], new: dict[str, Any], kind: str, change_class: str) -> None:
    columns = {"t": {"type": "TIMESTAMP"}}
    (change,) = compare(schema_of(columns, **old), schema_of(columns, **new))
    assert (change.kind.name, change.change_class) == (kind, change_class)


def test_columns_that_come_and_go() -> None:
    changes = compare(schema_of({"gone": {"type": "INT"}}), schema_of({"more": {}, "must": {"cde": True}}))
    assert changes == (
        Change(ChangeKind.COLUMN_REMOVED, ("payload_columns", "gone"), "INT", None),
        Change(ChangeKind.COLUMN_ADDED, ("payload_columns", "more"), None, "STRING"),
        Change(ChangeKind.REQUIRED_COLUMN_ADDED, ("payload_columns", "must"), None, "STRING"),
    )
    assert [str(change) for change in changes] == [
        "$.payload_columns.gone: column removed (INT -> none)",
        "$.payload_columns.more: optional column added (none -> STRING)",
        "$.payload_columns.must: required column added (none -> STRING)",
    ]
    assert changes[1].to_dict() == {
        "path": "$.payload_columns.more",
        "kind": "COLUMN_ADDED",
        "change_class": "ENHANCEMENT",
        "old": None,
        "new": "STRING",
    }


def test_only_the_version_differs_is_compatible() -> None:
    changes = compare(schema_of(), schema_of(schema_version="2.0.0"))
    assert changes == ()
    assert classify(changes) is ChangeClass.COMPATIBLE


# any two schemas

_flags = st.fixed_dictionaries({"required": st.booleans(), "cde": st.booleans()})
_text_columns = st.fixed_dictionaries(
    {"type": st.just("STRING")},
    optional={
        "json_path": st.sampled_from(["$.a", "$.b.c", "$['odd key']"]),
        "enum": st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
        "pattern": st.sampled_from(["a+", "[0-9]*"]),
        "pii": st.sampled_from(["hash", "mask", "drop"]),
        "description": st.sampled_from(["one", "two"]),
    },
)
_number_columns = st.fixed_dictionaries(
    {"type": st.sampled_from(["INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(12,2)"])},
    optional={"min": st.integers(-9, 0), "max": st.integers(0, 9), "default": st.just(0)},
)
_time_columns = st.fixed_dictionaries(
    {"type": st.just("TIMESTAMP")}, optional={"format": st.sampled_from(["iso", "epoch_s", "epoch_ms"])}
)
_columns = st.builds(
    lambda column, flags: {**column, **flags}, st.one_of(_text_columns, _number_columns, _time_columns), _flags
)
_schemas = st.builds(
    lambda columns, zones, envelope: schema_of(columns, zones=zones, envelope_columns=envelope),
    st.dictionaries(st.sampled_from(["p", "q", "r", "s"]), _columns, max_size=4),
    st.sampled_from([["standardized"], ["standardized", "curated"]]),
    st.dictionaries(st.sampled_from(["message_id", "idempotency_key"]), _flags, max_size=2),
)
_OPPOSITE = {
    ChangeKind.RULE_LOOSENED: ChangeKind.RULE_TIGHTENED,
    ChangeKind.PRESENCE_LOOSENED: ChangeKind.PRESENCE_TIGHTENED,
    ChangeKind.COLUMN_ADDED: ChangeKind.COLUMN_REMOVED,
    ChangeKind.REQUIRED_COLUMN_ADDED: ChangeKind.COLUMN_REMOVED,
    ChangeKind.TYPE_WIDENED: ChangeKind.TYPE_CHANGED,
    ChangeKind.ZONE_ADDED: ChangeKind.ZONE_REMOVED,
}


@given(_schemas)
def test_a_schema_does_not_differ_from_itself(schema: Schema) -> None:
    assert compare(schema, schema) == ()


@given(_schemas, _schemas)
def test_the_class_is_that_of_the_heaviest_change(old: Schema, new: Schema) -> None:
    changes = compare(old, new)
    heaviest = classify(changes)
    order = [ChangeClass.COMPATIBLE, ChangeClass.ENHANCEMENT, ChangeClass.BREAKING]
    present = {change.change_class for change in changes} | {ChangeClass.COMPATIBLE}
    assert heaviest is [each for each in order if each in present][-1]
    assert (heaviest is ChangeClass.BREAKING) == any(change.breaks for change in changes)


@given(_schemas, _columns)
def test_adding_then_removing_is_breaking(schema: Schema, column: dict[str, Any]) -> None:
    added = schema_of({"added": column})
    more = schema.model_copy(update={"payload_columns": {**schema.payload_columns, **added.payload_columns}})
    required = column["required"] or column["cde"]
    assert classify(compare(schema, more)) is (ChangeClass.BREAKING if required else ChangeClass.ENHANCEMENT)
    assert [change.kind for change in compare(more, schema)] == [ChangeKind.COLUMN_REMOVED]
    assert classify(compare(more, schema)) is ChangeClass.BREAKING


@given(_schemas, _schemas)
def test_what_loosens_one_way_tightens_the_other(old: Schema, new: Schema) -> None:
    there = {change.keys: change.kind for change in compare(old, new)}
    back = {change.keys: change.kind for change in compare(new, old)}
    for keys, kind in there.items():
        if kind in _OPPOSITE and keys in back:
            assert back[keys] is _OPPOSITE[kind]


@given(_schemas)
def test_the_order_of_columns_is_no_difference(schema: Schema) -> None:
    columns = dict(reversed(schema.payload_columns.items()))
    assert compare(schema, schema.model_copy(update={"payload_columns": columns})) == ()
