"""What our sessions take out of Spark's plans: an exchange goes where it moves nothing, and only there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import DataFrame, SparkSession

from lean_ops.curate.merge import session_settings
from lean_ops.lake.catalog import CATALOG_NAME
from lean_ops.wiring import Services

pytestmark = pytest.mark.spark

_numbers = itertools.count()
_SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
_NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


@pytest.fixture
def spark(services: Services) -> SparkSession:
    return services.sessions.mine()


@pytest.fixture
def new_table(spark: SparkSession) -> Iterator[Callable[[int], str]]:
    """Makes a table of the ids 0 to 9, read by so many tasks."""
    made: list[str] = []

    def make(tasks: int) -> str:
        name = f"{CATALOG_NAME}.ops_db.plan_{next(_numbers)}"
        one_file_a_task = "TBLPROPERTIES ('read.split.open-file-cost' = '1000000000')"
        spark.sql(f"CREATE TABLE {name} (id BIGINT) USING iceberg {one_file_a_task}")
        made.append(name)
        for task in range(tasks):
            spark.sql(f"INSERT INTO {name} SELECT id FROM range(0, 10, 1, 1) WHERE id % {tasks} = {task}")  # noqa: S608
        return name

    yield make
    for name in made:
        spark.sql(f"DROP TABLE {name} PURGE")


@contextmanager
def joined(spark: SparkSession, left: str, right: str, **settings: str) -> Iterator[DataFrame]:
    with session_settings(spark, {**_NO_BROADCAST, **_SMALL, **settings}):
        yield spark.sql(f"SELECT l.id FROM {left} l LEFT JOIN {right} r ON l.id = r.id WHERE l.id >= 0")  # noqa: S608


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan())


def moves(frame: DataFrame) -> int:
    return plan_of(frame).count("Exchange hashpartitioning")


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def test_tables_that_are_one_task_each_are_joined_where_they_are(
    spark: SparkSession, new_table: Callable[[int], str]
) -> None:
    with joined(spark, new_table(1), new_table(1)) as frame:
        assert moves(frame) == 0
        assert ids(frame) == list(range(10))


def test_what_comes_from_several_tasks_is_moved(spark: SparkSession, new_table: Callable[[int], str]) -> None:
    with joined(spark, new_table(3), new_table(1)) as frame:
        assert moves(frame) == 1
        assert ids(frame) == list(range(10))


def test_what_goes_to_several_tasks_is_moved(spark: SparkSession, new_table: Callable[[int], str]) -> None:
    with joined(spark, new_table(1), new_table(1), **{"spark.sql.shuffle.partitions": "2"}) as frame:
        assert moves(frame) == 2
        assert ids(frame) == list(range(10))


def test_a_table_without_files_has_no_task_and_is_moved(spark: SparkSession, new_table: Callable[[int], str]) -> None:
    with joined(spark, new_table(1), new_table(0)) as frame:
        assert ids(frame) == list(range(10))
    with joined(spark, new_table(0), new_table(1)) as frame:
        assert ids(frame) == []


def test_a_plan_that_changes_while_it_runs_is_left_alone(spark: SparkSession, new_table: Callable[[int], str]) -> None:
    with joined(spark, new_table(1), new_table(1), **{"spark.sql.adaptive.enabled": "true"}) as frame:
        assert ids(frame) == list(range(10))
        assert plan_of(frame).count("ShuffleQueryStage") == 2


def test_each_key_of_one_task_is_ranked_without_a_move(spark: SparkSession, new_table: Callable[[int], str]) -> None:
    table = new_table(1)
    with session_settings(spark, _SMALL):
        ranked = spark.sql(f"SELECT id, row_number() OVER (PARTITION BY id % 3 ORDER BY id) AS place FROM {table}")  # noqa: S608
        assert moves(ranked) == 0
        assert {row.id for row in ranked.collect() if row.place == 1} == {0, 1, 2}
