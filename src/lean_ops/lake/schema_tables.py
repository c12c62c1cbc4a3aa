"""The tables that a topic's schema asks for: made with it, and brought up to date when it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.lake.altered import becomes, refuse_altered
from lean_ops.lake.catalog import MANY_BATCHES, iceberg_type, transform_of, with_first_snapshot
from lean_ops.model.curated_layout import CURATED_RULE, by_key
from lean_ops.model.errors import TerminalError
from lean_ops.model.partitioning import Transform
from lean_ops.model.problem import Problem
from lean_ops.model.tables import CURATED_AUDIT, ENVELOPE, Column, TableShape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.partitioning import PartitionField
    from lean_ops.model.schema import Schema

# A correction marks the old row's position as deleted and adds the new one; nothing else is rewritten (ADR 0014).
_PROPERTIES: Final = {
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    # All changes of a data file in one task: each task rewrites the deletes that the file already has.
    "write.merge.distribution-mode": "hash",
    **MANY_BATCHES,
}
_SCHEMA_WORDS: Final = {"long": "BIGINT", "timestamptz": "TIMESTAMP"}  # the other types go by the same word here


@dataclass(frozen=True, slots=True)
class SchemaTables:
    """Makes and evolves the zone tables of topics; a new Curated table has `buckets` by key.

    With 0 it has no partitions at first, and gets buckets when it has grown (`operate/relayout.py`).
    """

    lake: Lake
    buckets: int

    def problems(self, schema: Schema) -> Iterator[Problem]:
        """Why there can't be tables as the schema asks for, or the ones that are there can't become so."""
        if not schema.is_curated:
            return
        name, shape = self.lake.names.curated(schema.table_name), curated_shape(schema, self.buckets)
        table = self.lake.load(name) if self.lake.exists(name) else None
        for column in _named_as_partitions(table, shape):
            keys, message = ("payload_columns", column.name), "is the name of a partition of the Curated table"
            yield Problem(keys, message, f'"{column.name}"', "another name")
        for column, found in _in_the_way(table, shape) if table else ():
            message = f"{name} has a column of this name and another type"
            yield Problem(("payload_columns", column.name, "type"), message, str(column.type), found)

    def ensure(self, schema: Schema) -> None:
        """Every table of the schema's zones, as this schema wants it; tables that exist are brought up to date."""
        self.lake.ensure_standardized(schema.table_name)
        if schema.is_curated:
            table, shape = self.curated(schema), curated_shape(schema, self.buckets)
            _evolve_columns(table, shape)
            if schema.partitioning is not None:
                _evolve_partitions(table, shape)
            _set_properties(table, schema.table_properties or {})

    def curated(self, schema: Schema) -> Table:
        """The Curated table as it is, made if it is not there: a batch of an older schema must not turn it back."""
        name, shape = self.lake.names.curated(schema.table_name), curated_shape(schema, self.buckets)
        table = self.lake.ensure(name, shape, {**_PROPERTIES, **(schema.table_properties or {})})
        return refuse_altered(with_first_snapshot(table))


def curated_shape(schema: Schema, buckets: int) -> TableShape:
    """The columns that a schema asks for, and its partitioning: its own, else by key into `buckets`."""
    payload = (Column(name, column.type, column.description) for name, column in schema.payload_columns.items())
    return TableShape((*ENVELOPE, *payload, *CURATED_AUDIT), _partitions(schema, buckets))


def _partitions(schema: Schema, buckets: int) -> tuple[PartitionField, ...]:
    if schema.partitioning is not None:
        return schema.partition_fields
    return by_key(buckets)


def _named_as_partitions(table: Table | None, shape: TableShape) -> Iterator[Column]:
    """New columns whose name a partition has, had, or gets when the table has grown: Iceberg takes no such column."""
    partitions = {partition.name for partition in shape.partitions if partition.transform is not Transform.IDENTITY}
    partitions |= {partition.name for buckets in CURATED_RULE.steps for partition in by_key(buckets)}
    has = {field.name for field in table.schema().fields} if table else set()
    if table is not None:
        partitions |= {field.name for spec in table.specs().values() for field in spec.fields}
    return (column for column in shape.columns if column.name in partitions - has)


def _in_the_way(table: Table, shape: TableShape) -> Iterator[tuple[Column, str]]:
    """Columns that the table has with a type that Iceberg can't widen to the wanted one, and that type."""
    has = {field.name: field.field_type for field in table.schema().fields}
    for column in shape.columns:
        found = has.get(column.name)
        if found is not None and not becomes(found, iceberg_type(column.type)):
            yield column, _SCHEMA_WORDS.get(str(found), str(found).upper().replace(" ", ""))


def _evolve_columns(table: Table, shape: TableShape) -> None:
    """Add what is missing and widen what became wider, in one commit; none if nothing changed."""
    for column, found in _in_the_way(table, shape):
        raise TerminalError(
            "the table's column has another type than the schema says",
            where=f"{'.'.join(table.name())}, column {column.name!r}",
            found=found,
            expected=str(column.type),
            remedy="The table was altered by hand: give the column its type back.",
        )
    has = {field.name: (field.field_type, field.doc or None) for field in table.schema().fields}
    changed = [column for column in shape.columns if has.get(column.name) != (iceberg_type(column.type), column.doc)]
    if not changed:
        return
    with table.update_schema() as update:
        for column in changed:
            _, doc = has.get(column.name, (None, None))
            change = update.update_column if column.name in has else update.add_column
            # To an update None means "as it is", so a description that is taken back becomes an empty one.
            change(column.name, iceberg_type(column.type), doc=column.doc or ("" if doc else None))


def _set_properties(table: Table, wanted: dict[str, str]) -> None:
    if not wanted.items() <= table.properties.items():
        with table.transaction() as transaction:
            transaction.set_properties(dict(wanted))


def _evolve_partitions(table: Table, shape: TableShape) -> None:
    """New data is laid out anew; what is written stays as it is, which Iceberg reads as well."""
    wanted = {(partition.column, str(transform_of(partition))): partition for partition in shape.partitions}
    present = dict(_partition_fields(table))
    if wanted.keys() == present.keys():
        return
    with table.update_spec() as update:
        for key, name in present.items():
            if key not in wanted:
                update.remove_field(name)
        for key, partition in wanted.items():
            if key not in present:
                update.add_field(partition.column, transform_of(partition), partition.name)


def _partition_fields(table: Table) -> Iterator[tuple[tuple[str, str], str]]:
    for field in table.spec().fields:
        yield (table.schema().find_field(field.source_id).name, str(field.transform)), field.name
