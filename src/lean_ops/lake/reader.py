"""Reading a catalog without opening tables: the port that planning, status and the ledger look through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lean_ops.model.tables import RAW_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lean_ops.lake.snapshots import History, Outline
    from lean_ops.model.tables import Names, TableName


class OutlineReader(Protocol):
    """Tables in short."""

    def outline(self, table: str, location: str) -> Outline:
        """A table's outline; TerminalError if its metadata file is missing or can't be understood."""

    def keep(self) -> None:
        """Remember what was read, if that saves time."""


class CatalogReader(Protocol):
    """Which tables there are and what their metadata says; nothing is made or changed."""

    @property
    def outlines(self) -> OutlineReader:
        """The tables in short."""

    def locations(self, database: str) -> dict[str, str]:
        """Metadata locations of a database's tables, by table name."""

    def location(self, name: TableName) -> str | None:
        """A table's metadata location; None if there is no such table."""

    def raw_locations(self, names: Names) -> dict[str, str]:
        """Metadata locations of the RAW tables, by topic."""

    def has_view(self, name: TableName) -> bool:
        """Whether there is a view of that name."""

    def history(self, name: TableName) -> History | None:
        """A table's history; None if there is no such table."""

    def read_history(self, table: str, location: str) -> History:
        """The history in a metadata file; TerminalError if it is missing or can't be understood."""


def by_topic(raw_tables: Mapping[str, str]) -> dict[str, str]:
    """Locations of a RAW database's tables, by topic; tables that are no topic's are left out."""
    return {
        table.removesuffix(RAW_SUFFIX): location for table, location in raw_tables.items() if table.endswith(RAW_SUFFIX)
    }
