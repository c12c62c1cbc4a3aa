"""The embedded catalog read with the standard library alone: for answers that must not wait for imports."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.metadata_file import damaged_metadata, is_object, metadata_path
from lean_ops.lake.outlines import Outlines
from lean_ops.lake.reader import by_topic
from lean_ops.lake.snapshots import History, history_from_json
from lean_ops.sqlite_file import database_error, open_to_read

if TYPE_CHECKING:
    from pathlib import Path

    from lean_ops.model.tables import Names, TableName

_IS_TABLE: Final = "coalesce(iceberg_type, 'TABLE') = 'TABLE'"


class CatalogFile:
    """Which tables there are and what their metadata says."""

    def __init__(self, file: Path, catalog_name: str) -> None:
        self._file = file
        self._catalog_name = catalog_name
        self.outlines = Outlines(file.with_name("outlines.db"))

    def locations(self, database: str) -> dict[str, str]:
        """Metadata locations of a database's tables, by table name."""
        return self._locations(database, _IS_TABLE)

    def location(self, name: TableName) -> str | None:
        """A table's metadata location; None if there is no such table."""
        return self._locations(name.database, _IS_TABLE, name.table).get(name.table)

    def has_view(self, name: TableName) -> bool:
        """Whether there is a view of that name."""
        return bool(self._locations(name.database, "iceberg_type = 'VIEW'", name.table))

    def _locations(self, database: str, condition: str, table: str | None = None) -> dict[str, str]:
        if not self._file.is_file():
            return {}
        try:
            with closing(open_to_read(self._file)) as db:
                return self._read_locations(db, database, condition, table)
        except sqlite3.Error as error:
            raise database_error(self._file, error) from error

    def _read_locations(
        self, db: sqlite3.Connection, database: str, condition: str, table: str | None
    ) -> dict[str, str]:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone():
            return {}
        rows = db.execute(
            f"SELECT table_name, metadata_location FROM iceberg_tables WHERE {condition}"  # noqa: S608  our own words
            " AND catalog_name = ? AND table_namespace = ? AND table_name = coalesce(?, table_name)"
            " AND metadata_location IS NOT NULL ORDER BY table_name",
            (self._catalog_name, database, table),
        )
        return dict(rows.fetchall())

    def raw_locations(self, names: Names) -> dict[str, str]:
        """Metadata locations of the RAW tables, by topic."""
        return by_topic(self.locations(names.raw_database))

    def history(self, name: TableName) -> History | None:
        """A table's history; None if there is no such table."""
        location = self.location(name)
        return read_history(str(name), location) if location else None

    def read_history(self, table: str, location: str) -> History:
        """The history in a metadata file."""
        return read_history(table, location)


def read_history(table: str, location: str) -> History:
    """The history in a metadata file, wherever it lies."""
    return history_of_content(table, location, _read_metadata(table, location))


def _read_metadata(table: str, location: str) -> bytes:
    try:
        return _read_object(location) if is_object(location) else metadata_path(table, location).read_bytes()
    except OSError as error:
        raise damaged_metadata(table, location, error) from error


def _read_object(location: str) -> bytes:
    from lean_ops.lake.object_store import read_object

    return read_object(location)


def history_of_content(table: str, location: str, content: bytes) -> History:
    """The history in a metadata file's content; TerminalError if it can't be understood."""
    try:
        metadata: dict[str, Any] = json.loads(content)
        history = history_from_json(table, metadata)
        history.check()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged_metadata(table, location, error) from error
    return history
