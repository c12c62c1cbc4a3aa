"""The ground of a rebuild: a branch of each zone's table that begins with nothing, and error rows set aside.

The branch's first snapshot has no parent. So a reader that follows main by snapshots can't take what the rebuild wrote
for more rows of the same history: it finds that its start is gone, and stops.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lean_ops.lake.append import write_files
from lean_ops.lake.ground import Refused
from lean_ops.lake.once import manifest_files
from lean_ops.lake.snapshots import history_of
from lean_ops.lake.staging import Stage, move_branch
from lean_ops.lake.topic_files import topic_file
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.snapshots import History
    from lean_ops.lake.topic_files import TopicFile
    from lean_ops.model.batch import Batch
    from lean_ops.model.tables import TableName

BRANCH_PREFIX: Final = "lean_ops_rebuild_"
_ATTEMPTS: Final = 20
# A snapshot without a parent is not checked against those that came meanwhile. With a number this far ahead it is still
# the newest, and whoever comes next counts on from there.
_NUMBERS_LEFT_OUT: Final = 10_000


def begin_branch(lake: Lake, name: TableName, branch: str) -> int:
    """A branch of the table whose one snapshot has no rows and no parent; the snapshot."""
    from pyiceberg.exceptions import CommitFailedException

    last: Exception | None = None
    for _ in range(_ATTEMPTS):
        try:
            with _far_ahead(lake.load(name)).transaction() as transaction:
                nothing = transaction.update_snapshot(branch=branch).fast_append()
                nothing.commit()
        except CommitFailedException as error:  # somebody committed between the look and the commit
            last = error
        else:
            return int(nothing.snapshot_id)
    raise TransientError(f"{_ATTEMPTS} commits in a row lost", where=str(name), found=str(last))


def _far_ahead(table: Table) -> Table:
    """The same table as if many snapshots more had been made; to pyiceberg a branch that is new has no parent."""
    from pyiceberg.table import Table

    number = table.metadata.next_sequence_number() + _NUMBERS_LEFT_OUT
    metadata = table.metadata.model_copy(update={"last_sequence_number": number})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


@dataclass(slots=True)
class RebuiltZone:
    """A zone while it is built: its branch, where that stands, its rows, and the files of its refused rows."""

    branch: str
    head: int
    rows: int = 0
    refused: list[TopicFile] = field(default_factory=list)


@dataclass(slots=True)
class RebuildGround:
    """The branches of one rebuild. `ends` are the source's snapshots at which live batches ended."""

    lake: Lake
    ends: Sequence[int]
    zones: Mapping[TableName, RebuiltZone]
    errors: Mapping[TableName, TableName]

    @property
    def is_main(self) -> bool:
        """No reader sees it yet."""
        return False

    def open_stage(self, name: TableName, _: Batch) -> Stage:
        """The zone's branch, moved back to where the last part left it."""
        zone = self.zones[name]
        move_branch(self.lake, name, zone.branch, zone.head)
        return Stage(name, zone.branch, zone.head)

    def head(self, table: History) -> int | None:
        """The snapshot that the last part left."""
        return self._zone(table).head

    def rows(self, table: History) -> int:
        """Rows of the parts so far."""
        return self._zone(table).rows

    def _zone(self, table: History) -> RebuiltZone:
        return next(zone for name, zone in self.zones.items() if str(name) == table.table)

    def turns(self, batch: Batch) -> Mapping[str, int]:
        """By which live batch each file was read: of two copies of a message the one of the earlier batch was first.

        What maintenance wrote anew, and what has left the history, is older than all that is still told apart.
        """
        table = self.lake.load(self.lake.names.of_zone(batch.zone.source, batch.topic))
        turn = turns_of(history_of(table), self.ends)
        return {file.file_path: turn.get(snapshot or 0, -1) for snapshot, file in manifest_files(table)}

    def refused(self, name: TableName, _: Batch, *, with_own: bool) -> Refused:  # noqa: ARG002  see below
        """What the parts so far have refused: a part's own rows are among them as soon as they are kept."""
        return Refused(tuple(self.zones[self.errors[name]].refused), set_aside=True)

    def keep_refused(self, name: TableName, parts: Iterable[pa.Table]) -> int:
        """Write them as files of the error table that no snapshot has yet."""
        table = self.lake.load(name)
        schema = table.schema().as_arrow()
        time_id = table.schema().find_field("publish_time").field_id
        files = [topic_file(file, time_id) for part in parts for file in write_files(table, part.cast(schema))]
        self.zones[self.errors[name]].refused += files
        return sum(file.rows for file in files)

    def kept_refused(self, _: TableName, __: Batch) -> int:
        """A part that failed is not tried again."""
        return 0


def turns_of(source: History, ends: Iterable[int]) -> dict[int, int]:
    """The number of the live batch that read each snapshot of a table's main; the same after the last one known."""
    known, turn = set(ends), 0
    turns: dict[int, int] = {}
    for snapshot in reversed(list(source.ancestors(source.head))):
        turns[snapshot.snapshot_id] = -1 if snapshot.operation == "replace" else turn
        turn += snapshot.snapshot_id in known
    return turns


def drop_branches(lake: Lake, name: TableName) -> None:
    """Take away what rebuilds that were not published have left on a table."""
    for _ in range(_ATTEMPTS):
        table = lake.load(name)
        left = [ref for ref in table.refs() if ref.startswith(BRANCH_PREFIX)]
        if not left or _dropped(table, left):
            return
    raise TransientError(f"{_ATTEMPTS} commits in a row lost", where=str(name))


def _dropped(table: Table, branches: Iterable[str]) -> bool:
    from pyiceberg.exceptions import CommitFailedException

    try:
        with table.manage_snapshots() as update:
            for branch in branches:
                update.remove_branch(branch)
    except CommitFailedException:
        return False
    return True


def delete_files(lake: Lake, name: TableName, paths: Iterable[str]) -> None:
    """Delete files of a table that no snapshot has."""
    io = lake.load(name).io
    for path in paths:
        with suppress(FileNotFoundError):
            io.delete(path)
