"""An Iceberg table as files that DuckDB can read: planned by pyiceberg, put as a SELECT over the Parquet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.damage import naming_damage
from lean_ops.lake.local_path import local_name
from lean_ops.lake.metadata_file import damaged_metadata, is_object, table_of
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.table import FileScanTask, Table

FILE_COLUMN: Final = "_file"  # an Iceberg metadata name, so no table of ours has a column of that name
_FILE: Final = "__file"  # columns are read under names made of their field ids, which can't clash with this one
_POSITIONS: Final = 1  # what Iceberg calls the content of a file of deleted positions
_PRIMITIVE_TYPES: Final = {
    "string": "VARCHAR",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "uuid": "UUID",
    "binary": "BLOB",
}


@dataclass(frozen=True, slots=True)
class DuckColumn:
    """A column as DuckDB reads it: found by its Iceberg field id, whatever it was called when it was written."""

    field_id: int
    name: str
    type: str

    @property
    def alias(self) -> str:
        """Its name inside the file read; can't clash and needs no quoting."""
        return f"f{self.field_id}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file: where it is, what the table calls it, the snapshot that wrote it, whether rows were deleted."""

    path: str
    location: str
    snapshot_id: int | None = None
    has_deletes: bool = False


@dataclass(frozen=True, slots=True)
class TableFiles:
    """A table at one snapshot: its columns, data files and position-delete files."""

    columns: tuple[DuckColumn, ...]
    data: tuple[DataFile, ...]
    deletes: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that a read of this table opens."""
        return (*(file.path for file in self.data), *self.deletes)

    def select(self, *, with_file: bool = False) -> str:
        """The table as a SELECT; `with_file` adds the path of each row's data file as `_file`."""
        names = [f"r.{column.alias} AS {quoted(column.name)}" for column in self.columns]
        if with_file:
            names.append(f"r.{_FILE} AS {FILE_COLUMN}")
        source = self._read() if self.data else self._nothing()
        return f"SELECT {', '.join(names)} FROM {source} r{self._without_deleted()}"  # noqa: S608  names are quoted

    def _read(self) -> str:
        fields = ", ".join(
            f"{column.field_id}: {{name: {literal(column.alias)}, type: {literal(column.type)}, default_value: NULL}}"
            for column in self.columns
        )
        # With hive_partitioning a folder "topic_name=x" would stand in for the column.
        return (
            f"read_parquet({text_list(file.path for file in self.data)}, schema=MAP {{{fields}}},"
            f" filename={literal(_FILE)}, file_row_number=true, hive_partitioning=false)"
        )

    def _nothing(self) -> str:
        columns = ", ".join(f"NULL::{column.type} AS {column.alias}" for column in self.columns)
        return f"(SELECT {columns}, NULL::VARCHAR AS {_FILE} WHERE false)"

    def _without_deleted(self) -> str:
        """An anti-join with the deleted positions; a delete file names data files as the table does."""
        if not self.deletes:
            return ""
        renamed = ", ".join(
            f"({literal(file.location)}, {literal(file.path)})" for file in self.data if file.has_deletes
        )
        return (
            " ANTI JOIN (SELECT m.path, p.pos"  # noqa: S608  every value is quoted
            f" FROM read_parquet({text_list(self.deletes)}, hive_partitioning=false) p"
            f" JOIN (VALUES {renamed}) m(location, path) ON p.file_path = m.location) d"
            f" ON r.{_FILE} = d.path AND r.file_row_number = d.pos"
        )


def open_table(location: str) -> Table:
    """The table of a metadata file, without a catalog connection."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table import StaticTable

    try:
        return StaticTable.from_metadata(location, _io_properties(location))
    except (OSError, ValidationError, ValueError) as error:
        raise damaged_metadata(table_of(location), location, error) from error


def _io_properties(location: str) -> dict[str, str]:
    if is_object(location):
        from lean_ops.lake.object_store import io_properties

        return io_properties()
    from lean_ops.lake.local_files import IMPLEMENTATION

    return {"py-io-impl": IMPLEMENTATION}


def plan(table: Table, row_filter: BooleanExpression | None = None, snapshot_id: int | None = None) -> TableFiles:
    """The files that may hold matching rows. The filter only spares files: the SQL has to say it again."""
    from pyiceberg.expressions import AlwaysTrue

    from lean_ops.lake.file_plan import FilePlanner, manifests_with_files

    snapshot = table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    columns = duck_columns(table)
    if snapshot is None:
        return TableFiles(columns, ())
    writers: dict[str, int | None] = {}
    planner = FilePlanner(table.metadata, table.io, row_filter or AlwaysTrue())
    with naming_damage(lambda: [table]):
        manifests = manifests_with_files(snapshot, table.io)
        tasks = planner.plan_files(manifests, manifest_entry_filter=_noting_writers(writers))
        return _table_files(columns, list(tasks), writers)


def duck_columns(table: Table) -> tuple[DuckColumn, ...]:
    """The table's columns, as its current schema has them."""
    fields = table.schema().fields
    return tuple(
        DuckColumn(field.field_id, field.name, duck_type(field.field_type.model_dump(by_alias=True)))
        for field in fields
    )


def _noting_writers(writers: dict[str, int | None]) -> Callable[[ManifestEntry], bool]:
    """A filter that lets every entry pass and notes the snapshot that added it, which a scan task does not keep."""

    def note(entry: ManifestEntry) -> bool:
        writers[entry.data_file.file_path] = entry.snapshot_id
        return True

    return note


def _table_files(
    columns: tuple[DuckColumn, ...], tasks: Sequence[FileScanTask], writers: Mapping[str, int | None]
) -> TableFiles:
    data = (
        DataFile(path_of(location), location, writers.get(location), bool(task.delete_files))
        for task in tasks
        for location in (task.file.file_path,)
    )
    deletes = {path_of(location) for location in _delete_locations(tasks)}
    return TableFiles(columns, tuple(sorted(data, key=lambda file: file.path)), tuple(sorted(deletes)))


def path_of(location: str) -> str:
    """The file that a reader opens: the table's own, or the copy of an object, which is fetched before a query."""
    if is_object(location):
        from lean_ops.lake.object_store import COPIES

        return str(COPIES.path_of(location))
    return local_name(location)


def _delete_locations(tasks: Iterable[FileScanTask]) -> set[str]:
    deletes = {delete.file_path: delete for task in tasks for delete in task.delete_files}
    for location, delete in deletes.items():
        refuse_unreadable_deletes(location, delete.file_format, delete.content)
    return set(deletes)


def refuse_unreadable_deletes(location: str, file_format: str, content: int) -> None:
    """TerminalError unless a delete file is one of positions that DuckDB can read."""
    if file_format.upper() == "PARQUET" and content == _POSITIONS:
        return
    form = "deletion vectors of format 3" if content == _POSITIONS else "rows by their values"
    raise TerminalError(
        "its deleted rows are kept in a form that only Spark reads here",
        where=location,
        found=f"{file_format} ({form})",
        expected="Parquet position deletes (format 2)",
    )


def duck_type(kind: Any) -> str:
    """The DuckDB type of an Iceberg type, as a metadata file spells it: a word, or an object of one with parts."""
    if isinstance(kind, str):
        return _primitive(kind)
    if kind["type"] == "list":
        return f"{duck_type(kind['element'])}[]"
    if kind["type"] == "map":
        return f"MAP({duck_type(kind['key'])}, {duck_type(kind['value'])})"
    parts = (f"{quoted(part['name'])} {duck_type(part['type'])}" for part in kind["fields"])
    return f"STRUCT({', '.join(parts)})"


def _primitive(kind: str) -> str:
    if kind in _PRIMITIVE_TYPES:
        return _PRIMITIVE_TYPES[kind]
    if kind.startswith("decimal("):
        return kind.upper()
    if kind.startswith("fixed["):
        return "BLOB"
    raise TerminalError("a column type that can't be read without Spark", found=kind)


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def text_list(texts: Iterable[str]) -> str:
    """An SQL list of strings."""
    return f"[{', '.join(literal(text) for text in texts)}]"
