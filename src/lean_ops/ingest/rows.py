"""The rows of a flush as Arrow columns, made part by part: what is gathered lies in memory once, and as text only."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.envelope import RawRow

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS: Final = len(RawRow._fields)
# Few enough that a part's Python objects stay in the processor's cache and their memory is used again.
_PART_VALUES: Final = 2048 * _COLUMNS


class GatheredRows:
    """Rows for RAW in the order they came."""

    __slots__ = ("_parts", "_values")

    def __init__(self) -> None:
        self._values: list[Any] = []  # of the rows since the last part, one after the other
        self._parts: list[list[pa.Array]] = []

    def add(self, row: RawRow) -> None:
        """One more row."""
        self._values.extend(row)
        if len(self._values) >= _PART_VALUES:
            self._end_part()

    def _end_part(self) -> None:
        import pyarrow as pa

        columns = (self._values[position::_COLUMNS] for position in range(_COLUMNS))
        self._parts.append([pa.array(column, kind) for column, kind in zip(columns, _types(), strict=True)])
        self._values = []

    def table(self, schema: pa.Schema) -> pa.Table:
        """All rows in the columns of a table; one that somebody added by hand is NULL."""
        import pyarrow as pa

        self._end_part()
        columns = dict(zip(RawRow._fields, map(pa.chunked_array, zip(*self._parts, strict=True)), strict=True))
        count = sum(len(part[0]) for part in self._parts)
        arrays = [
            columns[field.name].cast(field.type) if field.name in columns else pa.nulls(count, field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


@cache
def _types() -> tuple[pa.DataType, ...]:
    """The Arrow types of a row's fields."""
    import pyarrow as pa

    other = {"publish_time": pa.timestamp("us", tz="UTC"), "ingestion_ts": pa.int64()}
    return tuple(other.get(name, pa.large_string()) for name in RawRow._fields)
