"""Events of the local AWS reach whom the rules name, in the words of the rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.aws_local.cloud_events import Rule, _input_of

UPLOADS: dict[str, Any] = {
    "source": ["aws.s3"],
    "detail-type": ["Object Created"],
    "detail": {"bucket": {"name": ["schemas"]}, "object": {"key": [{"wildcard": "schemas/*/pending/schema.json"}]}},
}


def _event(**detail: Any) -> dict[str, Any]:
    return {"source": "aws.s3", "detail-type": "Object Created", "detail": detail}


@pytest.mark.parametrize(
    ("bucket", "key", "wanted"),
    [
        ("schemas", "schemas/events/pending/schema.json", True),
        ("schemas", "schemas/events/active/schema.json", False),
        ("lake", "schemas/events/pending/schema.json", False),
    ],
)
def test_a_rule_wants_what_its_pattern_says(bucket: str, key: str, wanted: bool) -> None:
    event = _event(bucket={"name": bucket}, object={"key": key})
    assert Rule(UPLOADS, ()).wants(event) is wanted


def test_only_rules_about_objects_name_buckets() -> None:
    assert Rule(UPLOADS, ()).buckets == ("schemas",)
    assert Rule({"source": ["aws.glue"], "detail": {"bucket": {"name": ["schemas"]}}}, ()).buckets == ()


def test_a_target_without_a_template_gets_the_event_itself() -> None:
    event = _event(object={"key": "k"})
    assert json.loads(_input_of({"Arn": "a"}, event)) == event


def test_parts_of_the_event_stand_in_a_template_as_json() -> None:
    paths = {"key": "$.detail.object.key", "none": "$.detail.nothing.there"}
    transformer = {"InputPathsMap": paths, "InputTemplate": '{"kind": "X", "key": <key>, "none": <none>}'}
    text = _input_of({"InputTransformer": transformer}, _event(object={"key": 'a "quoted" key'}))
    assert json.loads(text) == {"kind": "X", "key": 'a "quoted" key', "none": None}
