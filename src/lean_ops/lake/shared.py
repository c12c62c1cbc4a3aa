"""One committer for the tables that all topics share.

Whoever gets the table's turn writes and commits the rows of everyone who waits, in a single snapshot; where many come
and go it waits a moment for them. Thirty topics that report errors together cost one commit, not thirty that fight
each other. Only many rows are written as files by their own caller before.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.damage import naming_damage
from lean_ops.lake.file_rows import read_columns
from lean_ops.lake.topic_files import TopicFiles
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.small_files import Gathered
    from lean_ops.lake.topic_files import TopicFile
    from lean_ops.model.tables import TableName


_TOPIC: Final = "topic_name"
_FEW_BYTES: Final = 4 * 1024 * 1024
# So long is waited for others where many come and go. Longer, and too many wait at a time to keep two cores busy.
_GATHERING_SECONDS: Final = 0.4


@dataclass(slots=True)
class _Pending:
    """Rows and files that wait for a commit."""

    rows: pa.Table
    files: list[DataFile]
    done: Future[None] = field(default_factory=Future)


class SharedTables:
    """Appends to shared tables; each call returns once its rows are committed."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._guard = threading.Lock()
        self._pause = 0.0
        self._turns: defaultdict[TableName, threading.Lock] = defaultdict(threading.Lock)
        self._waiting: defaultdict[TableName, list[_Pending]] = defaultdict(list)
        self._files: defaultdict[TableName, TopicFiles] = defaultdict(TopicFiles)
        self._schemas: dict[TableName, tuple[Schema, pa.Schema]] = {}

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """For the time of the block whoever commits waits a moment for others: there are many who can wait."""
        self._pause = _GATHERING_SECONDS
        try:
            yield
        finally:
            self._pause = 0.0

    def append_rows(self, name: TableName, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append plain rows; columns that a row lacks are NULL."""
        self.append_rows_of({name: rows})

    def append_rows_of(self, rows: Mapping[TableName, Sequence[Mapping[str, Any]]]) -> None:
        """Append plain rows to several tables: one commit each, in no order, but one wait for all of them.

        An error leaves some tables with their rows and some without.
        """
        self._commit_each({name: self._pending(name, [self._table(name, of)])[0] for name, of in rows.items() if of})

    def append(self, name: TableName, parts: Iterable[pa.Table]) -> int:
        """Append all parts in one snapshot, holding few in memory at a time; how many rows there were."""
        pending, rows = self._pending(name, parts)
        if rows:
            self._commit_each({name: pending})
        return rows

    def _commit_each(self, pending: Mapping[TableName, _Pending]) -> None:
        """See to it that all are committed, by whoever; while one table is waited for, others may take the rest."""
        with self._guard:
            for name, of in pending.items():
                self._waiting[name].append(of)
            turns = {name: self._turns[name] for name in pending}
        try:
            for name, of in pending.items():
                with turns[name]:
                    if not of.done.done():
                        time.sleep(self._pause)
                        self._commit_all_waiting(name)
                of.done.result()
        except BaseException:
            self._withdraw(pending)
            raise

    def _withdraw(self, pending: Mapping[TableName, _Pending]) -> None:
        """Nobody is to commit what its caller takes for failed, as far as nobody has begun to."""
        with self._guard:
            for name, of in pending.items():
                self._waiting[name] = [other for other in self._waiting[name] if other is not of]

    def gather_small_files(self, name: TableName) -> Gathered | None:
        """Put a table's small files together where it pays; None if not. Who wants to append waits meanwhile."""
        from lean_ops.lake.small_files import gather_small_files

        with self._guard:
            turn = self._turns[name]
        with turn:
            return gather_small_files(self._lake.load(name))

    def files_of_topic(self, name: TableName, topic: str) -> list[TopicFile]:
        """The data files that hold a topic's rows; only metadata is read."""
        with self._guard:
            files = self._files[name]
        return files.of_topic(self._lake.load(name), topic)

    def rows_of_batch(self, name: TableName, topic: str, batch_id: str) -> int:
        """How many rows of a batch are in a shared table; the way a restart knows what is already written."""
        return self.count(name, topic_name=topic, batch_id=batch_id)

    def count(self, name: TableName, **equal: str) -> int:
        """How many rows have the given values in the given columns."""
        return sum(rows.num_rows for rows in self._rows(name, (), equal))

    def values(self, name: TableName, column: str, **equal: str) -> set[str]:
        """The different values of a column in the rows where the given columns have the given values."""
        found = (rows.column(column).unique().to_pylist() for rows in self._rows(name, (column,), equal))
        return {value for values in found for value in values if value is not None}

    def _rows(self, name: TableName, columns: Sequence[str], equal: Mapping[str, str]) -> Iterator[pa.Table]:
        """Such rows, file by file; of one topic, if the table's first partition is among what must be equal."""
        table, topic = self._lake.load(name), equal.get(_TOPIC)
        with self._guard:
            files = self._files[name]
        found = files.of_all(table) if topic is None else files.of_topic(table, str(topic))
        with naming_damage(lambda: [table]):
            for file in found:
                yield _with_values(read_columns(table.io, file.path, tuple({*columns, *equal})), equal)

    def _table(self, name: TableName, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Plain rows in the table's columns."""
        import pyarrow as pa

        schema = self._arrow_schema(name, self._lake.load(name))
        _refuse_unknown(name, rows, schema.names)
        return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)

    def _pending(self, name: TableName, parts: Iterable[pa.Table]) -> tuple[_Pending, int]:
        """The parts, ready for a commit, and their rows; all but a small rest is in files already."""
        import pyarrow as pa

        table = self._lake.load(name)
        schema = self._arrow_schema(name, table)
        few, files, rows = schema.empty_table(), [], 0
        for part in parts:
            rows += part.num_rows
            few = pa.concat_tables([few, part.cast(schema)])
            if few.nbytes > _FEW_BYTES:
                files += write_files(table, few)
                few = schema.empty_table()
        return _Pending(few, files), rows

    def _arrow_schema(self, name: TableName, table: Table) -> pa.Schema:
        """The table's columns; made once for each schema, because every batch of every topic asks."""
        schema = table.schema()
        of, known = self._schemas.get(name, (None, None))
        if of is not schema:
            known = schema.as_arrow()
            self._schemas[name] = (schema, known)
        return known

    def _commit_all_waiting(self, name: TableName) -> None:
        with self._guard:
            group, self._waiting[name] = self._waiting[name], []
        try:
            self._commit(name, group)
        except BaseException as error:
            for pending in group:
                pending.done.set_exception(error)
            raise
        for pending in group:
            pending.done.set_result(None)

    def _commit(self, name: TableName, group: Sequence[_Pending]) -> None:
        import pyarrow as pa

        from lean_ops.lake.retention import forget_old_snapshots

        forget_old_snapshots(self._lake.load(name))  # before the append: an error must mean that nothing was written
        table = self._lake.load(name)
        files = [file for pending in group for file in pending.files]
        files += write_files(table, pa.concat_tables([pending.rows for pending in group]))
        append_files(table, files, {})


def _with_values(rows: pa.Table, equal: Mapping[str, str]) -> pa.Table:
    import pyarrow.compute as pc

    for column, value in equal.items():
        rows = rows.filter(pc.equal(rows.column(column), str(value)))
    return rows


def _refuse_unknown(name: TableName, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A misspelt column must not become NULL in silence."""
    unknown = {column for row in rows for column in row}.difference(columns)
    if unknown:
        raise TerminalError("no such column", where=str(name), found=", ".join(sorted(unknown)))
