"""Landing a flush: dead letters to the archive, one append to RAW, then the error rows and the ledger's row.

The append is the commit point, and its snapshot says what the flush was. Whatever a crash leaves undone behind
it is finished by `recovery`, so every message that was taken gets its fate into the books.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.ingest.flush import (
    ERRORS_PROPERTY,
    FLUSH_ID_PROPERTY,
    OWNER_PROPERTY,
    RECORDS_IN_PROPERTY,
    SETTLED_PROPERTY,
    Flush,
    OpenFlush,
)
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

    from lean_ops.ingest.archive import Archive
    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.shared import SharedTables

# On top of pyiceberg's own four retries in each, which give up when many write to one topic at once.
_COMMIT_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class Committed:
    """A flush that is in RAW, and its rows for `dlq_errors`."""

    flush: Flush
    error_rows: tuple[dict[str, Any], ...]


class Landing:
    """Commits flushes and writes their books. Safe to share between threads."""

    def __init__(
        self,
        lake: Lake,
        shared: SharedTables,
        archive: Archive,
        announce: Callable[[], str],
        clock: Callable[[], datetime],
    ) -> None:
        self._lake = lake
        self._shared = shared
        self._archive = archive
        self._announce = announce
        self._clock = clock
        self._guard = threading.Lock()
        self._open: set[str] = set()
        self._settled: dict[str, int | None] = {}

    @property
    def owner(self) -> str:
        """The name of this process, under which its flushes are committed."""
        return self._announce()

    def land(self, gathered: OpenFlush, on_commit: Callable[[Committed], None]) -> None:
        """Bring a flush into the lake and the books; `on_commit` is told as soon as it can't be lost any more."""
        with self._guard:
            self._open.add(gathered.flush_id)
        try:
            committed = self._commit(gathered)
            on_commit(committed)
            self.settle(committed)
        finally:
            with self._guard:
                self._open.discard(gathered.flush_id)

    def is_open(self, flush_id: str) -> bool:
        """Whether a thread of this process is landing that flush right now."""
        with self._guard:
            return flush_id in self._open

    def settle(self, committed: Committed) -> None:
        """Write a committed flush into the books: its dead letters, then its line in the ledger."""
        flush = committed.flush
        self._shared.append_rows(self._lake.names.dlq_errors, committed.error_rows)
        self._shared.append_rows(self._lake.names.ops("reconciliation_log"), [flush.ledger_row(self._clock())])
        with self._guard:
            if self._settled.get(flush.topic, -1) == flush.parent_id:
                self._settled[flush.topic] = flush.snapshot_id

    def all_settled_up_to(self, topic: str, snapshot_id: int | None) -> None:
        """Remember that every flush up to a snapshot is in the ledger; None stands for the table's beginning."""
        with self._guard:
            self._settled[topic] = snapshot_id

    def _commit(self, gathered: OpenFlush) -> Committed:
        now = self._clock()
        error_rows = tuple(
            self._archive.put(gathered.topic, gathered.flush_id, number, refused, now)
            for number, refused in enumerate(gathered.refused, start=1)
        )
        table = self._lake.ensure_raw(gathered.topic)
        files = _write_files(table, _arrow(table.schema(), gathered))
        snapshot_id = _append(table, files, self._summary(gathered))
        snapshot = table.metadata.snapshot_by_id(snapshot_id)
        parent_id = snapshot.parent_snapshot_id if snapshot else None
        counts = (gathered.records, len(error_rows))
        return Committed(Flush(gathered.topic, gathered.flush_id, snapshot_id, parent_id, *counts), error_rows)

    def _summary(self, gathered: OpenFlush) -> dict[str, str]:
        summary = {
            FLUSH_ID_PROPERTY: gathered.flush_id,
            RECORDS_IN_PROPERTY: str(gathered.records),
            ERRORS_PROPERTY: str(len(gathered.refused)),
            OWNER_PROPERTY: self.owner,
        }
        with self._guard:
            settled = self._settled.get(gathered.topic)
        return summary if settled is None else {**summary, SETTLED_PROPERTY: str(settled)}


def _arrow(schema: Schema, gathered: OpenFlush) -> pa.Table:
    """The rows as Arrow columns."""
    import pyarrow as pa

    arrow_schema = schema.as_arrow()
    columns = zip(gathered.columns(), arrow_schema, strict=True)
    arrays = [pa.array(values, type=column.type) for values, column in columns]
    return pa.Table.from_arrays(arrays, schema=arrow_schema)


def _write_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """The rows as data files that no snapshot has yet; written once, however often the commit is tried."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    if not rows.num_rows:
        return []
    return list(_dataframe_to_data_files(table.metadata, rows, table.io, write_uuid=uuid.uuid4()))


def _append(table: Table, files: list[DataFile], summary: dict[str, str]) -> int:
    """Append files (or nothing) in one snapshot of main; the snapshot's id."""
    from pyiceberg.exceptions import CommitFailedException
    from sqlalchemy.exc import SQLAlchemyError

    for attempt in range(_COMMIT_ROUNDS):
        try:
            with table.transaction() as transaction:  # noqa: SIM117  the append must end before its transaction
                with transaction.update_snapshot(snapshot_properties=summary).merge_append() as append:
                    for file in files:
                        append.append_data_file(file)
        except CommitFailedException:
            time.sleep(random.uniform(0, min(2.0, 0.05 * 2**attempt)))  # noqa: S311  jitter, no secret
            table.refresh()
        except SQLAlchemyError as error:
            raise TransientError(
                "the catalog could not be written",
                where=".".join(table.name()),
                found=str(error),
                remedy="Ingest the lines of this flush again; if it landed after all, copies do no harm.",
            ) from error
        else:
            return append.snapshot_id
    raise TransientError(
        f"{_COMMIT_ROUNDS} rounds of commits in a row lost against other writers",
        where=".".join(table.name()),
        remedy="Nothing of this flush was written; ingest its lines again.",
    )
