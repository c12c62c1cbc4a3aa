"""How a rebuilt branch differs from main, row by row: counts, and a few ids of each kind."""

# ruff: noqa: S608  names are quoted

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake import sql
from lean_ops.lake.ranges import spark_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import SparkSession

    from lean_ops.lake.staging import Stage

SHOWN_IDS: Final = 5
# What each kind of difference is, asked of one id's rows: how many there are live and rebuilt, and what they say.
_KINDS: Final = {
    "gone": "rebuilt = 0",
    "new": "live = 0",
    "changed": "live > 0 AND rebuilt > 0 AND (live <> rebuilt OR low <> high)",
}


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Rows before and after, how many are gone, new or changed, and a few ids of each."""

    before: int = 0
    after: int = 0
    gone: int = 0
    new: int = 0
    changed: int = 0
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_none(self) -> bool:
        """Whether every row stays as it is."""
        return not (self.gone or self.new or self.changed)

    def document(self) -> dict[str, Any]:
        """It for a machine."""
        names = ("before", "after", "gone", "new", "changed")
        ids = {kind: list(found) for kind, found in self.ids.items()}
        return {**{name: getattr(self, name) for name in names}, "ids": ids}


def compare_rows(spark: SparkSession, stage: Stage, key: Sequence[str], left_out: Collection[str]) -> RowDifference:
    """Main against the branch by the key's columns; rows are the same if all but the columns left out are."""
    main = spark.table(spark_name(stage.name))
    values = sql.hash_of(name for name in main.columns if name not in {*key, *left_out})
    with sql.viewed(main) as live, sql.viewed(spark.table(stage.spark_table)) as rebuilt:
        rows = _by_key(live, rebuilt, key, values)
        counts = ", ".join(f"count_if({condition}) AS {kind}" for kind, condition in _KINDS.items())
        [found] = spark.sql(f"SELECT sum(live) AS before, sum(rebuilt) AS after, {counts} FROM ({rows})").collect()
        ids = {
            kind: [
                str(row["id"])
                for row in spark.sql(
                    f"SELECT id FROM ({rows}) WHERE {condition} ORDER BY id LIMIT {SHOWN_IDS}"
                ).collect()
            ]
            for kind, condition in _KINDS.items()
            if found[kind]
        }
    return RowDifference(**{name: value or 0 for name, value in found.asDict().items()}, ids=ids)


def _by_key(live: str, rebuilt: str, key: Sequence[str], values: str) -> str:
    names = ", ".join(map(sql.name, key))
    both = (
        f"SELECT {names}, 1L AS live, 0L AS rebuilt, {values} AS said FROM {live}"
        f" UNION ALL SELECT {names}, 0L, 1L, {values} FROM {rebuilt}"
    )
    counted = "sum(live) AS live, sum(rebuilt) AS rebuilt, min(said) AS low, max(said) AS high"
    return f"SELECT {sql.name(key[0])} AS id, {counted} FROM ({both}) GROUP BY {names}"
