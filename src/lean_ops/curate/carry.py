"""First times that live processing gave to keys after a rebuild had written them: taken over before the switch.

A rebuild may come to a record between the two hops of a live run. Then the live row of its key is the younger one.
"""

# ruff: noqa: S608  every name is quoted

from __future__ import annotations

from typing import TYPE_CHECKING

from lean_ops.curate.merge import SNAPSHOT_PROPERTY, session_settings
from lean_ops.curate.rows import KEY
from lean_ops.lake.ranges import spark_name
from lean_ops.lake.staging import commit_properties
from lean_ops.model.tables import FIRST_SEEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lean_ops.lake.staging import Stage
    from lean_ops.model.batch import Batch


def take_over_first_times(spark: SparkSession, stage: Stage, batch: Batch) -> bool:
    """Give rows of the branch the first times of main's rows; False, and no commit, if they have them."""
    live = f"SELECT {KEY}, min({FIRST_SEEN}) AS {FIRST_SEEN} FROM {spark_name(stage.name)} GROUP BY {KEY}"
    other = f"t.{FIRST_SEEN} <> l.{FIRST_SEEN}"
    looked = f"SELECT count(*) AS n FROM {stage.spark_table} t JOIN ({live}) l ON t.{KEY} = l.{KEY} WHERE {other}"
    [found] = spark.sql(looked).collect()
    if not found["n"]:
        return False
    properties = {f"{SNAPSHOT_PROPERTY}{key}": value for key, value in commit_properties(batch).items()}
    with session_settings(spark, properties):
        spark.sql(
            f"MERGE INTO {stage.spark_table} AS t USING ({live}) AS l ON t.{KEY} = l.{KEY}"
            f" WHEN MATCHED AND {other} THEN UPDATE SET t.{FIRST_SEEN} = l.{FIRST_SEEN}"
        )
    return True
