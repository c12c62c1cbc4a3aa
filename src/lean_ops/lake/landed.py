"""Whether a commit that got no clear answer is in a table after all: told by what it was to bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableUpdate


def has_snapshots(metadata: TableMetadata, updates: Iterable[TableUpdate]) -> bool:
    """Whether the updates bring snapshots and the table has them all; nobody else gives a snapshot the same id."""
    from pyiceberg.table.update import AddSnapshotUpdate

    brought = {update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)}
    return bool(brought) and brought <= {snapshot.snapshot_id for snapshot in metadata.snapshots}
