"""Calling our own Java functions in a plan: made by the driver, found by Spark under a name, carried to every task."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lean_ops.lake.kernel_jar import FUNCTIONS_CATALOG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession


def java_of(spark: SparkSession) -> Any:
    """The packages of the virtual machine behind a session."""
    jvm: Any = spark._jvm  # noqa: SLF001  pyspark has no other name for it
    if jvm is None:
        raise RuntimeError("the session has no virtual machine")
    return jvm


def applied(frame: DataFrame, function: Any, columns: Sequence[str], alias: str) -> DataFrame:
    """The frame with one more column: what the function makes of the given columns of each row."""
    functions: Any = java_of(frame.sparkSession).leanops.Functions
    name = f"f{uuid.uuid4().hex}"
    functions.put(name, function)
    try:
        result = F.call_function(f"{FUNCTIONS_CATALOG}.kernel.{name}", *(F.col(f"`{column}`") for column in columns))
        return frame.select("*", result.alias(alias))
    finally:
        functions.remove(name)
