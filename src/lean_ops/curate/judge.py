"""The Java judge (`leanops.judge`): a schema made into its plan, and what it has counted brought back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lean_ops.curate.rules import column_rules, envelope_rules
from lean_ops.lake.kernel import java_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from lean_ops.curate.protect import PiiKey
    from lean_ops.model.schema import PayloadColumn, Schema


def plan_of(schema: Schema) -> str:
    """What rows are judged by, as the judge reads it."""
    plan = {
        "schema_version": schema.schema_version,
        "envelope": [rule.as_data() for rule in envelope_rules(schema)],
        "columns": [_column(name, column) for name, column in schema.payload_columns.items()],
    }
    return json.dumps(plan)


def _column(name: str, column: PayloadColumn) -> dict[str, Any]:
    return {
        "name": name,
        "kind": column.type.kind,
        "precision": column.type.precision,
        "scale": column.type.scale,
        "format": column.time_format,
        "default": column.default,
        "pii": column.pii,
        "rules": [rule.as_data() for rule in column_rules(name, column)],
    }


def new_judge(spark: SparkSession, schema: Schema, key: PiiKey | None, tally: Tally | None) -> Any:
    """A judge for one plan; it counts into the tally, if there is one."""
    counter = tally.counter if tally else None
    inner, outer = (key.inner, key.outer) if key else (None, None)
    return java_class(spark, "judge.Judge")(plan_of(schema), inner, outer, counter)


def new_key_hashes(spark: SparkSession) -> Any:
    """What gathers the hashes of the keys that a job sees."""
    return _registered(spark, java_class(spark, "judge.KeyHashes")())


def _registered(spark: SparkSession, accumulator: Any) -> Any:
    """An accumulator to which tasks can add."""
    _scala_context(spark).register(accumulator)
    return accumulator


def _scala_context(spark: SparkSession) -> Any:
    context: Any = spark.sparkContext._jsc  # noqa: SLF001  pyspark itself counts Python objects only
    return context.sc()


@dataclass(frozen=True, slots=True)
class Tally:
    """What a job has judged; true only once the job has returned."""

    counter: Any
    newest_counter: Any

    @classmethod
    def of(cls, spark: SparkSession) -> Tally:
        """A tally of nothing yet."""
        counter = _registered(spark, java_class(spark, "judge.Tally")())
        return cls(counter, _scala_context(spark).longAccumulator())

    def newest(self, spark: SparkSession) -> Any:
        """The function that tells the newest versions of keys by their place, and counts them."""
        return java_class(spark, "judge.Newest")(self.newest_counter)

    def keys(self) -> int:
        """How many newest versions were seen."""
        return int(self.newest_counter.value())

    def counts(self) -> dict[str, Any]:
        """Rows, errors, bytes of errors, refused rows that came along and in how many parts, last ingestion time."""
        counts: dict[str, Any] = json.loads(self.counter.value())
        return counts

    def refused(self, parts: int) -> Iterator[list[dict[str, Any]]]:
        """The refused rows that came along, part by part."""
        for part in range(parts):
            yield json.loads(bytes(self.counter.part(part)))
