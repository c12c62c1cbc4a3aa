"""`partitioning` and `table_properties` of a schema file: what is accepted, and that a refusal names every place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lean_ops.model.partitioning import PartitionField, Transform
from lean_ops.model.problem import Problem, SchemaError
from lean_ops.model.schema import Schema, parse_schema

COLUMNS: dict[str, Any] = {
    "text": {},
    "whole": {"type": "INT"},
    "long": {"type": "BIGINT"},
    "ratio": {"type": "DOUBLE"},
    "amount": {"type": "DECIMAL(10,2)"},
    "flag": {"type": "BOOLEAN"},
    "birthday": {"type": "DATE"},
    "at": {"type": "TIMESTAMP"},
    "secret": {"pii": "drop"},
    "email": {"pii": "hash"},
    "at_day": {},
}


def schema_text(**keys: Any) -> str:
    base = {"schema_version": "1.0.0", "table_name": "events", "envelope_columns": {}, "payload_columns": COLUMNS}
    return json.dumps({**base, **keys})


def schema_with(**keys: Any) -> Schema:
    return parse_schema(schema_text(**keys), "x.json")


def problems_of(**keys: Any) -> tuple[Problem, ...]:
    with pytest.raises(SchemaError) as caught:
        schema_with(**keys)
    return caught.value.problems


@pytest.mark.parametrize(
    "fields",
    [
        [],
        ["text", "whole", "long", "amount", "flag", "birthday", "at", "email"],
        [f"bucket(4, {name})" for name in ("text", "whole", "long", "amount", "birthday", "at", "email")],
        ["truncate(4, text)", "truncate(4, whole)", "truncate(4, long)", "truncate(4, amount)"],
        ["year(birthday)", "month(at)"],
        ["month(birthday)", "hour(at)"],
        ["day(birthday)", "year(at)"],
        ["day(publish_time)", "bucket(16, idempotency_key)", "topic_name", "truncate(86400, ingestion_ts)"],
        ["month(first_seen_ts)", "day(last_updated_ts)"],
        ["at", "hour(at)", "bucket(2, at)"],
    ],
)
def test_an_accepted_partitioning(fields: list[str]) -> None:
    assert [str(field) for field in schema_with(partitioning=fields).partition_fields] == fields


def test_a_schema_has_its_fields_parsed() -> None:
    assert schema_with(partitioning=["bucket(16, text)", "flag"]).partition_fields == (
        PartitionField(Transform.BUCKET, "text", 16),
        PartitionField(Transform.IDENTITY, "flag"),
    )
    assert schema_with().partition_fields == ()


REFUSED_FIELDS = [
    (["days(at)"], '[0]: not a partition field; found "days(at)"; expected column, bucket(N, column) with 1 <= N'),
    (["at", "bucket(0, at)"], '[1]: not a partition field; found "bucket(0, at)"'),
    (["nothing"], '[0]: no such column; found "nothing"; expected an envelope column, a payload column, first_seen_ts'),
    (["_batch_id"], '[0]: no such column; found "_batch_id"'),
    (["_schema_version"], "[0]: no such column"),
    (["ratio"], '[0]: identity is not for type DOUBLE; found "ratio"; expected a column of type BIGINT, BOOLEAN, DATE'),
    (["bucket(4, ratio)"], "[0]: bucket is not for type DOUBLE"),
    (["bucket(4, flag)"], "[0]: bucket is not for type BOOLEAN"),
    (["truncate(4, flag)"], "[0]: truncate is not for type BOOLEAN"),
    (["truncate(4, birthday)"], "[0]: truncate is not for type DATE"),
    (["truncate(4, publish_time)"], "[0]: truncate is not for type TIMESTAMP"),
    (["year(text)"], "[0]: year is not for type STRING"),
    (["month(whole)"], "[0]: month is not for type INT"),
    (["day(ingestion_ts)"], "[0]: day is not for type BIGINT"),
    (["hour(birthday)"], '[0]: hour is not for type DATE; found "hour(birthday)"; expected a column of type TIMESTAMP'),
    (["secret"], '[0]: this column holds nothing; found "secret" with pii drop; expected another column'),
    (["text", "text"], '[1]: its column has such a field; found "text"; expected no second one beside "text"'),
    (["bucket(4, text)", "bucket(8,text)"], '[1]: its column has such a field; found "bucket(8, text)"; expected no'),
    (["year(publish_time)", "text", "day(publish_time)"], "[2]: its column has such a field"),
    (["day(at)"], '[0]: its name is a column\'s; found "day(at)"; expected no column "at_day" beside it'),
    (
        ["text", "whole", "long", "amount", "flag", "birthday", "at", "email", "topic_name"],
        ": too many fields; found 9; expected at most 8",
    ),
]


@pytest.mark.parametrize(("fields", "message"), REFUSED_FIELDS)
def test_a_refused_partitioning_is_told_the_place_and_what_is_allowed(fields: list[str], message: str) -> None:
    (problem,) = problems_of(partitioning=fields)
    assert str(problem).startswith(f"$.partitioning{message}")


def test_all_problems_of_a_layout_are_told_at_once() -> None:
    problems = problems_of(
        partitioning=["years(at)", 5, "hour(secret)", "text", "text", "gone"],
        table_properties={"gc.enabled": "false", "a": 1, "write.b": "x" * 1001},
    )
    assert sorted(problem.path for problem in problems) == [
        "$.partitioning[0]",
        "$.partitioning[1]",
        "$.partitioning[2]",
        "$.partitioning[2]",
        "$.partitioning[4]",
        "$.partitioning[5]",
        "$.table_properties.a",
        "$.table_properties.a",
        "$.table_properties['gc.enabled']",
        "$.table_properties['write.b']",
    ]


def test_a_column_whose_type_is_wrong_is_reported_for_that_only() -> None:
    (problem,) = problems_of(payload_columns={"x": {"type": "VARCHAR"}}, partitioning=["day(x)"])
    assert problem.path == "$.payload_columns.x.type"


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"write.parquet.compression-codec": "zstd", "commit.retry.num-retries": "10"},
        {"read.split.target-size": "1", "history.expire.min-snapshots-to-keep": "5"},
        {"write.metadata.metrics.column.user_id": "full", "write.distribution-mode": "hash"},
        {"write.a": "x" * 1000},
        {f"write.p{number}": "" for number in range(50)},
    ],
)
def test_accepted_properties(properties: dict[str, str]) -> None:
    assert schema_with(table_properties=properties).table_properties == properties


@pytest.mark.parametrize(
    "name",
    [
        "format-version",
        "lean-ops.batch-id",
        "lean-ops.",
        "write.merge.mode",
        "write.merge.distribution-mode",
        "write.update.mode",
        "write.delete.mode",
        "write.merge.isolation-level",
        "write.data.path",
        "write.metadata.path",
        "write.folder-storage.path",
        "write.object-storage.path",
        "write.object-storage.enabled",
        "write.wap.enabled",
        "write.upsert.enabled",
        "write.metadata.delete-after-commit.enabled",
        "gc.enabled",
    ],
)
def test_a_property_of_the_pipeline_s_own_is_refused(name: str) -> None:
    (problem,) = problems_of(table_properties={name: "x"})
    assert problem.path == f"$.table_properties['{name}']"
    assert problem.message == "the pipeline sets this property itself"


@pytest.mark.parametrize(
    "name", ["", "owner", "write", "write.", "writes.a", "Write.a", "write.a b", "write.a ", "write..a", "write.a'--"]
)
def test_a_property_of_another_kind_is_refused(name: str) -> None:
    (problem,) = problems_of(table_properties={name: "x"})
    assert problem.message == "not a property for a schema to set"
    assert problem.expected is not None
    assert problem.expected.endswith("beginning with write., commit., read. or history.")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"write.a": "x" * 1001},
            "$.table_properties['write.a']: is too long; found 1001 characters; expected at most 1000 characters",
        ),
        (
            {f"write.p{number}": "" for number in range(51)},
            "$.table_properties: too many properties; found 51; expected at most 50",
        ),
    ],
)
def test_properties_have_their_limits(properties: dict[str, str], message: str) -> None:
    (problem,) = problems_of(table_properties=properties)
    assert str(problem) == message
