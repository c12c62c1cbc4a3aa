"""Schema files: what is accepted, what is refused, and that a refusal names every place."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lean_ops.model.data_type import DataType, Kind, TimeFormat
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.model.problem import Problem, SchemaError
from lean_ops.model.schema import Schema, parse_schema

EXAMPLES = Path(__file__).parents[3] / "schemas"
SPEC_EXAMPLE = {
    "schema_version": "1.0.0",
    "table_name": "events",
    "description": "…",
    "envelope_columns": {
        "message_id": {"type": "STRING", "required": True},
        "idempotency_key": {"type": "STRING", "required": True, "cde": True},
        "publish_time": {"type": "TIMESTAMP", "required": True},
    },
    "payload_columns": {
        "user_id": {"json_path": "$.event.userId", "type": "STRING"},
        "event_timestamp": {"json_path": "$.event.timestamp", "type": "TIMESTAMP", "cde": True},
        "application_id": {"json_path": "$.event.applicationId", "type": "INT", "default": -1},
        "amount": {"type": "DECIMAL(10,2)", "min": 0},
        "email": {"type": "STRING", "pii": "hash"},
        "updated_at": {"json_path": "$.last_updated_ts", "type": "TIMESTAMP"},
    },
    "version_column": "updated_at",
    "zones": ["standardized", "curated"],
}


def schema_with(**keys: Any) -> str:
    base = {"schema_version": "1.0.0", "table_name": "events", "envelope_columns": {}, "payload_columns": {}}
    return json.dumps({**base, **keys})


def column_text(column: str) -> str:
    return schema_with(payload_columns={"x": "HERE"}).replace('"HERE"', column)


def problems_of(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text, "x.json")
    return caught.value.problems


def test_the_contract_s_example_is_read_as_it_is_meant() -> None:
    schema = parse_schema(json.dumps(SPEC_EXAMPLE), "events.json")
    amount, updated_at = schema.payload_columns["amount"], schema.payload_columns["updated_at"]
    assert schema.version == (1, 0, 0)
    assert schema.is_curated
    assert amount.type == DataType(Kind.DECIMAL, 10, 2)
    assert (amount.json_path, amount.pointer, amount.min) == (None, None, "0")
    assert amount.value_of("0") == Decimal(0)
    assert (updated_at.keys, updated_at.pointer) == (("last_updated_ts",), "/last_updated_ts")
    assert updated_at.time_format is TimeFormat.ISO
    assert schema.payload_columns["application_id"].default == "-1"
    assert schema.payload_columns["event_timestamp"].must_be_present
    assert schema.declared_pointers() == (
        "/event/userId",
        "/event/timestamp",
        "/event/applicationId",
        "/last_updated_ts",
    )


def test_a_schema_is_frozen() -> None:
    schema = parse_schema(json.dumps(SPEC_EXAMPLE), "events.json")
    with pytest.raises(ValueError, match="frozen"):
        schema.table_name = "other"


@pytest.mark.parametrize("name", ["events", "orders", "readings"])
def test_the_example_topics_are_in_order(name: str) -> None:
    schema = parse_schema((EXAMPLES / f"{name}.json").read_bytes(), name)
    assert schema.table_name == name
    assert schema.zones == ("standardized", "curated")


def test_defaults_are_those_of_the_contract() -> None:
    schema = parse_schema(column_text("{}"), "x.json")
    column = schema.payload_columns["x"]
    assert schema.zones == ("standardized", "curated")
    assert (str(column.type), column.required, column.cde, column.default) == ("STRING", False, False, None)
    assert schema.envelope_column("idempotency_key").must_be_present
    assert not schema.envelope_column("correlation_id").must_be_present


def test_two_columns_of_one_source_declare_its_pointer_once() -> None:
    columns = {"a": {"json_path": "$.x"}, "b": {"json_path": "$['x']", "type": "INT"}, "c": {"json_path": "$['a/b~']"}}
    assert parse_schema(schema_with(payload_columns=columns), "x").declared_pointers() == ("/x", "/a~1b~0")


@pytest.mark.parametrize("text", ["1.9.0", "0.0.0", "10.20.30", "999999999.0.1"])
def test_a_version_has_three_numbers(text: str) -> None:
    assert parse_schema(schema_with(schema_version=text), "x").version == tuple(map(int, text.split(".")))


def test_versions_are_compared_by_number() -> None:
    nine, ten = (parse_schema(schema_with(schema_version=f"1.{minor}.0"), "x").version for minor in (9, 10))
    assert nine < ten


ACCEPTED_COLUMNS = [
    "{}",
    '{"json_path": "$[\'odd key\']"}',
    '{"json_path": "$.a.b.c.d.e"}',
    '{"type": "INT", "default": -2147483648}',
    '{"type": "INT", "default": "7"}',
    '{"type": "INT", "default": 1.0, "max": 1e3}',
    '{"type": "BIGINT", "max": 9223372036854775807}',
    '{"type": "DOUBLE", "min": -1.5e-3, "max": 1e308}',
    '{"type": "DECIMAL(38,38)", "default": 0.00000000000000000000000000000000000001}',
    '{"type": "DECIMAL(5,2)", "enum": [999.99, "-1.500"]}',
    '{"type": "DECIMAL(1, 0)"}',
    '{"type": "BOOLEAN", "default": false, "enum": [true, "false"]}',
    '{"type": "BOOLEAN", "default": 1, "enum": ["yes"]}',
    '{"type": "DATE", "min": "2000-02-29", "max": "2000-02-29"}',
    '{"type": "TIMESTAMP", "min": "2026-02-03T10:15:30.123456789+02:00", "default": "2026-02-03 10:15:30"}',
    '{"type": "TIMESTAMP", "format": "epoch_s", "min": 0, "default": 1770113730}',
    '{"type": "TIMESTAMP", "format": "epoch_ms", "enum": [1770113730120]}',
    '{"enum": ["a", ""], "default": ""}',
    '{"pattern": "[A-Z&&[^Q]]\\\\p{L}+(?<name>x)\\\\Qa(b\\\\E"}',
    '{"pattern": "^*"}',
    '{"pii": "mask", "required": true, "cde": true, "description": "x"}',
    '{"type": "INT", "pii": "drop"}',
    '{"json_path": null, "default": null, "enum": null, "pattern": null, "min": null, "pii": null}',
]


@pytest.mark.parametrize("column", ACCEPTED_COLUMNS)
def test_an_accepted_column(column: str) -> None:
    assert isinstance(parse_schema(column_text(column), "x.json"), Schema)


REFUSED_COLUMNS = [
    ("5", "$.payload_columns.x: wrong value; found 5"),
    (
        '{"type": "VARCHAR"}',
        '.x.type: wrong value; found "VARCHAR"; expected STRING, INT, BIGINT, DOUBLE, DECIMAL(p,s)',
    ),
    ('{"type": "string"}', '.x.type: wrong value; found "string"'),
    ('{"type": "DECIMAL"}', '.x.type: wrong value; found "DECIMAL"'),
    ('{"type": "DECIMAL(39,2)"}', '.x.type: wrong value; found "DECIMAL(39,2)"'),
    ('{"type": "DECIMAL(2,3)"}', '.x.type: wrong value; found "DECIMAL(2,3)"'),
    ('{"type": "DECIMAL(0,0)"}', '.x.type: wrong value; found "DECIMAL(0,0)"'),
    ('{"type": 1}', ".x.type: wrong value; found 1"),
    ('{"colour": 1}', '.x.colour: unknown key; found "colour"; expected one of json_path, type, format'),
    ('{"json_path": "a.b"}', ".x.json_path: a JSON path starts with '$'"),
    ('{"json_path": "$"}', ".x.json_path: a JSON path has 1 to 5 keys"),
    ('{"json_path": "$.a.b.c.d.e.f"}', ".x.json_path: a JSON path has 1 to 5 keys"),
    ('{"json_path": "$.a[0]"}', ".x.json_path: an array has no columns of its own"),
    (
        '{"json_path": "$..a"}',
        ".x.json_path: a key is '.name' or ['any name'], without wildcards or filters (character 2)",
    ),
    ('{"json_path": "$.*"}', ".x.json_path: a key is '.name'"),
    ('{"json_path": 1}', ".x.json_path: wrong value; found 1"),
    ('{"required": "yes"}', '.x.required: wrong value; found "yes"; expected true or false'),
    ('{"cde": 1}', ".x.cde: wrong value; found 1; expected true or false"),
    ('{"type": "INT", "default": 2147483648}', ".x.default: does not fit type INT; found 2147483648; expected a whole"),
    ('{"type": "INT", "default": 1.5}', ".x.default: does not fit type INT; found 1.5"),
    ('{"type": "INT", "default": true}', ".x.default: does not fit type INT; found true"),
    ('{"type": "INT", "default": [1]}', ".x.default: wrong value; found [1]"),
    ('{"type": "BIGINT", "max": 9223372036854775808}', ".x.max: does not fit type BIGINT"),
    ('{"type": "DOUBLE", "max": 1e400}', ".x.max: does not fit type DOUBLE; found 1e400"),
    ('{"type": "DECIMAL(5,2)", "default": 1.234}', ".x.default: does not fit type DECIMAL(5,2); found 1.234"),
    ('{"type": "DECIMAL(5,2)", "default": 1000}', "expected a decimal number with at most 3 digits before"),
    ('{"type": "BOOLEAN", "default": 2}', ".x.default: does not fit type BOOLEAN; found 2; expected true, false, t, f"),
    ('{"type": "DATE", "default": "2026-02-30"}', ".x.default: does not fit type DATE"),
    ('{"type": "TIMESTAMP", "default": "noon"}', ".x.default: does not fit type TIMESTAMP"),
    ('{"type": "TIMESTAMP", "default": 1770113730}', "expected a time as 2026-02-03T10:15:30Z"),
    (
        '{"type": "TIMESTAMP", "format": "epoch_ms", "default": "2026-02-03T10:15:30Z"}',
        "expected milliseconds since 1970",
    ),
    ('{"type": "TIMESTAMP", "format": "epoch", "cde": true}', '.x.format: wrong value; found "epoch"; expected iso'),
    ('{"format": "iso"}', '.x.format: not for type STRING; found "iso"; expected type TIMESTAMP'),
    ('{"default": 5}', ".x.default: does not fit type STRING; found 5; expected a text in quotes"),
    ('{"enum": []}', ".x.enum: wrong value; found []; expected a list of at least one value"),
    ('{"enum": "a"}', '.x.enum: wrong value; found "a"'),
    ('{"enum": ["a", null]}', ".x.enum[1]: wrong value; found null"),
    ('{"type": "INT", "enum": [1, "b"]}', '.x.enum[1]: does not fit type INT; found "b"'),
    ('{"enum": ["a"], "default": "b"}', '.x.default: is not in enum; found "b"; expected one of ["a"]'),
    ('{"min": "a"}', '.x.min: not for type STRING; found "a"; expected a numeric type, DATE or TIMESTAMP'),
    ('{"type": "BOOLEAN", "max": true}', ".x.max: not for type BOOLEAN"),
    ('{"type": "INT", "min": 10, "max": 9}', ".x.min: is above max; found 10; expected at most 9"),
    ('{"type": "INT", "min": 0, "default": -1}', ".x.default: is below min; found -1; expected at least 0"),
    ('{"type": "INT", "max": 0, "default": 1}', ".x.default: is above max; found 1; expected at most 0"),
    ('{"pattern": "(a"}', ".x.pattern: not a regular expression: missing ), unterminated subpattern"),
    ('{"pattern": "a)"}', ".x.pattern: not a regular expression: unbalanced parenthesis"),
    ('{"pattern": "[a"}', ".x.pattern: not a regular expression: unterminated character set"),
    ('{"pattern": "a\\\\"}', ".x.pattern: not a regular expression: bad escape (end of pattern)"),
    ('{"pattern": 1}', ".x.pattern: wrong value; found 1"),
    (
        f'{{"pattern": "{"a" * 1001}"}}',
        ".x.pattern: is too long; found 1001 characters; expected at most 1000 characters",
    ),
    ('{"type": "INT", "pattern": "1"}', '.x.pattern: not for type INT; found "1"; expected type STRING'),
    ('{"pii": "encrypt"}', '.x.pii: wrong value; found "encrypt"; expected hash, mask or drop'),
    ('{"type": "INT", "pii": "hash"}', ".x.pii: not for type INT"),
]


@pytest.mark.parametrize(("column", "message"), REFUSED_COLUMNS)
def test_a_refused_column_is_named_with_what_is_allowed(column: str, message: str) -> None:
    problems = problems_of(column_text(column))
    assert len(problems) == 1
    assert message in str(problems[0])
    assert problems[0].path.startswith("$.payload_columns.x")


REFUSED_FILES = [
    ({"schema_version": "1.0"}, '$.schema_version: wrong value; found "1.0"; expected a version as 1.0.0'),
    ({"schema_version": "1.0.0-rc1"}, "$.schema_version: wrong value"),
    ({"schema_version": "01.0.0"}, "$.schema_version: wrong value"),
    ({"schema_version": 1}, "$.schema_version: wrong value; found 1"),
    ({"table_name": "Events-x"}, '$.table_name: not in a topic\'s form; found "Events-x"; expected "events_x"'),
    ({"table_name": "dlq"}, "$.table_name: this name is reserved"),
    ({"table_name": "9"}, "$.table_name: not a topic name"),
    ({"description": 1}, "$.description: wrong value; found 1; expected a text"),
    ({"owner": "me"}, '$.owner: unknown key; found "owner"; expected one of schema_version, table_name'),
    ({"envelope_columns": []}, "$.envelope_columns: wrong value; found []"),
    ({"envelope_columns": {"user_id": {}}}, "$.envelope_columns.user_id: not an envelope column"),
    (
        {"envelope_columns": {"ingestion_ts": {"type": "TIMESTAMP"}}},
        '$.envelope_columns.ingestion_ts.type: an envelope column\'s type is given; found "TIMESTAMP"; expected BIGINT',
    ),
    ({"envelope_columns": {"message_id": {"enum": ["a"]}}}, "$.envelope_columns.message_id.enum: unknown key"),
    ({"payload_columns": {"userId": {}}}, "$.payload_columns.userId: not a column name"),
    ({"payload_columns": {"a" * 129: {}}}, "not a column name"),
    ({"payload_columns": {"odd key": {}}}, "$.payload_columns['odd key']: not a column name"),
    (
        {"payload_columns": {"message_id": {}}},
        "$.payload_columns.message_id: this name belongs to an envelope or audit",
    ),
    ({"payload_columns": {"first_seen_ts": {}}}, "$.payload_columns.first_seen_ts: this name belongs to"),
    ({"payload_columns": {"_batch_id": {}}}, "$.payload_columns._batch_id: this name belongs to"),
    (
        {"payload_columns": {f"c{number}": {} for number in range(2001)}},
        "$.payload_columns: too many columns; found 2001; expected at most 2000",
    ),
    ({"version_column": "x"}, '$.version_column: no such payload column; found "x"'),
    (
        {"version_column": "x", "payload_columns": {"x": {"type": "DATE"}}},
        '$.version_column: versions are times; found "x" of type "DATE"; expected a column of type TIMESTAMP',
    ),
    (
        {"version_column": "x", "payload_columns": {"x": {"type": "TIMESTAMP", "pii": "drop"}}},
        "$.version_column: its value is needed as it is",
    ),
    ({"zones": ["curated"]}, '$.zones: not a way that exists; found ["curated"]; expected ["standardized"] or'),
    ({"zones": []}, "$.zones: not a way that exists; found []"),
    ({"zones": "curated"}, '$.zones: wrong value; found "curated"'),
    ({"partitioning": ["day(publish_time)", 1]}, "$.partitioning[1]: wrong value; found 1"),
    ({"table_properties": {"write.a": 1}}, "$.table_properties['write.a']: wrong value; found 1"),
]


@pytest.mark.parametrize(("keys", "message"), REFUSED_FILES)
def test_a_refused_file_is_told_the_place_and_what_is_allowed(keys: dict[str, Any], message: str) -> None:
    problems = problems_of(schema_with(**keys))
    assert len(problems) == 1
    assert message in str(problems[0])


@pytest.mark.parametrize("key", ["schema_version", "table_name", "envelope_columns", "payload_columns"])
def test_a_missing_key_is_told(key: str) -> None:
    document = json.loads(schema_with())
    del document[key]
    (problem,) = problems_of(json.dumps(document))
    assert str(problem).startswith(f"$.{key}: is missing; expected ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is not JSON"),
        ("{", "the file is not JSON"),
        ("[]", "wrong value; found []; expected an object with schema_version"),
        ("null", "wrong value; found null"),
        (b"\xff\xfe", "the file is not UTF-8 text"),
        ("\ufeff{}", "byte-order mark"),
        ('{"a": NaN}', "NaN is not a JSON value"),
        ('{"description": "\\ud800"}', "the file is not UTF-8 text"),
        ("[" * 100_000, "nested too deep"),
        (" " * (1024 * 1024 + 1), "1048577 bytes; a schema file has at most 1048576"),
    ],
)
def test_what_is_no_document_at_all_is_one_problem(content: str | bytes, message: str) -> None:
    (problem,) = problems_of(content)
    assert problem.path == "$"
    assert message in str(problem)


def test_keys_given_twice_are_found_wherever_they_are() -> None:
    text = column_text('{"type": "INT", "type": "STRING"}').replace("{", '{"description": "a", "description": "b", ', 1)
    assert [(problem.path, problem.message) for problem in problems_of(text)] == [
        ("$.description", "this key is given twice"),
        ("$.payload_columns.x.type", "this key is given twice"),
    ]


def test_all_problems_are_told_at_once_and_none_hides_another() -> None:
    document = {
        "schema_version": "1",
        "table_name": "events",
        "envelope_columns": {"message_id": {"required": "yes", "type": "INT"}},
        "payload_columns": {
            "a": {"type": "INT", "required": 1, "default": "x", "min": 2, "max": 1},
            "b": {"json_path": "no", "pii": "hash", "type": "DATE"},
        },
        "version_column": "a",
        "zones": [],
        "more": 1,
    }
    with pytest.raises(SchemaError) as caught:
        parse_schema(json.dumps(document), "schemas/events.json")
    error = caught.value
    assert [problem.path for problem in error.problems] == [
        "$.schema_version",
        "$.envelope_columns.message_id.required",
        "$.payload_columns.a.required",
        "$.payload_columns.a.default",
        "$.payload_columns.a.min",
        "$.payload_columns.b.json_path",
        "$.payload_columns.b.pii",
        "$.more",
        "$.envelope_columns.message_id.type",
        "$.version_column",
        "$.zones",
    ]
    assert str(error).startswith("schemas/events.json: 11 problems\n  $.schema_version: ")
    assert error.summary == ('$.schema_version: wrong value; found "1"; expected a version as 1.0.0 (and 10 more)')
    assert isinstance(error, TerminalError)
    assert not isinstance(error, WrongUseError)


def test_a_problem_as_plain_data() -> None:
    (problem,) = problems_of(column_text('{"type": "INT", "default": 1.50}'))
    assert problem.to_dict() == {
        "path": "$.payload_columns.x.default",
        "found": "1.50",
        "expected": "a whole number from -2147483648 to 2147483647",
        "message": "does not fit type INT",
    }


def test_two_thousand_columns_are_accepted() -> None:
    columns = {f"c{number}": {"json_path": f"$.c{number}", "type": "INT", "min": 0} for number in range(2000)}
    assert len(parse_schema(schema_with(payload_columns=columns), "x").declared_pointers()) == 2000
