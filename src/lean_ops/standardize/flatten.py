"""Payload text to columns: the DataFrame step around the function that reads each payload once, in Java."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.kernel import applied, call, java_class, named
from lean_ops.model.envelope import ENVELOPE_SOURCES
from lean_ops.standardize.first_copy import ROW

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

PlaceCounts = dict[str, Counter[str]]

FLAT: Final = "_flat"
# Blanks keep them apart from every column's name.
ERROR_TYPE: Final = "error type"
ERROR_MESSAGE: Final = "error message"
# Metadata leaves that the envelope may have taken, by envelope column, first choice first.
_METADATA_SOURCES: Final = {
    column: tuple(pointer for pointer in pointers if pointer.startswith("/_metadata/"))
    for column, pointers in ENVELOPE_SOURCES.items()
}
# Refused rows of a job that travel to the driver with its counts; more than that take a job of their own.
CARRIED_BYTES: Final = 32 * 1024 * 1024
_INPUT: Final = ("json_payload", *_METADATA_SOURCES, "message_id", "topic_name", "publish_time", "ingestion_ts")


@dataclass(frozen=True, slots=True)
class Flattened:
    """What a job saw: rows as they came, records, places by pointer and kind of value, refused rows that came along."""

    seen: int
    last_ingestion_ts: int | None
    records: int
    errors: int
    error_bytes: int
    places: PlaceCounts = field(default_factory=dict)
    refused: tuple[dict[str, Any], ...] = ()


class Report:
    """Takes what the tasks of one job see; to be read when the job has ended."""

    def __init__(self, spark: SparkSession) -> None:
        self.sum = java_class(spark, "flatten.Report")()
        scala_context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001  pyspark has no other way to register it
        scala_context.register(self.sum)

    def read(self) -> Flattened:
        """The sums over all tasks that succeeded."""
        seen = json.loads(self.sum.value())
        places = {pointer: Counter(kinds) for pointer, kinds in seen["places"].items()}
        counts = (seen["seen"], seen["last_ingestion_ts"], seen["records"], seen["refused"], seen["refused_bytes"])
        return Flattened(*counts, places, tuple(seen["carried"]))


def flatten(first: DataFrame, column_by_pointer: Mapping[str, str], report: Report | None = None) -> DataFrame:
    """RAW rows with a struct FLAT: the given columns, `_extra`, and the error of a payload that was refused."""
    return applied(first, _function(first.sparkSession, column_by_pointer, report), _INPUT, FLAT)


@contextmanager
def flattened(spark: SparkSession, first: str, column_by_pointer: Mapping[str, str], report: Report) -> Iterator[str]:
    """The same as a statement in the block reads it, of RAW rows from `first`, which may say which ones."""
    with named(spark, _function(spark, column_by_pointer, report)) as name:
        yield f"(SELECT {ROW}, {call(name, _INPUT)} AS {FLAT} FROM {first})"  # noqa: S608  names are quoted


def _function(spark: SparkSession, column_by_pointer: Mapping[str, str], report: Report | None) -> Any:
    layout = {"columns": list(column_by_pointer.items()), "taken": list(_METADATA_SOURCES.values())}
    text = json.dumps(layout, ensure_ascii=False)
    report_sum = report.sum if report is not None else None
    return java_class(spark, "flatten.Flatten")(text, report_sum, CARRIED_BYTES)
