"""The Spark work of one Curated batch: read, judge, split, newest version of each key, merge."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from lean_ops.curate.rows import KEY, REFUSED, Judgement, curated_rows, judged, newest_versions, version_order
from lean_ops.curate.source import read_standardized
from lean_ops.lake.error_rows import completed
from lean_ops.lake.staging import Stage, commit_properties
from lean_ops.model.tables import CURATED_ERRORS, FIRST_SEEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from lean_ops.lake.catalog import Lake

_ROW_OF_TASK: Final = "row of its task"
_SNAPSHOT_PROPERTY: Final = "spark.sql.iceberg.snapshot-property."
# Refused rows travel with the counts while they are few and short, and need no job of their own: all of a batch that
# is not large, and of a large one those among the first rows of each task.
_SMALL_BATCH: Final = 50_000
_FIRST_ROWS: Final = 2_000
_CARRIED_CHARACTERS: Final = 1_000
_ERROR_SLICE_CHARACTERS: Final = 32 * 1024 * 1024
# A table in buckets of the key is joined bucket by bucket: only the batch is moved, however large the table is.
_JOIN_BY_BUCKET: Final = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.sources.v2.bucketing.shuffle.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.join.preferSortMergeJoin": "false",
}


@dataclass(frozen=True, slots=True)
class Observed:
    """What the job saw while it merged; true only once the merge has returned."""

    records_in: int = 0
    errors: int = 0
    error_characters: int = 0
    keys: int = 0
    last_ingestion_ts: int | None = None
    refused: tuple[dict[str, Any], ...] = ()

    @property
    def carries_all_errors(self) -> bool:
        """Whether every refused row came along with the counts."""
        return len(self.refused) == self.errors


def judged_rows(spark: SparkSession, lake: Lake, judgement: Judgement) -> DataFrame:
    """The batch's rows, each with its reasons of refusal if it has any; nothing has run yet."""
    table = lake.load(lake.names.standardized(judgement.batch.topic)).schema()
    return judged(read_standardized(spark, lake, judgement.batch), table, judgement)


def merge_rows(spark: SparkSession, rows: DataFrame, stage: Stage, judgement: Judgement, records_in: int) -> Observed:
    """Merge the good rows into the branch in one pass over the batch, and bring back what it saw."""
    seen, kept = Observation(), Observation()
    watched = _numbered(rows).observe(seen, *_counts(records_in))
    newest = newest_versions(curated_rows(watched, judgement), judgement.schema)
    newest = newest.observe(kept, F.count(F.lit(1)).alias("keys"))
    source = f"batch_{judgement.batch.batch_id}"
    newest.createOrReplaceTempView(source)
    try:
        with _settings(spark, {**_JOIN_BY_BUCKET, **_properties(judgement)}):
            _merge(spark, stage, source, newest.columns, judgement)
    finally:
        spark.catalog.dropTempView(source)
    return _observed(seen.get, kept.get)


def _numbered(rows: DataFrame) -> DataFrame:
    """The rows with their number in their task.

    Spark moves no filter below such a number, and so does not compute all that a filter asks for a second time.
    """
    number = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    return rows.select("*", number.alias(_ROW_OF_TASK))


def _properties(judgement: Judgement) -> dict[str, str]:
    return {f"{_SNAPSHOT_PROPERTY}{key}": value for key, value in commit_properties(judgement.batch).items()}


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of this thread's session for the time of the block; the next batch must not inherit them."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def _merge(spark: SparkSession, stage: Stage, source: str, columns: list[str], judgement: Judgement) -> None:
    """A newer version takes the place of the key's row, whose `first_seen_ts` stays; an older one changes nothing."""
    newer = f"{version_order(judgement.schema, 's')} > {version_order(judgement.schema, 't')}"
    names = [f"`{name}`" for name in columns]
    updates = ", ".join(f"t.{name} = s.{name}" for name in names if name != f"`{FIRST_SEEN}`")
    spark.sql(
        f"MERGE INTO {stage.spark_table} AS t USING `{source}` AS s ON t.{KEY} = s.{KEY}"  # noqa: S608  every name is quoted
        f" WHEN MATCHED AND {newer} THEN UPDATE SET {updates}"
        f" WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
    )


def _counts(records_in: int) -> list[Column]:
    """What is counted while the batch passes by, and the refused rows that may travel along."""
    refused = F.col(f"`{REFUSED}`")
    size = F.length(refused["raw_record"]) + F.length(refused["error_message"])
    rows_that_may = _SMALL_BATCH if records_in <= _SMALL_BATCH else _FIRST_ROWS
    travels = (F.col(f"`{_ROW_OF_TASK}`") < rows_that_may) & (size < _CARRIED_CHARACTERS)
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count(refused).alias("errors"),
        F.sum(size).alias("error_characters"),
        F.max("ingestion_ts").alias("last"),
        F.collect_list(F.when(travels, refused)).alias("refused"),
    ]


def _observed(seen: dict[str, Any], kept: dict[str, Any]) -> Observed:
    return Observed(
        records_in=seen["rows"],
        errors=seen["errors"],
        error_characters=seen["error_characters"] or 0,
        keys=kept["keys"],
        last_ingestion_ts=seen["last"],
        refused=tuple(row.asDict() for row in seen["refused"]),
    )


def refused_rows(rows: DataFrame, observed: Observed, judgement: Judgement) -> Iterator[pa.Table]:
    """The batch's rows of `errors`, in parts that fit in memory."""
    import pyarrow as pa

    parts = [pa.Table.from_pylist(observed.refused)] if observed.carries_all_errors else _error_job(rows, observed)
    return (completed(part, CURATED_ERRORS, judgement.batch, judgement.now) for part in parts)


def _error_job(rows: DataFrame, observed: Observed) -> Iterator[pa.Table]:
    """Judge the batch once more for the refused rows alone."""
    refused = _numbered(rows).where(F.col(f"`{REFUSED}`").isNotNull()).select(F.col(f"`{REFUSED}`.*"))
    slices = observed.error_characters // _ERROR_SLICE_CHARACTERS + 1
    for part in range(slices):
        yield refused.where(F.pmod(F.xxhash64("message_id"), F.lit(slices)) == part).toArrow()
