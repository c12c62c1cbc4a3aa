"""The kernel against its reference: whatever the payload, both say the same of it, to the last byte."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.fuzz.mutator import inputs
from tests.fuzz.seeds import SEEDS, WORDS
from tests.fuzz.shapes import OBJECTS
from tests.reference.json_texts import json_objects
from tests.reference.leaves import Flattener, extra_text
from tests.reference.payload import Refusal, parse_payload
from tests.unit.standardize.test_flattening_cases import ONE_PAYLOAD_CASES
from tests.unit.standardize.test_payload import ACCEPTED, REFUSED

from lean_ops.lake import sql
from lean_ops.standardize.first_copy import passing
from lean_ops.standardize.flatten import FLAT, Flattened, Report, flatten
from lean_ops.wiring import Services

pytestmark = pytest.mark.spark

HARD_NAME = 'file:///a b/"q\'s"/\n\u6771.parquet'

FUZZED = 20_000
Case = tuple[bytes | None, tuple[str | None, str | None, str | None]]
Outcome = tuple[dict[str, str], str | None, str | None, str | None]


def all_payloads() -> list[bytes | None]:
    """The cases of the unit tests, hostile shapes, thousands of texts near to JSON, and as many that are JSON."""
    written = [payload for payload, *_ in REFUSED.values()] + list(ACCEPTED.values())
    written += [payload.encode() for payload, _ in ONE_PAYLOAD_CASES.values()]
    shapes = [shape(size) for shape in OBJECTS.values() for size in (100, 9000)]
    fuzzed = itertools.islice(inputs(SEEDS["payload"], WORDS["payload"], 3000, seed=7), FUZZED)
    return [*written, *shapes, *fuzzed, *itertools.islice(json_objects(seed=3), FUZZED)]


def all_cases() -> list[Case]:
    """Each payload at least twice, among others: once its keys are known, it takes the short way."""
    chance = random.Random(11)  # noqa: S311  the same cases every time
    choices = (None, "k", "2026-02", "9", "")
    payloads = all_payloads()
    again = chance.sample(payloads, len(payloads))
    return [(payload, tuple(chance.choice(choices) for _ in range(3))) for payload in [*payloads, *again]]


def by_reference(cases: Iterable[Case], columns: Mapping[str, str]) -> tuple[list[Outcome], dict[str, dict[str, int]]]:
    """What the reference makes of them, and what it counted."""
    flattener = Flattener(columns)
    outcomes: list[Outcome] = []
    for payload, envelope in cases:
        parsed = parse_payload(payload)
        if isinstance(parsed, Refusal):
            outcomes.append(({}, None, parsed.error_type, parsed.message))
        else:
            flat = flattener.flatten(parsed, envelope)
            outcomes.append((flat.texts, extra_text(flat.extra), None, None))
    return outcomes, flattener.counts()


def by_kernel(
    services: Services, cases: Sequence[Case], columns: Mapping[str, str], partitions: int = 1
) -> tuple[list[Outcome], Flattened]:
    """What the kernel makes of them in one job, and what it reports."""
    spark = services.sessions.mine()
    keys, periods, correlations = zip(*(envelope for _, envelope in cases), strict=True)
    given: dict[str, Any] = {
        "number": pa.array(range(len(cases))),
        "payload": pa.array([payload for payload, _ in cases], pa.binary()),
        "idempotency_key": pa.array(keys, pa.string()),
        "period_reference": pa.array(periods, pa.string()),
        "correlation_id": pa.array(correlations, pa.string()),
    }
    rest = ("CAST(number AS STRING) AS message_id", "'t' AS topic_name", "timestamp_micros(5) AS publish_time")
    frame = spark.createDataFrame(pa.table(given)).repartition(partitions)
    raw = frame.selectExpr("*", "CAST(payload AS STRING) AS json_payload", *rest, "7L AS ingestion_ts")
    report = Report(spark)
    rows = flatten(raw, columns, report).select("number", f"{FLAT}.*").toArrow().to_pylist()
    return [_outcome(row) for row in sorted(rows, key=lambda row: row["number"])], report.read()


def _outcome(row: dict[str, Any]) -> Outcome:
    marks = [row.pop(name) for name in ("_extra", "error type", "error message")]
    del row["number"]
    return {name: text for name, text in row.items() if text is not None}, *marks


def test_the_kernel_says_of_every_payload_what_the_reference_says(services: Services) -> None:
    cases = all_cases()
    found = list(by_reference(cases, {})[1])
    columns = {pointer: f"c{number}" for number, pointer in enumerate(found[::3][:300])}
    wanted, counts = by_reference(cases, columns)
    outcomes, report = by_kernel(services, cases, columns)
    for case, outcome, expected in zip(cases, outcomes, wanted, strict=True):
        if "Illegal trailing comma" not in (expected[3] or ""):  # newer Pythons say it in other words
            assert outcome == expected, case
    assert report.places == counts
    refused = [case for case, outcome in zip(cases, wanted, strict=True) if outcome[2]]
    assert (report.records, report.errors) == (len(cases), len(refused))
    assert report.error_bytes == sum(len(payload or b"") for payload, _ in refused)
    assert 0.1 < len(refused) / len(cases) < 0.9, "the cases are all of one sort"


def test_refused_rows_come_along_with_the_counts(services: Services) -> None:
    cases: list[Case] = [(b'{"a":\xc3\xa9"\x01', ("k\n", None, None)), (b"{}", (None,) * 3), (None, (None,) * 3)]
    report = by_kernel(services, cases, {})[1]
    common = {"topic_name": "t", "publish_time": 5, "ingestion_ts": 7}
    first = {"message_id": "0", "idempotency_key": "k\n", "raw_payload": '{"a":é"\x01', "error_type": "INVALID_JSON"}
    second = {"message_id": "2", "idempotency_key": None, "raw_payload": None, "error_type": "EMPTY_PAYLOAD"}
    messages = "Expecting value: line 1 column 6 (character 5)", "the payload is NULL"
    by_id = sorted(report.refused, key=lambda row: row["message_id"])
    assert by_id == [
        {**common, **row, "error_message": message} for row, message in zip((first, second), messages, strict=True)
    ]


def test_more_places_than_a_task_remembers_are_stored_all_the_same(services: Services) -> None:
    wide = [{f"k{number}": number for number in range(start, start + 500)} for start in range(0, 25_000, 500)]
    cases: list[Case] = [(json.dumps(payload | {"last": 1}).encode(), (None,) * 3) for payload in wide]
    outcomes, report = by_kernel(services, cases, {"/last": "last"})
    for payload, (texts, extra, *_) in zip(wide, outcomes, strict=True):
        assert texts == {"last": "1"}
        assert json.loads(extra or "{}") == {f"/{key}": str(value) for key, value in payload.items()}
    assert report.places["/last"] == Counter(number=len(cases))
    assert len(report.places) == 20_001


def test_the_sums_of_many_tasks_are_the_sums_of_one(services: Services) -> None:
    payloads = [b'{"a":1,"b":{"c":"x"}}', b'{"a":"x","d":[]}', b'{"e":{},"a":true}', b"[", b""]
    cases: list[Case] = [(payload, (None,) * 3) for payload in payloads * 20]
    one, many = (by_kernel(services, cases, {"/a": "a"}, partitions)[1] for partitions in (1, 7))
    assert one.places == many.places == by_reference(cases, {})[1]
    assert (one.records, one.errors, one.error_bytes) == (many.records, many.errors, many.error_bytes) == (100, 40, 20)
    assert len(many.refused) == 40


def test_every_row_is_counted_and_goes_on_unless_it_is_left_out(services: Services) -> None:
    spark = services.sessions.mine()
    rows = [(1, 5, "a", 0), (2, None, "a", 1), (3, 9, "a", 2), (4, 7, HARD_NAME, 2), (5, 1, HARD_NAME, 0)]
    frame = spark.createDataFrame(rows, "number int, ingestion_ts long, _file string, _pos long")
    for left_out, wanted in ({(): [1, 2, 3, 4, 5], (("a", 1), (HARD_NAME, 2), ("a", 7), ("b", 0)): [1, 3, 5]}).items():
        report = Report(spark)
        with sql.viewed(frame) as view, passing(spark, left_out, report) as condition:
            given = f"(SELECT /*+ REPARTITION(1) */ * FROM {view})"  # noqa: S608  a task reads it, not the planner
            found = spark.sql(f"SELECT number FROM {given} WHERE {condition}").collect()  # noqa: S608  our own words
        assert sorted(row["number"] for row in found) == wanted
        read = report.read()
        assert (read.seen, read.last_ingestion_ts, read.records) == (5, 9, 0)
