"""The embedded catalog read with the standard library alone: for answers that must not wait for imports."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.metadata_file import damaged_metadata, metadata_path
from lean_ops.lake.outlines import Outlines
from lean_ops.lake.snapshots import History, history_from_json
from lean_ops.model.tables import RAW_SUFFIX
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
        return {
            table.removesuffix(RAW_SUFFIX): location
            for table, location in self.locations(names.raw_database).items()
            if table.endswith(RAW_SUFFIX)
        }

    def history(self, name: TableName) -> History | None:
        """A table's history; None if there is no such table."""
        location = self.location(name)
        return read_history(str(name), location) if location else None


def read_history(table: str, location: str) -> History:
    """The history in a metadata file of the local warehouse."""
    metadata = _read_metadata(table, location)
    try:
        history = history_from_json(table, metadata)
        history.check()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged_metadata(table, location, error) from error
    return history


def _read_metadata(table: str, location: str) -> dict[str, Any]:
    path = metadata_path(table, location)
    try:
        metadata: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise damaged_metadata(table, str(path), error) from error
    return metadata
