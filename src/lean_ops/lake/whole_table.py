"""A whole table as files for DuckDB, by its metadata alone.

pyiceberg plans with filters, for those who ask for a few rows. A query names whole tables, and pyiceberg takes longer
to load than most queries to answer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lean_ops.lake.damage import naming_damage
from lean_ops.lake.local_path import local_path
from lean_ops.lake.metadata_file import damaged_metadata, is_object, table_of
from lean_ops.lake.outline_reader import MainBranch
from lean_ops.lake.table_files import (
    DataFile,
    DuckColumn,
    TableFiles,
    duck_type,
    open_table,
    path_of,
    refuse_unreadable_deletes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Iceberg's ids of the fields that are read; what a writer calls them is its own affair.
_MANIFEST_PATH, _MANIFEST_SNAPSHOT, _ADDED, _EXISTING = 500, 503, 504, 505
_STATUS, _SNAPSHOT, _FILE = 0, 1, 2
_PATH, _FORMAT, _CONTENT = 100, 101, 134
_DELETED: Final = 2
_DATA: Final = 0
_AT_A_TIME: Final = 16


class _Field(msgspec.Struct):
    id: int
    name: str
    type: Any


class _Schema(msgspec.Struct, rename="kebab"):
    schema_id: int
    fields: list[_Field]


class _Snapshot(msgspec.Struct, rename="kebab", gc=False):
    snapshot_id: int
    manifest_list: str


class _Metadata(MainBranch, rename="kebab", kw_only=True):
    schemas: list[_Schema]
    current_schema_id: int
    snapshots: list[_Snapshot] = msgspec.field(default_factory=list)

    def columns(self) -> tuple[DuckColumn, ...]:
        """The columns of the schema in force."""
        fields = next(schema.fields for schema in self.schemas if schema.schema_id == self.current_schema_id)
        return tuple(DuckColumn(field.id, field.name, duck_type(field.type)) for field in fields)

    def manifest_list(self) -> str | None:
        """Where main's list of manifests is; None of a table without a snapshot."""
        if self.head is None:
            return None
        return next(one.manifest_list for one in self.snapshots if one.snapshot_id == self.head)


_read: Final = msgspec.json.Decoder(_Metadata).decode


def whole_table(location: str) -> TableFiles:
    """All files of the table of a metadata file at main's newest snapshot; TerminalError if it is damaged."""
    try:
        metadata = _read(_content(location))
        columns, manifests = metadata.columns(), metadata.manifest_list()
    except (OSError, KeyError, TypeError, RecursionError, StopIteration, msgspec.MsgspecError) as error:
        raise damaged_metadata(table_of(location), location, error) from error
    if manifests is None:
        return TableFiles(columns, ())
    with naming_damage(lambda: [open_table(location)]):
        return _table_files(columns, list(_live_files(manifests)))


class _LiveFile(msgspec.Struct, gc=False):
    location: str
    format: str
    content: int
    snapshot_id: int | None


def _live_files(manifest_list: str) -> Iterator[_LiveFile]:
    manifests = [each for each in _records(_content(manifest_list)) if _has_files(each)]
    contents = _contents([manifest[_MANIFEST_PATH] for manifest in manifests])
    for manifest, content in zip(manifests, contents, strict=True):
        for entry in _records(content):
            if entry[_STATUS] != _DELETED:
                file, added_by = entry[_FILE], entry.get(_SNAPSHOT)
                writer = manifest.get(_MANIFEST_SNAPSHOT) if added_by is None else added_by
                yield _LiveFile(file[_PATH], file[_FORMAT], file.get(_CONTENT) or _DATA, writer)


def _has_files(manifest: dict[int, Any]) -> bool:
    """Whether it lists a file that is there; one that does not count them may."""
    return any(manifest.get(count) != 0 for count in (_ADDED, _EXISTING))


def _table_files(columns: tuple[DuckColumn, ...], files: Sequence[_LiveFile]) -> TableFiles:
    """Deleted positions name their data files, so it need not be known here which of them has any."""
    deletes = [file for file in files if file.content != _DATA]
    for file in deletes:
        refuse_unreadable_deletes(file.location, file.format, file.content)
    data = (
        DataFile(path_of(file.location), file.location, file.snapshot_id, bool(deletes))
        for file in files
        if file.content == _DATA
    )
    paths = {path_of(file.location) for file in deletes}
    return TableFiles(columns, tuple(sorted(data, key=lambda file: file.path)), tuple(sorted(paths)))


# Avro


def _records(content: bytes) -> Iterator[dict[int, Any]]:
    """The records of an Avro file, and the data file in each, by the ids of their fields."""
    import fastavro

    reader: Any = fastavro.reader(BytesIO(content))
    return (_by_id(record, reader.writer_schema) for record in reader)


def _by_id(record: dict[str, Any], schema: dict[str, Any]) -> dict[int, Any]:
    found = {field["field-id"]: record[field["name"]] for field in schema["fields"]}
    if _FILE in found:
        (file,) = (field for field in schema["fields"] if field["field-id"] == _FILE)
        found[_FILE] = _by_id(found[_FILE], file["type"])
    return found


# files


def _contents(locations: Sequence[str]) -> Iterable[bytes]:
    """The files' bytes; objects are asked for side by side, because each answer comes over the network."""
    if not any(map(is_object, locations)):
        return map(_content, locations)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return list(pool.map(_content, locations))


def _content(location: str) -> bytes:
    if is_object(location):
        from lean_ops.lake.object_store import read_object

        return read_object(location)
    return local_path(location).read_bytes()
