"""The times in a table's logs, kept in order when the machine's clock was not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import MetadataLogEntry, SnapshotLogEntry

    Entry = TypeVar("Entry", SnapshotLogEntry, MetadataLogEntry)


def in_order(metadata: TableMetadata) -> TableMetadata:
    """The metadata of a new commit, no time in its logs later than the commit's own.

    After a clock that ran ahead was set back, the logs hold times that are yet to come. Spark's Iceberg does not read
    a table whose logs go backwards, and commits nothing to one that is ahead of its clock: a topic would stand still
    until that time has come. So such times are lowered to now. The snapshots keep the times they were given.
    """
    now = metadata.last_updated_ms
    logs = {
        "snapshot_log": _none_after(now, metadata.snapshot_log),
        "metadata_log": _none_after(now, metadata.metadata_log),
    }
    changed = {name: log for name, log in logs.items() if log is not getattr(metadata, name)}
    return metadata.model_copy(update=changed) if changed else metadata


def _none_after(now: int, log: list[Entry]) -> list[Entry]:
    """The log itself if there is nothing to lower, as there hardly ever is."""
    if all(entry.timestamp_ms <= now for entry in log):
        return log
    return [entry.model_copy(update={"timestamp_ms": min(entry.timestamp_ms, now)}) for entry in log]
