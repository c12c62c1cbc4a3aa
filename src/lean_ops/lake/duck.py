"""DuckDB as a reader: it opens the planned files and nothing else, answers in UTC, and can be interrupted."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lean_ops.lake.damage import damaged_parquet
from lean_ops.lake.object_store import COPIES
from lean_ops.lake.table_files import quoted, text_list
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import duckdb
    import pyarrow as pa

    from lean_ops.lake.table_files import TableFiles

_Result = TypeVar("_Result")
_MEMORY: Final = "50%"
_MAX_THREADS: Final = 8
_INTERRUPT_AGAIN_SECONDS: Final = 0.1
# What DuckDB and Arrow have the same Python value for.
_PLAIN_TYPES: Final = frozenset({"VARCHAR", "BOOLEAN", "INTEGER", "BIGINT", "HUGEINT", "DOUBLE"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def connection_to(tables: Iterable[TableFiles]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that can open these tables' files and nothing else; closed at the end of the block."""
    import duckdb

    paths = [path for files in tables for path in files.paths]
    COPIES.fetch(paths)
    try:
        with closing(_connect(paths)) as connection:
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise TerminalError(
            "the query does not fit in memory", found=str(error).strip(), remedy="Filter, aggregate or add a LIMIT."
        ) from error
    except duckdb.Error as error:
        damage = damaged_parquet(paths)
        if damage is None:
            raise
        raise damage from error


def _connect(paths: Iterable[str]) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(":memory:")
    for setting in (
        "TimeZone = 'UTC'",
        f"threads = {min(os.cpu_count() or 1, _MAX_THREADS)}",
        f"memory_limit = '{_MEMORY}'",
        "temp_directory = ''",  # a query that does not fit in memory fails: reading never leaves files behind
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        f"allowed_paths = {text_list(paths)}",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


@contextmanager
def views_of(tables: Mapping[str, TableFiles]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for our own SQL: each table is a view of that name, with its rows' data file as `_file`."""
    with connection_to(tables.values()) as connection:
        for name, files in tables.items():
            connection.execute(f"CREATE VIEW {quoted(name)} AS {files.select(with_file=True)}")
        yield connection


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    """A query's rows as plain Python values; Ctrl-C stops the query.

    Without parameters: to bind one, DuckDB imports pandas, which takes longer than most queries.
    """
    return _interruptible(connection, lambda: _rows_of(connection.sql(sql)))


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """A statement without a result that may take its time; Ctrl-C stops it."""
    _interruptible(connection, lambda: connection.execute(sql))


def _interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], _Result]) -> _Result:
    """The work's result. DuckDB does not look for signals while it fetches, so this thread stays free to."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():  # DuckDB forgets what comes in the moment before a query begins
                connection.interrupt()
                wait([future], _INTERRUPT_AGAIN_SECONDS)
            raise


def _rows_of(relation: duckdb.DuckDBPyRelation) -> list[dict[str, Any]]:
    """The rows of a query; by way of Arrow only if a column asks for it, because loading it takes its time."""
    if not _PLAIN_TYPES.issuperset(map(str, relation.types)):
        return _plain_rows(relation.to_arrow_table())
    names = _distinct(relation.columns)
    return [dict(zip(names, values, strict=True)) for values in relation.fetchall()]


def _plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = [_plain_values(column) for column in table.columns]
    names = _distinct(table.column_names)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    """A column's Python values, where Arrow's own way is wrong or slow."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_decimal(kind) and kind.scale == 0:  # DuckDB sums BIGINT to 128 bits, which Arrow has as a decimal
        return [None if value is None else int(value) for value in column.to_pylist()]
    if kind in {pa.timestamp("us"), pa.timestamp("us", tz="UTC")}:  # for a time Arrow imports pandas: half a second
        start = _EPOCH if kind.tz else _EPOCH.replace(tzinfo=None)
        return [None if value is None else _moment(start, value) for value in column.cast(pa.int64()).to_pylist()]
    return list(column.to_pylist())


def _moment(start: datetime, microseconds: int) -> datetime | str:
    """A time; one beyond Python's years, such as infinity, in words."""
    try:
        return start + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} microseconds since 1970"


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, the second of a kind with a number: a row object must not lose a column."""
    taken: dict[str, None] = {}
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        taken[candidate] = None
    return list(taken)
