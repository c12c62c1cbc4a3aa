"""A schema's rules as data: which checks, in which order, with which words."""

from __future__ import annotations

import json
from typing import Any

from lean_ops.curate.rules import column_rules, envelope_rules
from lean_ops.model.schema import Schema, parse_schema


def schema_of(payload: dict[str, Any], envelope: dict[str, Any] | None = None) -> Schema:
    base = {"schema_version": "1.0.0", "table_name": "t", "envelope_columns": envelope or {}}
    return parse_schema(json.dumps({**base, "payload_columns": payload}), "a test")


def told(column: dict[str, Any]) -> list[tuple[str, str, str]]:
    (name, parsed) = next(iter(schema_of({"c": column}).payload_columns.items()))
    return [(rule.error_type.value, rule.check, rule.words) for rule in column_rules(name, parsed)]


def test_a_text_without_rules_is_asked_nothing() -> None:
    assert told({}) == []


def test_the_type_comes_before_the_value_and_presence_before_both() -> None:
    assert told({"type": "INT", "required": True, "enum": [1, 2], "min": 0, "max": 9}) == [
        ("CDE_VIOLATION", "presence", "is missing and required"),
        ("TYPE_CAST", "type", "is no INT"),
        ("RULE_VIOLATION", "enum", "is not one of 1, 2"),
        ("RULE_VIOLATION", "min", "is below 0"),
        ("RULE_VIOLATION", "max", "is above 9"),
    ]


def test_a_critical_element_is_named_as_one() -> None:
    assert told({"cde": True, "required": True}) == [
        ("CDE_VIOLATION", "presence", "is missing and a critical data element")
    ]


def test_a_times_format_is_told() -> None:
    assert told({"type": "TIMESTAMP", "format": "epoch_ms"}) == [("TYPE_CAST", "type", "is no TIMESTAMP (epoch_ms)")]


def test_only_the_first_choices_are_shown_and_all_of_them_count() -> None:
    choices = [f"c{number}" for number in range(12)]
    column = schema_of({"c": {"enum": choices}}).payload_columns["c"]
    (rule,) = column_rules("c", column)
    assert rule.words == f"is not one of {', '.join(choices[:10])}, …"
    assert rule.as_data()["literals"] == tuple(choices)


def test_a_pattern_is_asked_about_the_whole_value() -> None:
    (rule,) = column_rules("c", schema_of({"c": {"pattern": "a|b"}}).payload_columns["c"])
    assert rule.as_data()["pattern"] == r"\A(?:a|b)\z"
    assert "longest" not in rule.as_data()


def test_a_pattern_that_takes_stack_is_only_asked_about_values_that_fit_on_it() -> None:
    column = schema_of({"c": {"pattern": "(?:[a-z]|[0-9])*"}}).payload_columns["c"]
    length, pattern = (rule.as_data() for rule in column_rules("c", column))
    assert (length["check"], pattern["check"]) == ("length", "pattern")
    assert length["longest"] == pattern["longest"]
    assert length["words"].startswith(f"is longer than the {length['longest']} characters")


def test_values_are_shown_unless_they_are_personal() -> None:
    schema = schema_of({"open": {"enum": ["a"]}, "closed": {"enum": ["a"], "pii": "mask"}})
    rules = {name: next(column_rules(name, column)) for name, column in schema.payload_columns.items()}
    assert (rules["open"].shows_value, rules["open"].words) == (True, "is not one of a")
    assert (rules["closed"].shows_value, rules["closed"].words) == (False, "its value (not shown) is not one of a")


def test_the_key_is_always_asked_for_and_the_most_severe_type_is_first() -> None:
    schema = schema_of({"c": {}}, {"period_reference": {"cde": True}})
    rules = [rule.as_data() for rule in envelope_rules(schema)]
    assert [(rule["field"], rule["severity"]) for rule in rules] == [("idempotency_key", 0), ("period_reference", 0)]
