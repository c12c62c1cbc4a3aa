"""`{topic}_latest`: each key's newest Standardized row, as a view that any Spark on the catalog can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lean_ops.lake.ranges import spark_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from lean_ops.model.tables import Names

_PLACE: Final = "`place among versions`"  # the spaces keep it apart from every column's name


def make_latest_view(spark: SparkSession, names: Names, topic: str, columns: Iterable[str]) -> None:
    """Make the view, or make it again: a view's columns stay what they were when it was made.

    Newest is by (publish_time, ingestion_ts, message_id); a row without a key has no other version and is shown.
    """
    shown = ", ".join(f"`{column}`" for column in columns)
    newest_first = "PARTITION BY idempotency_key ORDER BY publish_time DESC, ingestion_ts DESC, message_id DESC"
    spark.sql(
        f"CREATE OR REPLACE VIEW {spark_name(names.latest(topic))} AS SELECT {shown} FROM"  # noqa: S608  names are quoted
        f" (SELECT *, row_number() OVER ({newest_first}) AS {_PLACE} FROM {spark_name(names.standardized(topic))})"
        f" WHERE {_PLACE} = 1 OR nullif(trim(idempotency_key), '') IS NULL"
    )
