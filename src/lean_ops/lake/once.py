"""Rows that may be brought more than once, by several at a time, and are in a shared table exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.append import write_files
from lean_ops.lake.damage import naming_damage
from lean_ops.lake.file_plan import manifests_with_files
from lean_ops.lake.file_rows import read_columns
from lean_ops.lake.guarded import commit_if_unmoved, until_unmoved
from lean_ops.lake.retention import forget_old_snapshots

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.tables import TableName

    Row = Mapping[str, Any]

_TOPIC: Final = "topic_name"


@dataclass(frozen=True, slots=True)
class OnceTable:
    """A shared table in which the value of `key` stands for a row."""

    lake: Lake
    name: TableName
    key: str

    def head(self) -> int | None:
        """The table's newest snapshot; None if it has none."""
        snapshot = self.lake.load(self.name).current_snapshot()
        return snapshot.snapshot_id if snapshot else None

    def append_missing(self, rows: Sequence[Row], new: Collection[str] = (), since: int | None = None) -> int:
        """Append the rows whose key is not in the table, in one snapshot; how many there were.

        Of keys in `new` it is known that they were not there at the snapshot `since`, so that only what came after it
        is looked at. Nobody can slip in between the look and the commit.
        """
        if not rows:
            return 0
        forget_old_snapshots(self.lake.load(self.name))
        return until_unmoved(self.lake, self.name, lambda table: self._try(table, rows, new, since))

    def _try(self, table: Table, rows: Sequence[Row], new: Collection[str], since: int | None) -> int | None:
        import pyarrow as pa

        present = self._present(table, rows, new, since)
        missing = {row[self.key]: dict(row) for row in rows if row[self.key] not in present}
        if not missing:
            return 0
        added = write_files(table, pa.Table.from_pylist(list(missing.values()), schema=table.schema().as_arrow()))
        return len(missing) if commit_if_unmoved(table, added) else None

    def _present(self, table: Table, rows: Sequence[Row], new: Collection[str], since: int | None) -> set[str]:
        """The keys of these rows that are in the table."""
        old = [row for row in rows if row[self.key] not in new]
        fresh = [row for row in rows if row[self.key] in new]
        return self._found(table, old, None) | self._found(table, fresh, since)

    def _found(self, table: Table, rows: Sequence[Row], since: int | None) -> set[str]:
        keys, topics = {row[self.key] for row in rows}, {str(row[_TOPIC]) for row in rows}
        found: set[str] = set()
        with naming_damage(lambda: [table]):
            for path in files_since(table, since, topics) if rows else ():
                found.update(keys.intersection(read_columns(table.io, path, (self.key,)).column(self.key).to_pylist()))
        return found


def files_since(table: Table, since: int | None, topics: Collection[str]) -> Iterator[str]:
    """The files of these topics that came to the table after a snapshot; all of them if that is not known any more."""
    snapshot = table.current_snapshot()
    later = _later_than(table, since)
    for manifest in manifests_with_files(snapshot, table.io):
        if later is None or manifest.added_snapshot_id in later:
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                if str(entry.data_file.partition[0]) in topics and (later is None or entry.snapshot_id in later):
                    yield entry.data_file.file_path


def manifest_files(table: Table, branch: str = "main") -> Iterator[tuple[int | None, DataFile]]:
    """The files of a branch, those of deletes included, each with the snapshot that added it."""
    snapshot = table.snapshot_by_name(branch)
    for manifest in manifests_with_files(snapshot, table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.snapshot_id, entry.data_file


def _later_than(table: Table, since: int | None) -> set[int] | None:
    """Main's snapshots after one of them; None if it is not among them."""
    later: set[int] = set()
    snapshot = table.current_snapshot()
    while snapshot is not None and snapshot.snapshot_id != since:
        later.add(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = table.snapshot_by_id(parent) if parent is not None else None
    return later if snapshot is not None else None
