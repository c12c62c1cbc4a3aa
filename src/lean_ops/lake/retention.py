"""Old snapshots of the shared tables: nobody reads them, and hundreds of topics make thousands of them a day."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotsUpdate

from lean_ops.lake.direct_commit import commit_directly

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

# Rows are only ever added to a shared table, so its newest snapshot shows all that any older one did. Whoever is just
# planning a read of an older one is given time to finish; data files are never touched.
_MANY: Final = 100
_NEWEST_KEPT: Final = 20
_PATIENCE_MS: Final = 120_000


class _Unmoved(AssertTableUUID):
    """Nothing was committed since the look: a branch made meanwhile would go with the snapshot it refers to."""

    # A catalog behind a server is not sent it: there the server itself keeps what branches refer to.
    seen: Any = Field(exclude=True)

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]  # as in pyiceberg
        """CommitFailedException if the table is not as it was seen."""
        if base_metadata != self.seen:
            raise CommitFailedException("the table has moved")


def forget_old_snapshots(table: Table, now_ms: int | None = None) -> int:
    """Take old snapshots out of a shared table's metadata once there are many; how many were taken out.

    Losing against another writer is no matter: the next commit looks again.
    """
    old = _old(table, int(time.time() * 1000) if now_ms is None else now_ms)
    if not old:
        return 0
    unmoved = _Unmoved(uuid=table.metadata.table_uuid, seen=table.metadata)
    update = RemoveSnapshotsUpdate.model_validate({"snapshot-ids": [snapshot.snapshot_id for snapshot in old]})
    try:
        commit_directly(table, (unmoved,), (update,))
    except CommitFailedException:
        return 0
    _delete_lists(table, old)
    return len(old)


def _old(table: Table, now_ms: int) -> list[Snapshot]:
    """The snapshots to forget; none while there are not many of them: one commit is to take out many."""
    if len(table.metadata.snapshots) <= _MANY:
        return []
    referred = {ref.snapshot_id for ref in table.metadata.refs.values()}
    by_age = sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)
    old = [
        snapshot
        for snapshot in by_age[:-_NEWEST_KEPT]
        if snapshot.timestamp_ms < now_ms - _PATIENCE_MS and snapshot.snapshot_id not in referred
    ]
    return old if len(old) > _MANY // 2 else []


def _delete_lists(table: Table, forgotten: list[Snapshot]) -> None:
    """Delete the manifest lists of forgotten snapshots; manifests that nobody names any more are maintenance's."""
    for snapshot in forgotten:
        with suppress(FileNotFoundError):
            table.io.delete(snapshot.manifest_list)
