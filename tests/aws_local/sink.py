"""Firehose's Iceberg sink: records into the tables that they are routed to, what does not fit to the error output."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.types import IcebergType, LongType, StringType, TimestamptzType
from tests.aws_local.faults import Faults

from lean_ops.lake.append import append_files, write_files
from lean_ops.model.errors import TransientError

ERROR_PREFIX: Final = "firehose-errors/"
_TRIES: Final = 5


@dataclass
class IcebergSink:
    """Appends through pyiceberg; `landed` has the message ids of all rows that are in a table."""

    catalog: Callable[[], Catalog]
    s3: Any
    error_bucket: str
    faults: Faults
    landed: set[str] = field(default_factory=set)

    def append(self, database: str, table: str, records: list[bytes]) -> None:
        """Bring records into a table in one commit."""
        try:
            target = self.catalog().load_table((database, table))
        except NoSuchTableError:
            self.write_errors("Iceberg.NoSuchTable", f"{database}.{table} is not there", records)
            return
        fields = {one.name: one.field_type for one in target.schema().fields}
        rows = []
        for record in records:
            try:
                rows.append(_row(json.loads(record), fields))
            except (ValueError, TypeError) as error:
                self.write_errors("Iceberg.SchemaMismatch", str(error), [record])
        values = pa.Table.from_pylist(rows, schema=target.schema().as_arrow())
        for tries in range(_TRIES):
            try:
                append_files(self.catalog().load_table((database, table)), write_files(target, values), {})
                break
            except TransientError:
                # Whether it was written nobody knows; the sink delivers at least once.
                self.faults.count("sink: commits tried again")
                if tries == _TRIES - 1:
                    raise
                time.sleep(0.5)
        self.faults.count("sink: commits")
        self.landed.update(row["message_id"] for row in rows)

    def write_errors(self, code: str, message: str, records: list[bytes]) -> None:
        """An error object, a line for each record."""
        now = datetime.now(UTC)
        lines = [
            {
                "attemptsMade": 1,
                "arrivalTimestamp": int(now.timestamp() * 1000),
                "errorCode": code,
                "errorMessage": message,
                "attemptEndingTimestamp": int(now.timestamp() * 1000),
                "rawData": base64.b64encode(record).decode(),
                "lambdaArn": "arn:aws:lambda:eu-central-1:000000000000:function:firehose-transform",
            }
            for record in records
        ]
        key = f"{ERROR_PREFIX}{code}/{now:%Y/%m/%d/%H}/{uuid.uuid4()}"
        self.s3.put_object(Bucket=self.error_bucket, Key=key, Body="".join(f"{json.dumps(one)}\n" for one in lines))

    def errors(self) -> list[dict[str, Any]]:
        """All that could not be delivered."""
        found: list[dict[str, Any]] = []
        for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.error_bucket, Prefix=ERROR_PREFIX):
            for one in page.get("Contents", ()):
                body = self.s3.get_object(Bucket=self.error_bucket, Key=one["Key"])["Body"].read()
                found += map(json.loads, body.splitlines())
        return found


def _row(record: Any, fields: dict[str, IcebergType]) -> dict[str, Any]:
    """A record as the sink reads it: its keys are the table's columns, its values of their types."""
    if not isinstance(record, dict) or record.keys() != fields.keys():
        raise ValueError("the first-level keys are not the table's columns")
    return {name: _value(name, record[name], kind) for name, kind in fields.items()}


def _value(name: str, value: Any, kind: IcebergType) -> Any:
    if value is None:
        return None
    wanted = str if isinstance(kind, StringType) else int
    if type(value) is not wanted or not isinstance(kind, StringType | LongType | TimestamptzType):
        raise TypeError(f"{name}: {type(value).__name__} in a column of {kind}")
    # pyarrow takes a whole number for a timestamp in the column's unit, which is microseconds.
    return value
