"""Calling our own Java functions in a plan: made by the driver, found by Spark under a name, carried to every task."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lean_ops.lake import sql
from lean_ops.lake.kernel_jar import FUNCTIONS_CATALOG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """One of our Java classes, by its name within `leanops`.

    Asked for by its whole name: py4j would take each part of a dotted name for a class first, and every class that is
    not there is looked for in hundreds of jars.
    """
    jvm: Any = spark._jvm  # noqa: SLF001  pyspark has no other name for it
    return getattr(jvm, f"leanops.{name}")


@contextmanager
def named(spark: SparkSession, function: Any) -> Iterator[str]:
    """The name by which SQL calls a function; a plan that was analysed in the block keeps the function itself."""
    functions: Any = java_class(spark, "Functions")
    name = f"f{uuid.uuid4().hex}"
    functions.put(name, function)
    try:
        yield f"{FUNCTIONS_CATALOG}.kernel.{name}"
    finally:
        functions.remove(name)


def call(name: str, columns: Iterable[str]) -> str:
    """SQL that calls a named function with the given columns of a row."""
    return f"{name}({', '.join(map(sql.name, columns))})"


def applied(frame: DataFrame, function: Any, columns: Iterable[str], alias: str) -> DataFrame:
    """The frame with one more column: what the function makes of the given columns of each row."""
    with sql.viewed(frame) as view, named(frame.sparkSession, function) as name:
        return frame.sparkSession.sql(f"SELECT *, {call(name, columns)} AS {sql.name(alias)} FROM {view}")  # noqa: S608  names are quoted
