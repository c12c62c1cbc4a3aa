"""Columns that somebody altered by hand: a table's schema is compared with the one that main was written with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lean_ops.lake.damage import name_of
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.types import IcebergType, NestedField


def refuse_altered(table: Table, *, with_docs: bool = False) -> Table:
    """The table, if every column that main was written with still has its name and its type, or a wider one.

    TerminalError otherwise: what is missing would be read as NULL and nobody would notice. `with_docs` also asks for
    the comments, where they say which leaf a column holds. Columns that somebody added do no harm.
    """
    head = table.current_snapshot()
    written = table.schemas().get(head.schema_id) if head and head.schema_id is not None else None
    now = {field.field_id: field for field in table.schema().fields}
    for field in written.fields if written else ():
        found = now.get(field.field_id)
        if found is None or not _is_same(field, found, with_docs):
            raise _altered(table, field, found, written.schema_id if written else None)
    return table


def becomes(found: IcebergType, wanted: IcebergType) -> bool:
    """Whether a column of one type is, or is widened in place to, the other."""
    from pyiceberg.types import DecimalType, IntegerType, LongType

    if isinstance(found, DecimalType) and isinstance(wanted, DecimalType):
        return found.scale == wanted.scale and found.precision <= wanted.precision
    return found == wanted or (isinstance(found, IntegerType) and isinstance(wanted, LongType))


def _is_same(written: NestedField, found: NestedField, with_docs: bool) -> bool:
    same_doc = not with_docs or (written.doc or "") == (found.doc or "")
    return written.name == found.name and becomes(written.field_type, found.field_type) and same_doc


def _altered(table: Table, written: NestedField, found: NestedField | None, schema_id: int | None) -> TerminalError:
    return TerminalError(
        "the table was altered by hand",
        where=f"{name_of(table)}, column {written.name!r}",
        found="no such column any more" if found is None else _in_words(found),
        expected=_in_words(written),
        remedy=f"Make schema {schema_id} of the table its current one again; docs/runbook-faults.md shows how.",
    )


def _in_words(field: NestedField) -> str:
    comment = f" with comment {field.doc!r}" if field.doc else ""
    return f"{field.name} {field.field_type}{comment}"
