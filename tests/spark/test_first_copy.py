"""Both ways of finding first copies, by reading ids on the driver and by moving ids in Spark, choose the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession
from tests.spark.driver import TopicDriver
from tests.spark.test_any_batches import any_batches

from lean_ops.lake.ranges import range_of
from lean_ops.lake.snapshots import history_of
from lean_ops.lake.topic_files import TopicFile
from lean_ops.model.batch import Batch, Zone
from lean_ops.standardize.first_copy import (
    MESSAGE,
    ROW,
    Address,
    first_copies,
    may_be_copies,
    passing,
    with_row_address,
)
from lean_ops.standardize.repeats import EarlierFiles, rows_to_leave_out
from lean_ops.standardize.source import range_files

pytestmark = pytest.mark.spark


def all_but(spark: SparkSession, rows: str, left_out: Iterable[Address]) -> list[Row]:
    with passing(spark, left_out) as first:
        return spark.sql(f"SELECT {ROW} FROM {rows} WHERE {first}").collect()  # noqa: S608  names are our own


def test_moving_ids_knows_turns_as_reading_ids_does(topic: TopicDriver) -> None:
    """A file of an earlier turn goes before one with lower times; a file that has none before both."""
    for second in (3, 2, 1):
        topic.put(*({"message_id": f"m{number}", "ingestion_ts": second} for number in range(3)))
    lake, spark = topic.services.lake, topic.services.sessions.mine()
    batch = Batch(topic.name, Zone.STANDARDIZED, None, history_of(lake.load(lake.names.raw(topic.name))).head or 0, "1")
    files = range_files(lake, batch)
    rows_of_raw = range_of(spark, lake, batch, files.size)
    raw = spark.sql(with_row_address(rows_of_raw))
    by_second = {row["ingestion_ts"]: row["_row_file"] for row in raw.collect()}
    for turns, wanted in (({3: 0, 2: 1, 1: 2}, 3), ({3: 2, 2: 0, 1: 1}, 2), ({3: 2, 1: 1}, 2), ({}, 1)):
        of_files = {by_second[second]: turn for second, turn in turns.items()}
        assert {row["ingestion_ts"] for row in first_copies(raw, None, turns=of_files).collect()} == {wanted}
        left_out = rows_to_leave_out(lake.load(lake.names.raw(topic.name)).io, files.paths, [], of_files)
        assert {row["ingestion_ts"] for row in all_but(spark, rows_of_raw, left_out or ())} == {wanted}


def test_reading_ids_and_moving_ids_find_the_same_first_copies(topic: TopicDriver, tmp_path: Path) -> None:
    rows = [row for seed in range(4) for batch in any_batches(seed) for row in batch]
    topic.put(*rows[: len(rows) // 2])
    topic.put(*rows[len(rows) // 2 :])
    lake, spark = topic.services.lake, topic.services.sessions.mine()
    head = history_of(lake.load(lake.names.raw(topic.name))).head
    assert head is not None
    batch = Batch(topic.name, Zone.STANDARDIZED, None, head, "1.0.0")
    files = range_files(lake, batch)
    rows_of_raw = range_of(spark, lake, batch, files.size)
    raw = spark.sql(with_row_address(rows_of_raw))
    earlier = raw.select(*MESSAGE).where("message_id < 'm15'")
    seen = str(tmp_path / "seen.parquet")
    pq.write_table(earlier.toArrow(), seen)

    def by_moving_ids(seen: Any) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in first_copies(raw, seen).collect()), key=repr)

    def by_reading_ids(*seen: EarlierFiles) -> list[tuple[Any, ...]]:
        left_out = rows_to_leave_out(lake.load(lake.names.raw(topic.name)).io, files.paths, seen)
        assert left_out is not None
        return sorted((tuple(row) for row in all_but(spark, rows_of_raw, left_out)), key=repr)

    others = earlier.selectExpr("concat('x', message_id) AS message_id", "publish_time")
    for records in (len(rows), 10**9):
        likely = may_be_copies(earlier.unionAll(others), raw, records).distinct()
        assert sorted(map(tuple, likely.collect())) == sorted(map(tuple, earlier.distinct().collect()))

    without, with_earlier = by_moving_ids(None), by_moving_ids(earlier)
    assert by_reading_ids() == without
    assert by_reading_ids(EarlierFiles([TopicFile(seen, 1, None, None)])) == with_earlier
    messages = {(row["message_id"], row["publish_time"]) for row in rows}
    assert len(without) == len(messages)
    assert len(with_earlier) == sum(message_id >= "m15" for message_id, _ in messages)
    assert 0 < len(with_earlier) < len(without)
