"""A table's snapshots as plain data, and what can be read off them: ranges, counts, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot as IcebergSnapshot

BATCH_ID_PROPERTY: Final = "lean-ops.batch-id"
TO_SNAPSHOT_PROPERTY: Final = "lean-ops.to-snapshot"
ROWS_PROPERTY: Final = "lean-ops.rows"
LAYOUT_PROPERTY: Final = "lean-ops.layout"
_READABLE_OPERATIONS: Final = frozenset({"append", "replace"})


class RangeError(TerminalError):
    """A snapshot range that can't be read without losing or repeating records."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot."""

    snapshot_id: int
    parent_id: int | None
    timestamp_ms: int
    operation: str
    summary: Mapping[str, str]

    def count(self, key: str) -> int:
        """A number of the summary; 0 when it is not there."""
        return int(self.summary.get(key, 0))

    @property
    def is_maintenance(self) -> bool:
        """Whether it holds the rows of the one before, in other files."""
        return self.operation == "replace" or LAYOUT_PROPERTY in self.summary

    @property
    def possible_rows(self) -> range:
        """How many rows there can be."""
        return possible_rows(self.count("total-records"), self.count("total-position-deletes"))


@dataclass(frozen=True, slots=True)
class TableCheckpoint:
    """The last batch that a zone table's own history shows."""

    batch_id: str
    to_snapshot: int


@dataclass(frozen=True, slots=True)
class Outline:
    """A table in short: main's snapshot, its live rows, its newest batch and when that got there (in ms)."""

    head: int | None
    rows: int
    checkpoint: TableCheckpoint | None
    checkpoint_ms: int | None


@dataclass(frozen=True, slots=True)
class History:
    """A table's snapshots and where its branches point."""

    table: str
    snapshots: Mapping[int, Snapshot]
    refs: Mapping[str, int]
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def head(self) -> int | None:
        """Main's snapshot; None while nothing was ever committed."""
        return self.refs.get("main")

    @property
    def live_rows(self) -> int:
        """Rows of main that no delete file has taken out: as its last batch has counted them, if that can be."""
        if self.head is None:
            return 0
        return live_rows(self.properties.get(ROWS_PROPERTY), self.snapshots[self.head].possible_rows)

    def ancestors(self, snapshot_id: int | None) -> Iterator[Snapshot]:
        """A snapshot and what came before it, newest first, as far as it is kept."""
        while snapshot_id is not None and snapshot_id in self.snapshots:
            snapshot = self.snapshots[snapshot_id]
            yield snapshot
            snapshot_id = snapshot.parent_id

    def checkpoint(self) -> TableCheckpoint | None:
        """The newest batch on main; None if no batch was ever published."""
        for snapshot in self.ancestors(self.head):
            if BATCH_ID_PROPERTY in snapshot.summary:
                return TableCheckpoint(snapshot.summary[BATCH_ID_PROPERTY], int(snapshot.summary[TO_SNAPSHOT_PROPERTY]))
        return None

    def checkpoint_ms(self) -> int | None:
        """When the checkpoint got where it is; maintenance carries it on, so the oldest snapshot that has it counts."""
        published = self.checkpoint()
        if published is None:
            return None
        words = (published.batch_id, str(published.to_snapshot))
        names = (BATCH_ID_PROPERTY, TO_SNAPSHOT_PROPERTY)
        carriers = [one for one in self.ancestors(self.head) if tuple(map(one.summary.get, names)) == words]
        return carriers[-1].timestamp_ms if carriers else None

    def outline(self) -> Outline:
        """What most readers want to know."""
        return Outline(self.head, self.live_rows, self.checkpoint(), self.checkpoint_ms())

    def check(self) -> None:
        """Read everything once that is read later: KeyError or ValueError if a summary is not what it should be."""
        if self.head is not None and self.head not in self.snapshots:
            raise KeyError(self.head)
        self.checkpoint()
        int(self.properties.get(ROWS_PROPERTY, 0))
        for snapshot in self.snapshots.values():
            for key in ("added-records", "total-records", "total-position-deletes"):
                snapshot.count(key)

    def between(self, after: int | None, up_to: int) -> tuple[Snapshot, ...]:
        """The snapshots after one (exclusive) up to another (inclusive), newest first.

        RangeError unless the chain is whole and holds nothing but append and replace: Iceberg's incremental
        scan would silently skip anything else.
        """
        chain: list[Snapshot] = []
        for snapshot in self.ancestors(up_to):
            if snapshot.snapshot_id == after:
                break
            chain.append(snapshot)
        else:
            self._refuse_broken_chain(after, up_to, chain)
        for snapshot in chain:
            if snapshot.operation not in _READABLE_OPERATIONS:
                raise RangeError(
                    f"snapshot {snapshot.snapshot_id} is a {snapshot.operation!r}",
                    where=self.table,
                    expected="append or replace only: this table is append-only",
                    remedy=f"Move main back to snapshot {snapshot.parent_id}, before it; what came since is then to be"
                    " sent again (docs/runbook-faults.md shows how).",
                )
        return tuple(chain)

    def _refuse_broken_chain(self, after: int | None, up_to: int, chain: list[Snapshot]) -> None:
        """Only a read from the beginning may run out of ancestors: then it reads the whole table as of its end."""
        if after is not None:
            raise RangeError(
                f"start snapshot {after} is no longer in the history",
                where=self.table,
                expected="every snapshot since the checkpoint to be kept",
                remedy="Bring back the metadata file of before the snapshots were expired, or a backup"
                " (docs/runbook-faults.md shows how): what came in between can't be told apart without them.",
            )
        if not chain:
            raise RangeError(
                f"end snapshot {up_to} is not in the history",
                where=self.table,
                expected="the snapshot up to which it was read to be kept",
                remedy="Bring back the metadata file that has it, or a backup (docs/runbook-faults.md shows how).",
            )

    def _refuse_uncounted(self, snapshot: Snapshot) -> None:
        """A summary that leaves the counts out must not pass for a snapshot without rows."""
        if "total-records" not in snapshot.summary:
            raise RangeError(
                f"snapshot {snapshot.snapshot_id} does not say how many rows it has",
                where=self.table,
                expected="'total-records' in its summary",
                remedy="Append to this table with a writer that keeps Iceberg's counts.",
            )

    def records_between(self, after: int | None, up_to: int) -> int:
        """Rows that the range brings, by the snapshots' own summaries."""
        chain = self.between(after, up_to)
        for snapshot in chain if after is not None else chain[:1]:
            self._refuse_uncounted(snapshot)
        if after is None:
            return self.snapshots[up_to].count("total-records")
        return sum(snapshot.count("added-records") for snapshot in chain if snapshot.operation == "append")


def possible_rows(total: int, deleted: int) -> range:
    """How many rows there can be: one position may stand in several delete files, so deletes only bound them."""
    return range(total - deleted, total + 1)


def live_rows(counted: str | None, possible: range) -> int:
    """The rows that the table's last batch has counted, if that can be."""
    rows = -1 if counted is None else int(counted)
    return rows if rows in possible else possible[0]


def history_from_json(table: str, metadata: Mapping[str, Any]) -> History:
    """The history in a table's metadata file."""
    snapshots = {
        entry["snapshot-id"]: Snapshot(
            entry["snapshot-id"],
            entry.get("parent-snapshot-id"),
            entry["timestamp-ms"],
            (entry.get("summary") or {}).get("operation", "append"),
            entry.get("summary") or {},
        )
        for entry in metadata.get("snapshots", ())
    }
    refs = {name: ref["snapshot-id"] for name, ref in metadata.get("refs", {}).items()}
    current = metadata.get("current-snapshot-id")
    if current is not None and current != -1:
        refs.setdefault("main", current)
    return History(table, snapshots, refs, metadata.get("properties") or {})


def history_of(table: Table) -> History:
    """The history of a table that pyiceberg has loaded."""
    metadata = table.metadata
    snapshots = {entry.snapshot_id: _snapshot(entry) for entry in metadata.snapshots}
    refs = {name: ref.snapshot_id for name, ref in metadata.refs.items()}
    if metadata.current_snapshot_id is not None:
        refs.setdefault("main", metadata.current_snapshot_id)
    return History(".".join(table.name()[-2:]), snapshots, refs, metadata.properties)


def _snapshot(entry: IcebergSnapshot) -> Snapshot:
    operation = entry.summary.operation.value if entry.summary else "append"
    summary = {"operation": operation, **entry.summary.additional_properties} if entry.summary else {}
    return Snapshot(entry.snapshot_id, entry.parent_snapshot_id, entry.timestamp_ms, operation, summary)


def count_in_head(table: Table, name: str) -> int:
    """A count of main's newest snapshot, as `Snapshot.count`, without a look at the others; 0 if it has none."""
    head = table.current_snapshot()
    return int(head.summary.additional_properties.get(name, 0)) if head and head.summary else 0
