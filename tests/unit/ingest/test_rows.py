"""The rows of a flush on their way to Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lean_ops.ingest.rows import GatheredRows
from lean_ops.model.envelope import RawRow

SCHEMA = pa.schema(
    [
        ("topic_name", pa.large_string()),
        ("message_id", pa.large_string()),
        ("idempotency_key", pa.large_string()),
        ("period_reference", pa.large_string()),
        ("correlation_id", pa.large_string()),
        ("publish_time", pa.timestamp("us", tz="UTC")),
        ("ingestion_ts", pa.int64()),
        ("json_payload", pa.large_string()),
    ]
)


def gathered(count: int) -> GatheredRows:
    rows = GatheredRows()
    for number in range(count):
        rows.add(RawRow("events", f"m-{number}", None, "p", "é", 10**15 + number, number, f'{{"n":{number}}}'))
    return rows


@pytest.mark.parametrize("count", [0, 1, 2047, 2048, 2049, 5000])
def test_every_row_is_there_once_and_in_order_however_many_parts_it_takes(count: int) -> None:
    table = gathered(count).table(SCHEMA)
    assert table.schema == SCHEMA
    assert table.column("message_id").to_pylist() == [f"m-{number}" for number in range(count)]
    assert table.column("json_payload").to_pylist() == [f'{{"n":{number}}}' for number in range(count)]
    assert table.column("publish_time").cast(pa.int64()).to_pylist() == [10**15 + number for number in range(count)]
    assert set(table.column("idempotency_key").to_pylist()) <= {None}
    assert set(table.column("correlation_id").to_pylist()) <= {"é"}


def test_a_column_that_somebody_added_is_null_and_another_order_is_followed() -> None:
    schema = pa.schema([("added", pa.int32()), *reversed(list(SCHEMA))])
    table = gathered(3000).table(schema)
    assert table.schema == schema
    assert table.column("added").null_count == 3000
    assert table.column("ingestion_ts").to_pylist() == list(range(3000))


def test_a_column_of_another_width_gets_its_values() -> None:
    narrow = pa.schema([("message_id", pa.string()), ("ingestion_ts", pa.int64())])
    assert gathered(3).table(narrow).column("message_id").to_pylist() == ["m-0", "m-1", "m-2"]
