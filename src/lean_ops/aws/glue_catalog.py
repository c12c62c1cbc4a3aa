"""The Glue Data Catalog through pyiceberg: a commit whose answer was lost is looked up, never guessed."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog import METADATA_LOCATION
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchIcebergTableError,
    NoSuchPropertyException,
    ValidationError,
)
from pyiceberg.table import CommitTableResponse, Table

from lean_ops.aws.calls import calling
from lean_ops.lake.commit_times import in_order
from lean_ops.lake.landed import has_snapshots
from lean_ops.lake.metadata_file import damaged_metadata
from lean_ops.model.errors import TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import StagedTable
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier, Properties

_KEPT: Final = 500


class LakeGlueCatalog(GlueCatalog):
    """Every way to the tables leads through these few calls, so their errors are translated here and nowhere else.

    Glue refuses an update of another version than the one that was read, which is how commits exclude each other. But
    a client whose answer got lost asks again and is refused then, although its commit is in: taken for a lost race it
    would be written twice, and pyiceberg would delete files that the table needs.
    """

    def __init__(self, name: str, client: Any, warehouse: str, io_properties: Properties) -> None:
        super().__init__(name, client, warehouse=warehouse, **io_properties)
        self._at_work = threading.local()
        self._guard = threading.Lock()
        self._known: dict[Identifier, tuple[str, TableMetadata]] = {}

    def load_table(self, identifier: str | Identifier) -> Table:
        """The table; its metadata is fetched only if it has moved since it was read."""
        with self._told(identifier):
            return super().load_table(identifier)

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Whether there is such a database."""
        with self._told(namespace):
            return super().namespace_exists(namespace)

    def create_table(self, identifier: str | Identifier, *shape: Any, **more: Any) -> Table:
        """A new table."""
        with self._told(identifier):
            return super().create_table(identifier, *shape, **more)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """A change of a table: all of it, or none. After a TransientError nobody knows which."""
        self._at_work.staged = None
        try:
            with self._told(table.name()):
                done = super().commit_table(table, requirements, updates)
        except (CommitFailedException, TransientError):
            staged: StagedTable | None = self._at_work.staged
            if staged is None or not self._has_landed(table.name(), staged.metadata_location, updates):
                raise
            return _answer(staged)
        self._remember(table.name(), done.metadata_location, done.metadata)
        return done

    def _has_landed(self, identifier: Identifier, location: str, updates: tuple[TableUpdate, ...]) -> bool:
        """Whether a metadata file is the table's newest, or was so before others followed.

        The log of metadata files has but the last few, so what is not in it may be known by its snapshot.
        """
        now = self.load_table(identifier)
        earlier = (entry.metadata_file for entry in now.metadata.metadata_log)
        return location in {now.metadata_location, *earlier} or has_snapshots(now.metadata, updates)

    def _update_and_stage_table(self, *change: Any) -> StagedTable:
        """The table after a change, its times in order whatever the clock did."""
        staged = super()._update_and_stage_table(*change)
        staged.metadata = in_order(staged.metadata)
        self._at_work.staged = staged
        return staged

    def _is_s3tables_database(self, _: str) -> bool:
        """Never: our databases are Glue's own, and pyiceberg would ask with every commit."""
        return False

    def _convert_glue_to_iceberg(self, glue_table: Any) -> Table:
        """The table of Glue's record of it; TerminalError if its metadata file can't be understood."""
        identifier = (glue_table.get("DatabaseName", ""), glue_table.get("Name", ""))
        location = glue_table.get("Parameters", {}).get(METADATA_LOCATION)
        with self._guard:
            known = self._known.get(identifier)
        if known is not None and known[0] == location:
            io = self._load_file_io(known[1].properties, location)
            return Table(identifier, known[1], location, io, self)
        table = self._fetched(glue_table, ".".join(identifier), location)
        self._remember(identifier, table.metadata_location, table.metadata)
        return table

    def _remember(self, identifier: Identifier, location: str, metadata: TableMetadata) -> None:
        """Keep what a table's newest file holds: metadata files never change."""
        with self._guard:
            self._known.pop(identifier, None)
            self._known[identifier] = (location, metadata)
            while len(self._known) > _KEPT:
                del self._known[next(iter(self._known))]

    def _fetched(self, glue_table: Any, name: str, location: str | None) -> Table:
        try:
            return super()._convert_glue_to_iceberg(glue_table)
        except (NoSuchIcebergTableError, NoSuchPropertyException) as error:
            remedy = "Somebody made it by other means: drop it there, or give it another name."
            raise TerminalError("it is not an Iceberg table", where=name, found=str(error), remedy=remedy) from error
        except (FileNotFoundError, ValidationError, ValueError) as error:
            raise damaged_metadata(name, str(location), error) from error

    @contextmanager
    def _told(self, what: str | Identifier) -> Iterator[None]:
        """What errors of Glue and S3 mean; that there is no such table, or somebody was faster, is none of them."""
        where = what if isinstance(what, str) else ".".join(what)
        try:
            with calling(where):
                yield
        except OSError as error:
            raise _unusable(where, error) from error


def _answer(staged: StagedTable) -> CommitTableResponse:
    values = {"metadata": staged.metadata, "metadata-location": staged.metadata_location}
    return CommitTableResponse.model_validate(values)


def _unusable(where: str, error: OSError) -> TransientError:
    found = " ".join(str(error).split())[:300]
    remedy = "Do the same again; if it stays, check what the role is allowed to do in the warehouse."
    return TransientError("a file of the table can't be used", where=where, found=found, remedy=remedy)
