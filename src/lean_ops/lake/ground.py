"""What a batch is built on: where it is written, which rows came before it, and where its refused rows go.

Live batches build on main. A rebuild has a ground of its own (`lake/rebuild_ground.py`), and the hops need not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from lean_ops.lake.staging import open_stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.shared import SharedTables
    from lean_ops.lake.snapshots import History
    from lean_ops.lake.staging import Stage
    from lean_ops.lake.topic_files import TopicFile
    from lean_ops.model.batch import Batch
    from lean_ops.model.tables import TableName


@dataclass(frozen=True, slots=True)
class Refused:
    """Files with messages that were refused before; rows of one batch do not count, if it is named.

    They lie in the shared table unless they are `set_aside` from it.
    """

    files: tuple[TopicFile, ...]
    without_batch: str | None = None
    set_aside: bool = False


class Ground(Protocol):
    """What the hops ask of it."""

    @property
    def is_main(self) -> bool:
        """Whether it is what readers see."""

    def open_stage(self, name: TableName, batch: Batch) -> Stage:
        """A branch for the batch, without anything that an earlier try has written there."""

    def head(self, table: History) -> int | None:
        """The snapshot that the next batch comes after."""

    def rows(self, table: History) -> int:
        """Its live rows."""

    def turns(self, batch: Batch) -> Mapping[str, int]:
        """In which turn the files of a batch's range count, where that is not the same for all of them."""

    def refused(self, name: TableName, batch: Batch, *, with_own: bool) -> Refused:
        """The topic's messages that an error table has refused; those of this very batch too, if that is asked."""

    def keep_refused(self, name: TableName, parts: Iterable[pa.Table]) -> int:
        """Keep the batch's rows of an error table; how many there were."""

    def kept_refused(self, name: TableName, batch: Batch) -> int:
        """How many such rows an earlier try of the batch has kept."""


@dataclass(frozen=True, slots=True)
class MainGround:
    """Live processing: a stage begins at main, and refused rows go to their table at once."""

    lake: Lake
    shared: SharedTables

    @property
    def is_main(self) -> bool:
        """It is what readers see."""
        return True

    def open_stage(self, name: TableName, batch: Batch) -> Stage:
        """A fresh branch of main."""
        return open_stage(self.lake, name, batch)

    def head(self, table: History) -> int | None:
        """Main's snapshot."""
        return table.head

    def rows(self, table: History) -> int:
        """Main's rows."""
        return table.live_rows

    def turns(self, _: Batch) -> Mapping[str, int]:
        """All files of a range are read in one turn."""
        return {}

    def refused(self, name: TableName, batch: Batch, *, with_own: bool) -> Refused:
        """What the shared table has of the topic."""
        files = tuple(self.shared.files_of_topic(name, batch.topic))
        return Refused(files, None if with_own else batch.batch_id)

    def keep_refused(self, name: TableName, parts: Iterable[pa.Table]) -> int:
        """Append them."""
        return self.shared.append(name, parts)

    def kept_refused(self, name: TableName, batch: Batch) -> int:
        """Rows of the batch in the shared table."""
        return self.shared.rows_of_batch(name, batch.topic, batch.batch_id)
