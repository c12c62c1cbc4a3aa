"""A topic's table in a zone as the readers of metadata see it: there, not there, or damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.lake.catalog_file import read_history
from lean_ops.model.errors import LeanOpsError

if TYPE_CHECKING:
    from lean_ops.lake.snapshots import History, Outline, TableCheckpoint
    from lean_ops.model.tables import TableName


@dataclass(frozen=True, slots=True)
class ZoneTable:
    """A topic's table of a zone; `problem` says why its history can't be read, and without both there is no table."""

    name: str
    location: str | None = None
    history: History | None = None
    problem: str | None = None

    @property
    def checkpoint(self) -> TableCheckpoint | None:
        """The newest batch that it shows."""
        return self.history.checkpoint() if self.history else None

    @property
    def outline(self) -> Outline | None:
        """It in short."""
        return self.history.outline() if self.history else None

    @property
    def rows(self) -> int | None:
        """Its live rows, by its own metadata; None if nobody can say."""
        if self.problem is not None:
            return None
        return self.history.live_rows if self.history else 0


def read_zone_table(name: TableName, location: str | None) -> ZoneTable:
    """The table at a metadata file; one that is damaged must not hide the others."""
    try:
        return ZoneTable(str(name), location, read_history(str(name), location) if location else None)
    except LeanOpsError as error:
        return ZoneTable(str(name), location, problem=str(error))
