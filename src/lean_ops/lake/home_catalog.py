"""The SQLite catalog through pyiceberg, with errors that say which file is at fault and what to do."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationError
from pyiceberg.serializers import Compressor
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.typedef import EMPTY_DICT
from sqlalchemy.exc import DBAPIError

from lean_ops.lake.commit_times import in_order
from lean_ops.lake.metadata_cache import MetadataCache
from lean_ops.lake.metadata_file import damaged_metadata
from lean_ops.lake.metadata_version import read_metadata
from lean_ops.lake.pyiceberg_savings import save_work
from lean_ops.sqlite_file import BUSY_SECONDS, database_error, open_to_read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.io import FileIO
    from pyiceberg.table import StagedTable
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier, Properties

_LOCATION: Final = (
    "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
    " AND coalesce(iceberg_type, 'TABLE') = 'TABLE'"
)

_MOVE: Final = (
    "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?"
    " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ? AND metadata_location = ?"
)


class HomeCatalog(SqlCatalog):
    """Every way to the tables leads through these few calls, so their errors are translated here and nowhere else."""

    def __init__(self, name: str, file: Path, warehouse: Path) -> None:
        save_work()
        self._file = file
        self._known = MetadataCache()
        self._local = threading.local()
        self._io: FileIO | None = None
        with self._told():
            super().__init__(name, uri=f"sqlite:///{file}?timeout={BUSY_SECONDS}", warehouse=f"file://{warehouse}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the database's own errors mean."""
        try:
            yield
        except DBAPIError as error:
            if not isinstance(error.orig, sqlite3.Error):
                raise
            raise database_error(self._file, error.orig) from error

    def load_table(self, identifier: str | Identifier) -> Table:
        """The table; nothing but its place is asked for if it has not moved since it was read."""
        namespace, name = self.namespace_from(identifier), self.table_name_from(identifier)
        location = self._location(self.namespace_to_string(namespace), name)
        if location is None:
            with self._told():
                return super().load_table(identifier)
        known = self._known.get((*namespace, name), location) or self._read((*namespace, name), location)
        return Table((*namespace, name), known, location, self._load_file_io(known.properties, location), self)

    def _read(self, table: Identifier, location: str) -> TableMetadata:
        """What the metadata file says; TerminalError if it can't be read."""
        try:
            with self._load_file_io(location=location).new_input(location).open() as file:
                text = Compressor.get_compressor(location).stream_decompressor(file).read()
            metadata = read_metadata(text, self._known.newest(table))
        except (OSError, ValidationError, ValueError) as error:
            raise damaged_metadata(".".join(table), location, error) from error
        self._known.put(table, location, metadata)
        return metadata

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        """What opens files, one for all tables: they are in the same folder, and a batch asks dozens of times."""
        if self._io is None:
            self._io = super()._load_file_io(properties, location)
        return self._io

    def _location(self, namespace: str, name: str) -> str | None:
        """Where the table's metadata is now, asked without the ORM: a batch asks dozens of times."""
        try:
            db: sqlite3.Connection | None = getattr(self._local, "db", None)
            if db is None:
                db = self._local.db = open_to_read(self._file)
            row = db.execute(_LOCATION, (self.name, namespace, name)).fetchone()
        except sqlite3.Error as error:
            raise database_error(self._file, error) from error
        return str(row[0]) if row else None

    def create_table(self, identifier: str | Identifier, *shape: Any, **more: Any) -> Table:
        """A new table."""
        with self._told():
            return super().create_table(identifier, *shape, **more)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """A change of a table: all of it, or none."""
        try:
            current = self.load_table(table.name())
        except NoSuchTableError:
            with self._told():
                done = super().commit_table(table, requirements, updates)
        else:
            done = self._changed(current, requirements, updates)
        self._known.put(table.name(), done.metadata_location, done.metadata)
        return done

    def _changed(
        self, current: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """What pyiceberg does, without the ORM, which took as long for the one row as the file does."""
        staged = self._update_and_stage_table(current, current.name(), requirements, updates)
        if staged.metadata == current.metadata:
            return _response(current.metadata, current.metadata_location)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        self._move(current, staged.metadata_location)
        return _response(staged.metadata, staged.metadata_location)

    def _move(self, table: Table, location: str) -> None:
        """Let the table be what the file there says; CommitFailedException if it is elsewhere by now."""
        *namespace, name = table.name()
        here = table.metadata_location
        try:
            db: sqlite3.Connection | None = getattr(self._local, "writing", None)
            if db is None:
                db = self._local.writing = sqlite3.connect(self._file, timeout=BUSY_SECONDS, isolation_level=None)
            key = (self.name, self.namespace_to_string(tuple(namespace)), name)
            moved = db.execute(_MOVE, (location, here, *key, here)).rowcount
        except sqlite3.Error as error:
            raise database_error(self._file, error) from error
        if not moved:
            raise CommitFailedException(f"{'.'.join(table.name())} was changed by another process")

    def _update_and_stage_table(self, *change: Any) -> StagedTable:
        """The table after a change, its times in order whatever the clock did."""
        staged = super()._update_and_stage_table(*change)
        staged.metadata = in_order(staged.metadata)
        return staged

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """What is known of a database."""
        with self._told():
            return super().load_namespace_properties(namespace)

    def create_namespace(self, namespace: str | Identifier, properties: Properties | None = None) -> None:
        """A new database."""
        with self._told():
            super().create_namespace(namespace, properties or {})


def _response(metadata: TableMetadata, location: str) -> CommitTableResponse:
    return CommitTableResponse.model_construct(metadata=metadata, metadata_location=location)
