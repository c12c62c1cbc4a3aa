"""Where a catalog is kept: the port for all that differs between a home's catalog and one in the cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.catalog import Catalog

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.model.tables import TableName


# A creation that was interrupted leaves the first metadata file alone, and is done again.
_FIRST: Final = "00000-"


def newest_commit(metadata_files: Iterable[str]) -> str | None:
    """The newest of a table's metadata file names; None if there is none after the table's creation."""
    newest = max(metadata_files, default=_FIRST)
    return None if newest.startswith(_FIRST) else newest


class CatalogPlace(Protocol):
    """A place that a lake's catalog is opened at; nothing is connected before `open`."""

    @property
    def reader(self) -> CatalogReader:
        """The catalog for those who only read."""

    def open(self) -> Catalog:
        """The catalog for those who write, too."""

    def ensure_database(self, catalog: Catalog, database: str) -> None:
        """See to it that a database is there."""

    def location_of(self, name: TableName) -> str | None:
        """Where a new table's files are to lie; None leaves that to the catalog."""

    def leftover(self, name: TableName) -> str | None:
        """The newest metadata file that lies where the table's would; None if no commit was ever made there."""
