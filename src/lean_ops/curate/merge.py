"""The Spark work of one Curated batch: read, judge, split, newest version of each key, append or merge."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from lean_ops.curate.judge import new_judge, new_key_hashes
from lean_ops.curate.rows import (
    KEY,
    all_keys_seen,
    judged,
    newest_versions,
    only_versions,
    refused_rows,
    times_carried_over,
    values,
    version_order,
    with_key,
    without_key,
)
from lean_ops.lake import sql
from lean_ops.lake.error_rows import completed
from lean_ops.lake.kernel import java_class, named
from lean_ops.lake.staging import Stage, commit_properties
from lean_ops.model.tables import CURATED_ERRORS, FIRST_SEEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from lean_ops.curate.judge import Tally
    from lean_ops.curate.rows import Judgement
    from lean_ops.curate.source import Standardized

SNAPSHOT_PROPERTY: Final = "spark.sql.iceberg.snapshot-property."
_ERROR_SLICE_BYTES: Final = 32 * 1024 * 1024
# Few rows are sorted by key in one go. Of more rows only those are whose key comes again, which is known by a hash of
# each key, eight bytes in the driver; there is an end to that, too.
_FEW_ROWS: Final = 100_000
_MOST_HASHES: Final = 10_000_000
_MOST_REPEATED_KEYS: Final = 100_000
# A merge into a table that is this large, and so many times the batch, first looks which keys the batch has.
_MANY_ROWS: Final = 200_000
_ROWS_PER_RECORD: Final = 10
# A table in buckets of the key may be joined bucket by bucket, so that only the batch is moved. Where the batch is
# spread over more partitions than there are buckets, Spark moves the table all the same (ADR 0020).
JOIN_BY_BUCKET: Final = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.sources.v2.bucketing.shuffle.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.join.preferSortMergeJoin": "false",
}
JOIN_IN_ONE_TASK: Final = {"spark.sql.iceberg.distribution-mode": "none"}
# So few rows are judged by one task, which then has all versions of each key: they are not moved at all.
_JUDGED_AT_ONCE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Observed:
    """What the job saw while it wrote; true only once the write has returned."""

    records_in: int = 0
    errors: int = 0
    error_bytes: int = 0
    keys: int = 0
    last_ingestion_ts: int | None = None
    carried_errors: int = 0
    carried_parts: int = 0


@dataclass(frozen=True, slots=True)
class _Functions:
    """The names by which SQL calls the judge, and the function that counts the newest versions."""

    judge: str
    newest: str


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows to write, as SQL, and what each column of Curated gets of them, as SQL over `s`."""

    source: str
    columns: Mapping[str, str]


class CuratedBatch:
    """One batch on its way from Standardized to a branch of the Curated table.

    Where `live` names a table, rows take over from its rows of the same keys when they were first seen.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: Standardized,
        judgement: Judgement,
        tally: Tally,
        live: str | None = None,
    ) -> None:
        self._spark = spark
        self._source = source
        self._judgement = judgement
        self._tally = tally
        self._live = live

    @cached_property
    def _standardized(self) -> str:
        """What statements read the batch's rows from."""
        return self._source.rows_of(self._judgement.batch, self._spark)

    @cached_property
    def _is_few(self) -> bool:
        return self._source.records_of(self._judgement.batch) <= _JUDGED_AT_ONCE

    def merge(self, stage: Stage, passes_over: bool) -> Observed:
        """Merge the good rows into the branch; rows there that they can't concern may be passed over by their keys."""
        with self._functions() as functions, self._near(passes_over) as near:
            rows = self._to_write(self._newest(self._standardized, functions))
            self._execute(_merge(stage, rows, self._judgement, near), self._join_settings())
        return self._observed()

    @contextmanager
    def _near(self, passes_over: bool) -> Iterator[str]:
        """A condition that holds for every row of the table whose key the batch has, and for hardly any other."""
        if not passes_over:
            yield ""
            return
        with named(self._spark, self._key_hashes().about()) as among:
            yield f" AND {among}(t.{KEY})"

    def append(self, stage: Stage, records_in: int) -> Observed:
        """Append the good rows to a branch that has none yet, where there is nothing to merge with."""
        with self._functions() as functions:
            if _FEW_ROWS < records_in <= _MOST_HASHES:
                self._insert_many(stage, self._standardized, functions)
            else:
                self._insert(stage, self._newest(self._standardized, functions))
        return self._observed()

    def _insert_many(self, stage: Stage, rows: str, functions: _Functions) -> None:
        """Append without moving rows whose key comes only once; bounded if most keys come again."""
        repeated = self._key_hashes().repeated()
        if repeated.size() > _MOST_REPEATED_KEYS:
            self._insert(stage, self._newest(rows, functions))
        elif not repeated.size():
            self._insert(stage, self._only(rows, functions))
        else:
            with named(self._spark, repeated) as among:
                once = self._only(without_key(rows, among), functions)
                again = self._newest(with_key(rows, among), functions)
                self._insert(stage, f"{once} UNION ALL {again}")

    def _key_hashes(self) -> Any:
        """What knows the keys of the batch, those of refused rows among them; only keys are read for it."""
        hashes = new_key_hashes(self._spark)
        with named(self._spark, java_class(self._spark, "judge.SeenKeys")(hashes)) as seen:
            self._spark.sql(all_keys_seen(self._standardized, seen)).collect()
        return hashes

    def _newest(self, standardized: str, functions: _Functions) -> str:
        return newest_versions(self._judged(standardized, functions.judge), self._judgement, functions.newest)

    def _only(self, standardized: str, functions: _Functions) -> str:
        return only_versions(self._judged(standardized, functions.judge), functions.newest)

    def _judged(self, standardized: str, judge: str) -> str:
        sources = self._source.texts_of(self._judgement.schema).values()
        return judged(standardized, judge, sources, in_one_task=self._is_few)

    @contextmanager
    def _functions(self) -> Iterator[_Functions]:
        judge = new_judge(self._spark, self._judgement.schema, self._judgement.key, self._tally)
        with named(self._spark, judge) as judge_name, named(self._spark, self._tally.newest(self._spark)) as newest:
            yield _Functions(judge_name, newest)

    def _insert(self, stage: Stage, newest: str) -> None:
        rows = self._to_write(newest)
        names, columns = ", ".join(map(sql.name, rows.columns)), ", ".join(rows.columns.values())
        statement = f"INSERT INTO {stage.spark_table} ({names}) SELECT {columns} FROM ({rows.source}) s"  # noqa: S608  names are quoted
        self._execute(statement, {})

    def _to_write(self, newest: str) -> _Rows:
        if self._live is None:
            return _Rows(newest, values(self._judgement, "s"))
        source = times_carried_over(newest, self._live, self._judgement)
        return _Rows(source, {name: f"s.{sql.name(name)}" for name in self._judgement.columns})

    def _join_settings(self) -> Mapping[str, str]:
        """How the table and the batch come together.

        A join in one task has all changes of a file there: they need not be moved once more to come together.
        """
        if self._spark.conf.get("spark.sql.shuffle.partitions") != "1":
            return JOIN_BY_BUCKET
        return JOIN_IN_ONE_TASK if self._is_few else {**JOIN_BY_BUCKET, **JOIN_IN_ONE_TASK}

    def _execute(self, statement: str, settings: Mapping[str, str]) -> None:
        with session_settings(self._spark, {**settings, **_properties(self._judgement)}):
            self._spark.sql(statement)

    def _observed(self) -> Observed:
        counts = self._tally.counts()
        return Observed(
            records_in=counts["rows"],
            errors=counts["errors"],
            error_bytes=counts["error_bytes"],
            keys=self._tally.keys(),
            last_ingestion_ts=counts["last_ingestion_ts"],
            carried_errors=counts["carried"],
            carried_parts=counts["parts"],
        )

    def refused(self, observed: Observed) -> Iterator[pa.Table]:
        """The batch's rows of `errors`, in parts that fit in memory."""
        carries_all = observed.carried_errors == observed.errors
        parts = self._carried(observed.carried_parts) if carries_all else self._error_job(observed)
        return (completed(part, CURATED_ERRORS, self._judgement.batch, self._judgement.now) for part in parts)

    def _carried(self, parts: int) -> Iterator[pa.Table]:
        """Refused rows that came along with the counts."""
        import pyarrow as pa

        return (pa.Table.from_pylist(rows) for rows in self._tally.refused(parts))

    def _error_job(self, observed: Observed) -> Iterator[pa.Table]:
        """Judge the batch once more for the refused rows alone: they were too many to come along."""
        uncounted = new_judge(self._spark, self._judgement.schema, self._judgement.key, None)
        slices = observed.error_bytes // _ERROR_SLICE_BYTES + 1
        with named(self._spark, uncounted) as judge:
            refused = self._spark.sql(refused_rows(self._judged(self._standardized, judge)))
        for part in range(slices):
            yield refused.where(f"pmod(xxhash64(message_id), {slices}) = {part}").toArrow()


def _properties(judgement: Judgement) -> dict[str, str]:
    return {f"{SNAPSHOT_PROPERTY}{key}": value for key, value in commit_properties(judgement.batch).items()}


@contextmanager
def session_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of this thread's session for the time of the block; the next batch must not inherit them."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def can_pass_over(records: int, rows_there: int) -> bool:
    """Whether a batch is so much smaller than its table that a look at its keys beforehand pays."""
    return records <= _MOST_HASHES and rows_there >= max(_MANY_ROWS, records * _ROWS_PER_RECORD)


def _merge(stage: Stage, rows: _Rows, judgement: Judgement, near: str) -> str:
    """A newer version takes the place of the key's row, whose `first_seen_ts` stays; an older one changes nothing."""
    there = {name: f"t.{sql.name(name)}" for name in rows.columns}
    newer = " > ".join(version_order(judgement.schema, columns) for columns in (rows.columns, there))
    updates = ", ".join(f"{there[name]} = {value}" for name, value in rows.columns.items() if name != FIRST_SEEN)
    return (
        f"MERGE INTO {stage.spark_table} AS t USING ({rows.source}) AS s ON t.{KEY} = s.{KEY}{near}"  # noqa: S608  every name is quoted
        f" WHEN MATCHED AND {newer} THEN UPDATE SET {updates}"
        f" WHEN NOT MATCHED THEN INSERT ({', '.join(map(sql.name, rows.columns))})"
        f" VALUES ({', '.join(rows.columns.values())})"
    )
