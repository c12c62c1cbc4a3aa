"""The Firehose transform: every record is routed or failed, for itself, and none is dropped."""

from __future__ import annotations

import base64
import io
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aws_lambda_powertools.logging import Logger
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.aws.environment import Deployment
from lean_ops.entrypoints.lambdas import firehose_transform
from lean_ops.entrypoints.lambdas.firehose_transform import LISTED, Transform
from lean_ops.ingest.firehose_record import MAX_RECORD_BYTES, to_record
from lean_ops.model.envelope import RawRow
from lean_ops.model.errors import TerminalError
from lean_ops.model.tables import Names

ROW = RawRow("events", "m-1", "k", "2026-02", "c", 1_770_113_730_120_000, 1_770_113_800, '{"a": "é"}')
LAMBDA_ANSWER_BYTES = 6 * 1024 * 1024
NUMBERS = count()


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def asked(*data: str) -> dict[str, Any]:
    records = [{"recordId": f"r-{n}", "approximateArrivalTimestamp": 1, "data": each} for n, each in enumerate(data)]
    return {"invocationId": "i", "deliveryStreamArn": "arn", "region": "eu-west-1", "records": records}


def transform(event: dict[str, Any], prefix: str = "", logged: io.StringIO | None = None) -> list[dict[str, Any]]:
    log = Logger(service=f"transform-{next(NUMBERS)}", stream=logged or io.StringIO())
    answer = Transform(Deployment("lean-ops", "dev"), Names(prefix), log)(event)
    assert list(answer) == ["records"]
    return answer["records"]


def test_a_record_is_routed_to_its_topic_s_table() -> None:
    assert transform(asked(base64_of(to_record(ROW)))) == [
        {
            "recordId": "r-0",
            "result": "Ok",
            "data": base64_of(to_record(ROW)),
            "metadata": {
                "otfMetadata": {
                    "destinationDatabaseName": "iceberg_raw_db",
                    "destinationTableName": "events_staging",
                    "operation": "insert",
                }
            },
        }
    ]


def test_a_prefix_separates_the_databases_of_an_account() -> None:
    (answer,) = transform(asked(base64_of(to_record(ROW))), prefix="dev_")
    assert answer["metadata"]["otfMetadata"]["destinationDatabaseName"] == "dev_iceberg_raw_db"


def test_the_output_has_the_columns_of_the_real_table_in_their_order(tmp_path: Path) -> None:
    from lean_ops.lake.catalog import Lake
    from lean_ops.settings import load_settings

    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    lake.ensure_raw("events")
    schema = lake.load(lake.names.raw("events")).schema()
    (answer,) = transform(asked(base64_of(to_record(ROW))))
    values = json.loads(base64.b64decode(answer["data"]))
    assert list(values) == [field.name for field in schema.fields]
    kinds = {"string": str, "timestamptz": int, "long": int}
    for field in schema.fields:
        assert type(values[field.name]) is kinds[str(field.field_type)], field


def test_a_time_is_in_microseconds() -> None:
    (answer,) = transform(asked(base64_of(to_record(ROW))))
    assert json.loads(base64.b64decode(answer["data"]))["publish_time"] == 1_770_113_730_120_000


@pytest.mark.parametrize(
    "data",
    [
        "not base64!",
        "",
        base64_of(b"not json"),
        base64_of(b"[]"),
        base64_of(b'{"topic_name": "events"}'),
        base64_of(to_record(ROW._replace(topic_name="dlq"))),
        base64_of(to_record(ROW._replace(topic_name="Events"))),
        base64_of(to_record(ROW)[:-1] + b',"more":1}'),
        base64_of(to_record(ROW).replace(b"1770113730120000", b'"2026-02-03T10:15:30Z"')),
        base64_of(b"\xff"),
    ],
)
def test_what_can_not_be_routed_is_failed_unchanged(data: str) -> None:
    assert transform(asked(data)) == [{"recordId": "r-0", "result": "ProcessingFailed", "data": data}]


def test_a_record_without_data_disturbs_no_other() -> None:
    event = asked(base64_of(to_record(ROW)), "", base64_of(to_record(ROW)))
    del event["records"][1]["data"]
    assert [answer["result"] for answer in transform(event)] == ["Ok", "ProcessingFailed", "Ok"]


def test_a_column_that_comes_twice_or_out_of_order_comes_out_once_and_in_order() -> None:
    values = dict(reversed(ROW._asdict().items()))
    text = json.dumps(values)[:-1] + ', "message_id": "m-2"}'
    (answer,) = transform(asked(base64_of(text.encode())))
    assert base64.b64decode(answer["data"]) == to_record(ROW._replace(message_id="m-2"))


GOOD = st.sampled_from(["events", "orders"]).map(lambda topic: base64_of(to_record(ROW._replace(topic_name=topic))))
BAD = st.binary(max_size=40).map(base64_of) | st.text(max_size=20)


@given(st.lists(GOOD | BAD, max_size=12))
def test_every_record_has_one_answer_and_none_is_dropped(data: list[str]) -> None:
    answers = transform(asked(*data))
    assert [answer["recordId"] for answer in answers] == [f"r-{number}" for number in range(len(data))]
    for answer, given_ in zip(answers, data, strict=True):
        assert answer["result"] in {"Ok", "ProcessingFailed"}
        assert answer["data"] == given_
        assert ("metadata" in answer) == (answer["result"] == "Ok")


def test_the_answer_to_a_buffer_of_one_megabyte_fits_into_what_lambda_answers() -> None:
    # The smallest records grow most; the longest names and ids make them larger still, and a large one may come last.
    topic, database = "t" * 63, "p" * 40
    small = to_record(RawRow(topic, "m", None, None, None, 1, 1, None))
    large = to_record(RawRow(topic, "m", None, None, None, 1, 1, ""))
    large = to_record(RawRow(topic, "m", None, None, None, 1, 1, "x" * (MAX_RECORD_BYTES - len(large))))
    event = asked(*[base64_of(small)] * (1024 * 1024 // len(small)), base64_of(large))
    for number, each in enumerate(event["records"]):
        each["recordId"] = f"{number:0>80}"
    answer = {"records": transform(event, prefix=database)}
    assert len(json.dumps(answer)) < LAMBDA_ANSWER_BYTES


def test_what_failed_is_logged_in_a_bounded_number_of_lines(capsys: pytest.CaptureFixture[str]) -> None:
    logged = io.StringIO()
    transform(asked(base64_of(to_record(ROW)), *["no"] * 50), logged=logged)
    lines = [json.loads(line) for line in logged.getvalue().splitlines()]
    assert len([line for line in lines if "record_id" in line]) == LISTED
    told = json.loads(capsys.readouterr().out)
    assert (told["received"], told["routed"], told["processing_failed"]) == ([51], [1], [50])


def test_the_function_is_told_by_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    firehose_transform._transform.cache_clear()
    monkeypatch.delenv("LEAN_OPS_PROJECT", raising=False)
    with pytest.raises(TerminalError, match="LEAN_OPS_PROJECT"):
        firehose_transform.handler(asked(), None)
    for name, value in (("PROJECT", "lean-ops"), ("ENVIRONMENT", "dev"), ("DATABASE_PREFIX", "x_")):
        monkeypatch.setenv(f"LEAN_OPS_{name}", value)
    (answer,) = firehose_transform.handler(asked(base64_of(to_record(ROW))), None)["records"]
    firehose_transform._transform.cache_clear()
    assert answer["metadata"]["otfMetadata"]["destinationDatabaseName"] == "x_iceberg_raw_db"
