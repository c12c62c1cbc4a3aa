"""The payload columns that a Standardized table has, and how it gets more of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.standardize.naming import assign_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

    from lean_ops.standardize.flatten import PlaceCounts

KINDS_PROPERTY: Final = "lean-ops.column-kinds"


@dataclass(frozen=True, slots=True)
class PayloadColumns:
    """Owners and names: each column's doc is the JSON pointer of the leaf it holds."""

    by_pointer: Mapping[str, str]
    all_names: frozenset[str]

    @classmethod
    def of_schema(cls, schema: Schema) -> PayloadColumns:
        """The columns of a table schema."""
        owned = {field.doc: field.name for field in schema.fields if field.doc and field.doc.startswith("/")}
        return cls(owned, frozenset(field.name for field in schema.fields))

    def room(self, limit: int) -> int:
        """How many more columns the topic may have."""
        return max(0, limit - len(self.by_pointer))

    def unknown(self, places: PlaceCounts) -> dict[str, int]:
        """Leaves that have no column yet, with the number of records that have them."""
        return {pointer: kinds.total() for pointer, kinds in places.items() if pointer not in self.by_pointer}


def published_columns(table: Table) -> PayloadColumns:
    """The columns as the last published batch left them; what came since was added by the open batch."""
    head = table.current_snapshot()
    schema_id = head.schema_id if head is not None else None
    return PayloadColumns.of_schema(table.schemas()[schema_id] if schema_id is not None else table.schema())


def add_columns(table: Table, places: PlaceCounts, declared: Collection[str], limit: int) -> None:
    """Evolve the table for every new leaf that finds room, in one commit, before anything is written with it."""
    from pyiceberg.types import StringType

    columns = PayloadColumns.of_schema(table.schema())
    assigned = assign_columns(columns.unknown(places), columns.all_names, declared, columns.room(limit))
    with table.update_schema() as update:
        for pointer, name in assigned.columns.items():
            update.add_column(name, StringType(), doc=pointer)


def kinds_held(table: Table) -> PlaceCounts:
    """What kinds of values each column has held so far, by pointer."""
    stored = json.loads(table.properties.get(KINDS_PROPERTY, "{}"))
    return {pointer: Counter(kinds) for pointer, kinds in stored.items()}


def kinds_property(held: PlaceCounts, places: PlaceCounts, columns: PayloadColumns) -> dict[str, str]:
    """The table property after this batch; it is set in the very commit that publishes the batch."""
    total = {
        pointer: dict(held.get(pointer, Counter()) + places.get(pointer, Counter())) for pointer in columns.by_pointer
    }
    return {KINDS_PROPERTY: json.dumps({pointer: kinds for pointer, kinds in total.items() if kinds})}
