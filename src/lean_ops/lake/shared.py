"""One committer for the tables that all topics share.

Each caller writes its own data files at once; whoever gets the table's turn then commits the files of everyone
who waits, in a single snapshot. Thirty topics that report errors together cost one commit, not thirty that
fight each other.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.damage import naming_damage
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import DataScan, Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.tables import TableName


@dataclass(slots=True)
class _Pending:
    """Files that wait for a commit."""

    files: list[DataFile]
    done: Future[None] = field(default_factory=Future)


class SharedTables:
    """Appends to shared tables; each call returns once its rows are committed."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._guard = threading.Lock()
        self._turns: defaultdict[TableName, threading.Lock] = defaultdict(threading.Lock)
        self._waiting: defaultdict[TableName, list[_Pending]] = defaultdict(list)

    def append_rows(self, name: TableName, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append plain rows; columns that a row lacks are NULL."""
        import pyarrow as pa

        if rows:
            schema = self._lake.load(name).schema().as_arrow()
            _refuse_unknown(name, rows, schema.names)
            self.append(name, [pa.Table.from_pylist([dict(row) for row in rows], schema=schema)])

    def append(self, name: TableName, parts: Iterable[pa.Table]) -> None:
        """Append all parts in one snapshot, holding one part in memory at a time."""
        pending = _Pending(self._write_files(name, parts))
        if not pending.files:
            return
        with self._guard:
            self._waiting[name].append(pending)
            turn = self._turns[name]
        with turn:
            if not pending.done.done():
                self._commit_all_waiting(name)
        pending.done.result()

    def rows_of_batch(self, name: TableName, topic: str, batch_id: str) -> int:
        """How many rows of a batch are in a shared table; the way a restart knows what is already written."""
        return self.count(name, topic_name=topic, batch_id=batch_id)

    def count(self, name: TableName, **equal: str) -> int:
        """How many rows have the given values in the given columns."""
        table = self._lake.load(name)
        with naming_damage(lambda: [table]):
            return _scan(table, tuple(equal), **equal).count()

    def values(self, name: TableName, column: str, **equal: str) -> set[str]:
        """The different values of a column in the rows where the given columns have the given values."""
        table = self._lake.load(name)
        with naming_damage(lambda: [table]):
            rows = _scan(table, (column,), **equal).to_arrow()
        return {value for value in rows.column(column).unique().to_pylist() if value is not None}

    def _write_files(self, name: TableName, parts: Iterable[pa.Table]) -> list[DataFile]:
        table = self._lake.load(name)
        schema = table.schema().as_arrow()
        return [file for part in parts for file in write_files(table, part.cast(schema))]

    def _commit_all_waiting(self, name: TableName) -> None:
        with self._guard:
            group, self._waiting[name] = self._waiting[name], []
        try:
            self._commit(name, [file for pending in group for file in pending.files])
        except BaseException as error:
            for pending in group:
                pending.done.set_exception(error)
            raise
        for pending in group:
            pending.done.set_result(None)

    def _commit(self, name: TableName, files: list[DataFile]) -> None:
        append_files(self._lake.load(name), files, {})


def _scan(table: Table, columns: tuple[str, ...], **equal: str) -> DataScan:
    from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, Reference
    from pyiceberg.expressions.literals import literal

    row_filter: BooleanExpression = AlwaysTrue()
    for column, value in equal.items():
        row_filter = And(row_filter, EqualTo(term=Reference(column), value=literal(str(value))))
    return table.scan(row_filter=row_filter, selected_fields=columns)


def _refuse_unknown(name: TableName, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A misspelt column must not become NULL in silence."""
    unknown = {column for row in rows for column in row}.difference(columns)
    if unknown:
        raise TerminalError("no such column", where=str(name), found=", ".join(sorted(unknown)))
