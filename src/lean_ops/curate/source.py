"""Where a schema's columns come from: the Standardized column that holds each JSON path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.lake import sql
from lean_ops.lake.ranges import range_of
from lean_ops.model.envelope import ENVELOPE_SOURCES
from lean_ops.model.tables import ENVELOPE_NAMES, EXTRA

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as TableSchema
    from pyspark.sql import SparkSession

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.snapshots import History
    from lean_ops.model.batch import Batch
    from lean_ops.model.schema import PayloadColumn, Schema

# What the envelope took out of a payload's metadata has no column of its own any more.
_TAKEN_BY_ENVELOPE: Final = {
    pointer: name
    for name, pointers in ENVELOPE_SOURCES.items()
    for pointer in pointers
    if pointer.startswith("/_metadata/")
}


@dataclass(frozen=True, slots=True)
class Standardized:
    """A topic's Standardized table as a batch finds it."""

    lake: Lake
    schema: TableSchema
    history: History

    def records_of(self, batch: Batch) -> int:
        """How many rows a batch brings."""
        return self.history.records_between(batch.from_snapshot, batch.to_snapshot)

    def rows_of(self, batch: Batch, spark: SparkSession) -> str:
        """What a statement reads the rows of a batch from."""
        return range_of(spark, self.lake, batch, self._size_of(batch))

    def _size_of(self, batch: Batch) -> int:
        """About how many bytes the files of a batch have, by the snapshots' own summaries."""
        if batch.from_snapshot is None:
            return self.history.snapshots[batch.to_snapshot].count("total-files-size")
        added = self.history.between(batch.from_snapshot, batch.to_snapshot)
        return sum(snapshot.count("added-files-size") for snapshot in added)

    def texts_of(self, schema: Schema) -> dict[str, str]:
        """Each payload column's text as SQL, found by the JSON pointer that Standardized columns have as their doc."""
        fields = self.schema.fields
        names = {field.name for field in fields}
        by_pointer = {field.doc: field.name for field in fields if field.doc and field.doc.startswith("/")}
        return {name: _source(name, column, names, by_pointer) for name, column in schema.payload_columns.items()}


def _source(name: str, column: PayloadColumn, names: set[str], by_pointer: dict[str, str]) -> str:
    if column.pointer is None:
        return sql.name(name) if name in names - {EXTRA, *ENVELOPE_NAMES} else "CAST(NULL AS string)"
    if column.pointer in by_pointer:
        source = sql.name(by_pointer[column.pointer])
    else:
        source = _beyond_the_column_limit(column.pointer)
    taken_by = _TAKEN_BY_ENVELOPE.get(column.pointer)
    return source if taken_by is None else f"coalesce({source}, {taken_by})"


def _beyond_the_column_limit(pointer: str) -> str:
    """A leaf that found no room has its text in `_extra`, under its pointer; NULL if it never came."""
    return f"from_json({EXTRA}, 'map<string,string>')[{sql.text(pointer)}]"
