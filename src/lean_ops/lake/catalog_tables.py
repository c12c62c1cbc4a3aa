"""Any pyiceberg catalog as its readers see it: tables are listed and loaded through the catalog itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from lean_ops.lake.cloud_place import no_database
from lean_ops.lake.metadata_reader import MetadataReader
from lean_ops.lake.reader import by_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.catalog import Catalog

    from lean_ops.lake.snapshots import History
    from lean_ops.model.tables import Names, TableName

_AT_A_TIME: Final = 8


class CatalogTables:
    """Reads through a catalog that is opened when first asked; `read` fetches a metadata file."""

    def __init__(self, catalog: Callable[[], Catalog], read: Callable[[str], bytes]) -> None:
        self._catalog = catalog
        self.outlines = MetadataReader(read)

    def locations(self, database: str) -> dict[str, str]:
        """Metadata locations of a database's tables, by table name."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        try:
            names = sorted(identifier[-1] for identifier in self._catalog().list_tables(database))
        except NoSuchNamespaceError as error:
            raise no_database(database) from error
        if not names and not self._catalog().namespace_exists(database):  # not every catalog says so by itself
            raise no_database(database)
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            found = pool.map(lambda table: self._location(database, table), names)
            return {table: location for table, location in zip(names, found, strict=True) if location}

    def location(self, name: TableName) -> str | None:
        """A table's metadata location; None if there is no such table."""
        return self._location(name.database, name.table)

    def _location(self, database: str, table: str) -> str | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self._catalog().load_table((database, table)).metadata_location
        except NoSuchTableError:  # also one that went between the list and this look
            return None

    def raw_locations(self, names: Names) -> dict[str, str]:
        """Metadata locations of the RAW tables, by topic."""
        return by_topic(self.locations(names.raw_database))

    def has_view(self, name: TableName) -> bool:
        """Whether there is a view of that name."""
        return self._catalog().view_exists((name.database, name.table))

    def history(self, name: TableName) -> History | None:
        """A table's history; None if there is no such table."""
        location = self.location(name)
        return self.read_history(str(name), location) if location else None

    def read_history(self, table: str, location: str) -> History:
        """The history in a metadata file."""
        return self.outlines.history(table, location)
