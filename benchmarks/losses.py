"""What an output lost or changed, found by comparing it with the texts that the events were made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from benchmarks.data import Events

ID: Final = "message_id"
_NOT_IN_A_NAME: Final = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True, slots=True)
class Losses:
    """Right payloads without a row, wrong ones with one, leaves without a column, values gone, values that differ."""

    rows_missing: int
    malformed_taken: int
    columns_missing: int
    values_missing: int
    values_changed: int


@dataclass(frozen=True, slots=True)
class Expected:
    """Every leaf's text of every right payload, by columns; the ids of the payloads that are no JSON."""

    rows: pa.Table
    malformed: pa.Array

    @classmethod
    def of(cls, events: Events) -> Expected:
        """What must come out."""
        ids: list[str] = []
        malformed: list[str] = []
        columns: dict[str, list[str | None]] = {}
        for event in events:
            if event.leaves is None:
                malformed.append(events.message_id(event.number))
                continue
            for leaf, text in event.leaves.items():
                column = columns.setdefault(plain_name(leaf), [])
                column += [None] * (len(ids) - len(column))
                column.append(text)
            ids.append(events.message_id(event.number))
        filled = {name: column + [None] * (len(ids) - len(column)) for name, column in columns.items()}
        return cls(pa.table({ID: ids, **filled}), pa.array(malformed, pa.string()))

    def compared_with(self, output: pa.Table) -> Losses:
        """What the output lacks; columns are found by their letters and digits, whatever stands between them."""
        found = {plain_name(name): name for name in output.column_names if name != ID}
        ids = _texts(output.column(ID))
        places = pc.index_in(self.rows.column(ID), value_set=pc.unique(ids) if _is_unique(ids) else ids)
        present = pc.is_valid(places)
        missing = changed = columns_missing = 0
        for name in self.rows.column_names[1:]:
            wanted = self.rows.column(name)
            if name not in found:
                columns_missing += 1
                missing += _count(pc.and_(pc.is_valid(wanted), present))
                continue
            got = _texts(output.column(found[name])).take(places)
            missing += _count(pc.and_(pc.and_(pc.is_valid(wanted), pc.is_null(got)), present))
            changed += _count(pc.not_equal(wanted, got))
        taken = _count(pc.is_in(self.malformed, value_set=ids))
        return Losses(len(present) - _count(present), taken, columns_missing, missing, changed)


def plain_name(name: str) -> str:
    """A path or column by its letters and digits."""
    return _NOT_IN_A_NAME.sub("", name.lower())


def _is_unique(ids: pa.ChunkedArray) -> bool:
    return len(pc.unique(ids)) == len(ids)


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column's values as their texts."""
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array([None if value is None else str(value) for value in column.to_pylist()])])
    return column.cast(pa.string())


def _count(flags: Any) -> int:
    return int(pc.sum(flags).as_py() or 0)
