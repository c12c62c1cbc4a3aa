"""New values in a few columns of rows that a shared table has: their files are written anew, in one commit.

Rows of a shared table never change but for what became of them later, such as a replay. Files are replaced whole, so
that a reader needs no delete files to see each row once, before or after the change and nothing in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.append import write_files
from lean_ops.lake.damage import naming_damage
from lean_ops.lake.file_rows import read_columns
from lean_ops.lake.guarded import commit_if_unmoved, until_unmoved

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.tables import TableName

    # What is to change: by the key of a row, new values by column. Every row has the same columns.
    Changes = Mapping[str, Mapping[str, Any]]

_PART_BYTES: Final = 64 * 1024 * 1024


def restate(lake: Lake, name: TableName, topic: str, key: str, changes: Changes) -> int:
    """Give a topic's rows their new values; how many were different. If none was, nothing is committed."""
    return until_unmoved(lake, name, lambda table: _try(table, topic, key, changes)) if changes else 0


def _try(table: Table, topic: str, key: str, changes: Changes) -> int | None:
    removed: list[DataFile] = []
    added: list[DataFile] = []
    changed = 0
    with naming_damage(lambda: [table]):
        for task in _tasks(table, topic):
            found = _different(table, task, key, changes)
            if found:
                changed += found
                removed.append(task.file)
                for part in _parts(table, task):
                    added += write_files(table, _with(part, key, changes))
    return changed if not changed or commit_if_unmoved(table, added, removed) else None


def _tasks(table: Table, topic: str) -> Iterator[FileScanTask]:
    """The files of a topic's rows."""
    from pyiceberg.expressions import EqualTo, Reference
    from pyiceberg.expressions.literals import literal

    yield from table.scan(row_filter=EqualTo(term=Reference("topic_name"), value=literal(topic))).plan_files()


def _different(table: Table, task: FileScanTask, key: str, changes: Changes) -> int:
    """How many rows of a file have a value that is to change."""
    columns = next(iter(changes.values()))
    rows = read_columns(table.io, task.file.file_path, tuple({key, *columns})).to_pylist()
    return sum(any(row[name] != value for name, value in changes.get(row[key], {}).items()) for row in rows)


def _parts(table: Table, task: FileScanTask) -> Iterator[pa.Table]:
    """A file's rows in all of the table's columns, as many at a time as memory should hold."""
    import pyarrow as pa
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

    schema = table.schema().as_arrow()
    batches, size = [], 0
    for batch in ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_record_batches([task]):
        batches.append(batch)
        size += batch.nbytes
        if size > _PART_BYTES:
            yield pa.Table.from_batches(batches).cast(schema)
            batches, size = [], 0
    if batches:
        yield pa.Table.from_batches(batches).cast(schema)


def _with(rows: pa.Table, key: str, changes: Changes) -> pa.Table:
    """The rows with their new values."""
    import pyarrow as pa

    keys = rows.column(key).to_pylist()
    for name in next(iter(changes.values())):
        position = rows.schema.get_field_index(name)
        column = rows.schema.field(position)
        values = [
            changes[row][name] if row in changes else value
            for row, value in zip(keys, rows.column(name).to_pylist(), strict=True)
        ]
        rows = rows.set_column(position, column, pa.array(values, column.type))
    return rows
