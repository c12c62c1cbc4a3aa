"""The embedded catalog's place: a folder with a SQLite file, made on first use and locked while something is made."""

from __future__ import annotations

import fcntl
import sqlite3
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from lean_ops.lake.catalog_file import CatalogFile
from lean_ops.lake.place import newest_commit
from lean_ops.sqlite_file import BUSY_SECONDS, database_error, use_wal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog import Catalog

    from lean_ops.model.tables import TableName


class HomePlace:
    """A home's catalog file and warehouse."""

    def __init__(self, name: str, file: Path, warehouse: Path) -> None:
        self._name = name
        self._file = file
        self._warehouse = warehouse

    @cached_property
    def reader(self) -> CatalogFile:
        """The catalog read with the standard library alone."""
        return CatalogFile(self._file, self._name)

    def open(self) -> Catalog:
        """The catalog, made if it is not there yet."""
        from lean_ops.lake.home_catalog import HomeCatalog

        self._warehouse.mkdir(parents=True, exist_ok=True)
        with self._making():
            self._use_wal()
            return HomeCatalog(self._name, self._file, self._warehouse)

    def ensure_database(self, catalog: Catalog, database: str) -> None:
        """Make a database if it is not there."""
        if not catalog.namespace_exists(database):
            with self._making():
                catalog.create_namespace_if_not_exists(database)

    def location_of(self, _: TableName) -> str | None:
        """Where the catalog puts it."""
        return None

    def leftover(self, name: TableName) -> str | None:
        """The newest metadata file in the table's folder."""
        metadata = self._warehouse / name.database / name.table / "metadata"
        newest = newest_commit(file.name for file in metadata.glob("*.metadata.json"))
        return None if newest is None else str(metadata / newest)

    @contextmanager
    def _making(self) -> Iterator[None]:
        """One process at a time: pyiceberg looks whether something is there and then makes it, in two steps."""
        with self._file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _use_wal(self) -> None:
        try:
            with closing(sqlite3.connect(self._file, timeout=BUSY_SECONDS)) as db:
                use_wal(db)
        except sqlite3.Error as error:
            raise database_error(self._file, error) from error
