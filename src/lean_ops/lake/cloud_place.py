"""A catalog in the cloud: opened over the network; its databases are made by Terraform, not by us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.lake.place import newest_commit
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyiceberg.catalog import Catalog

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.model.tables import TableName
    from lean_ops.settings import Settings


def no_database(database: str) -> TerminalError:
    """What is told of a database that is not there."""
    return TerminalError(
        "there is no such database",
        where=database,
        remedy="Databases of the cloud are made by Terraform: apply its catalog module, or check `database_prefix`.",
    )


def rest_login(settings: Settings) -> dict[str, str]:
    """How a REST catalog is told who we are, by the way that its specification has for that."""
    secret = settings.catalog_credential
    if secret is None:
        return {}
    tokens = f"{settings.given('catalog_uri').rstrip('/')}/v1/oauth/tokens"
    return {"credential": secret.get_secret_value(), "oauth2-server-uri": tokens}


@dataclass(frozen=True, slots=True)
class CloudPlace:
    """Any pyiceberg catalog.

    With a `warehouse` every table lies at `{warehouse}/{database}/{table}`, as in a home, and `metadata_files` names
    the metadata files in a folder; without one the catalog decides where tables lie, and nobody but it can say what
    it has left there.
    """

    reader: CatalogReader
    open_catalog: Callable[[], Catalog]
    warehouse: str | None
    metadata_files: Callable[[str], Iterable[str]]

    def open(self) -> Catalog:
        """The catalog."""
        return self.open_catalog()

    def ensure_database(self, catalog: Catalog, database: str) -> None:
        """TerminalError if the database is not there."""
        if not catalog.namespace_exists(database):
            raise no_database(database)

    def location_of(self, name: TableName) -> str | None:
        """Its folder in the warehouse."""
        return f"{self.warehouse.rstrip('/')}/{name.database}/{name.table}" if self.warehouse else None

    def leftover(self, name: TableName) -> str | None:
        """The newest metadata file in the table's folder."""
        location = self.location_of(name)
        if location is None:
            return None
        newest = newest_commit(self.metadata_files(f"{location}/metadata/"))
        return None if newest is None else f"{location}/metadata/{newest}"
