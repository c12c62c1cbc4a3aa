"""The SQLite catalog through pyiceberg, with errors that say which file is at fault and what to do."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ValidationError
from sqlalchemy.exc import DBAPIError

from lean_ops.lake.catalog_file import damaged_metadata
from lean_ops.lake.commit_times import in_order
from lean_ops.sqlite_file import BUSY_SECONDS, database_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog.sql import IcebergTables
    from pyiceberg.table import CommitTableResponse, StagedTable, Table
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier, Properties


class HomeCatalog(SqlCatalog):
    """Every way to the tables leads through these few calls, so their errors are translated here and nowhere else."""

    def __init__(self, name: str, file: Path, warehouse: Path) -> None:
        self._file = file
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

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        """The table of a row; TerminalError if its metadata file can't be read."""
        try:
            return super()._convert_orm_to_iceberg(orm_table)
        except (OSError, ValidationError, ValueError) as error:
            name = f"{orm_table.table_namespace}.{orm_table.table_name}"
            raise damaged_metadata(name, str(orm_table.metadata_location), error) from error

    def load_table(self, identifier: str | Identifier) -> Table:
        """The table."""
        with self._told():
            return super().load_table(identifier)

    def create_table(self, identifier: str | Identifier, *shape: Any, **more: Any) -> Table:
        """A new table."""
        with self._told():
            return super().create_table(identifier, *shape, **more)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """A change of a table: all of it, or none."""
        with self._told():
            return super().commit_table(table, requirements, updates)

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
