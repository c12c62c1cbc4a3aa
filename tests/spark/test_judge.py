"""What the judge does with whole rows, many rows and many refused ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import Row
from tests.spark.driver import TopicDriver, at

from lean_ops.curate import merge
from lean_ops.curate.judge import new_judge
from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Counts
from lean_ops.model.schema import parse_schema
from lean_ops.wiring import Services

pytestmark = pytest.mark.spark

HARD_TEXTS = [
    'quotes " and \\ and / and `',
    "".join(map(chr, range(1, 32))) + "x",
    "\u007f\u0080\u00a0\u2028\u2029\ufeff",
    "Gr\u00fc\u00dfe \u6771\u4eac \U0001f642",
    "a\u0000b",
]


def judged(services: Services, columns: dict[str, Any], texts: list[str]) -> list[Row]:
    """What the judge makes of rows that have these texts in the first column, and nothing in the others."""
    from lean_ops.lake.kernel import named

    base = {"schema_version": "1.0.0", "table_name": "t", "envelope_columns": {}}
    schema = parse_schema(json.dumps({**base, "payload_columns": columns}), "a test")
    spark = services.sessions.mine()
    spark.createDataFrame([(text,) for text in texts], "text string").createOrReplaceTempView("texts")
    nothing = ", ".join(["CAST(NULL AS string)"] * (len(columns) - 1))
    arguments = f"'t', 'm', 'k', 'p', 'c', timestamp_micros(0L), 0L, text{', ' if nothing else ''}{nothing}"
    with named(spark, new_judge(spark, schema, None, None)) as judge:
        frame = spark.sql(f"SELECT {judge}({arguments}) AS judged FROM texts")  # noqa: S608  a test's own words
    return [row.judged for row in frame.collect()]


def test_a_refused_row_is_written_as_sparks_own_json(services: Services) -> None:
    columns = {"a": {}, "missing": {"required": True}, "null": {}}
    refused = [row["refused row"].raw_record for row in judged(services, columns, HARD_TEXTS)]
    struct = "named_struct('a', text, 'missing', CAST(NULL AS string), 'null', CAST(NULL AS string))"
    by_spark = services.sessions.mine().sql(f"SELECT to_json({struct}, map('ignoreNullFields', 'false')) FROM texts")  # noqa: S608
    assert refused == [row[0] for row in by_spark.collect()]
    assert [json.loads(record)["a"] for record in refused] == HARD_TEXTS


def test_characters_are_counted_not_bytes(services: Services) -> None:
    faces = "\U0001f642" * 5
    (masked,) = judged(services, {"a": {"pii": "mask"}}, [faces])
    assert masked.a == "*" + faces[1:]
    hundred = "\u6771" * 100
    long, short = judged(services, {"a": {"enum": ["x"]}}, [f"{hundred}\u6771", hundred])
    assert long["refused row"].error_message == f"a: '{hundred}…' is not one of x"
    assert short["refused row"].error_message == f"a: '{hundred}' is not one of x"


def test_a_refused_row_has_no_payload_and_a_good_one_no_error(services: Services) -> None:
    good, bad = judged(services, {"a": {"type": "INT", "max": 5}}, ["5", "6"])
    assert (good.a, good["refused row"]) == (5, None)
    assert (bad.a, bad["refused row"].error_fields) == (None, ["a"])


def message(message_id: str, key: str | None, value: Any, day: float = 0) -> dict[str, Any]:
    payload = json.dumps({"v": value})
    return {"message_id": message_id, "idempotency_key": key, "json_payload": payload, "publish_time": at(day)}


def run(topic: TopicDriver, *messages: dict[str, Any]) -> Counts:
    topic.put(*messages)
    outcome = topic.run()
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED, outcome.reason
    return outcome.batches[-1].counts


@pytest.mark.parametrize("most_repeated", [100_000, 2, 0])
@pytest.mark.parametrize("partitioning", [[], ["bucket(3, idempotency_key)"]])
def test_a_large_first_load_ends_as_a_small_one_does(
    topic: TopicDriver, monkeypatch: pytest.MonkeyPatch, most_repeated: int, partitioning: list[str]
) -> None:
    """Rows of a key that comes again are compared, however many such keys there are; refused versions never win."""
    monkeypatch.setattr(merge, "_FEW_ROWS", 0)
    monkeypatch.setattr(merge, "_MOST_REPEATED_KEYS", most_repeated)
    topic.use_schema({"v": {"type": "INT"}}, partitioning=partitioning)
    single = [message(f"s{number}", f"k{number}", number) for number in range(20)]
    again = [message(f"a{number}", f"k{number}", -number, day=1) for number in range(5)]
    refused = [message(f"r{number}", f"k{number}", "x", day=2) for number in range(3, 8)]
    without_key = [message("n1", None, 1), message("n2", None, 2), message("n3", " ", 3)]
    counts = run(topic, *single, *again, *refused, *without_key)
    assert counts == Counts(33, inserted=20, superseded=5, errors=8)
    expected = {f"k{number}": -number if number < 5 else number for number in range(20)}
    assert {key: row["v"] for key, row in topic.curated().items()} == expected
    assert run(topic, message("l1", "k0", 7, day=3), message("l2", "new", 8)) == Counts(2, inserted=1, updated=1)


def test_a_first_load_without_repeated_keys_and_one_without_good_rows(
    topic: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "_FEW_ROWS", 0)
    topic.use_schema({"v": {"type": "INT"}})
    assert run(topic, message("m1", "k", "x"), message("m2", "l", "y")) == Counts(2, errors=2)
    assert run(topic, message("m3", "k", 1), message("m4", "l", 2)) == Counts(2, inserted=2)
    assert run(topic, message("m5", "k", 3, day=1)) == Counts(1, updated=1)


def test_refused_rows_too_many_to_come_along_are_judged_once_more(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}})
    bad = [message(f"m{number}", f"k{number}", "x" * 5000) for number in range(1000)]
    assert run(topic, *bad, message("good", "good", 1)) == Counts(1001, inserted=1, errors=1000)
    errors = topic.shared("errors")
    assert {row["message_id"] for row in errors} == {row["message_id"] for row in bad}
    assert len(errors) == 1000
    assert {(row["error_type"], row["publish_time"]) for row in errors} == {("TYPE_CAST", at(0))}
