"""Read-only SQL over every zone: names of the house become views over the files of their tables."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.damage import damaged_parquet
from lean_ops.lake.duck import connection_to, rows
from lean_ops.lake.sql_guard import TableReference, referenced_tables
from lean_ops.lake.table_files import quoted
from lean_ops.lake.whole_table import whole_table
from lean_ops.model.errors import LeanOpsError, WrongUseError
from lean_ops.model.tables import LATEST_SUFFIX, RAW_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.lake.table_files import TableFiles
    from lean_ops.model.tables import Names

_ZONES: Final = ("raw", "standardized", "curated", "ops")  # short names of the databases, in their order
_NEAR_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class _Source:
    """What a table's name stands for: a metadata file, and whether only the newest row of each key is asked for."""

    location: str
    latest: bool = False


@dataclass(frozen=True)
class QuerySession:
    """The tables of one home at one moment, for SQL that a person or a program brings along."""

    names: Names
    catalog: CatalogReader

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of one SELECT; WrongUseError for anything that writes, reads files or can't be understood."""
        tables = {name: self._source(name) for name in referenced_tables(sql)}
        planned = {source.location: whole_table(source.location) for source in tables.values()}
        with connection_to(planned.values()) as connection:
            _make_views(connection, tables, planned)
            return _answer(connection, sql, planned.values())

    @cached_property
    def _locations(self) -> dict[str, dict[str, str]]:
        """Metadata files by zone word and table."""
        return {
            zone: self.catalog.locations(database) for zone, database in zip(_ZONES, self.names.databases, strict=True)
        }

    @cached_property
    def _zone_of(self) -> dict[str, str]:
        """Zone words by every name that a database goes by: short, long, and long with the prefix."""
        long = dict(zip(self.names.databases, _ZONES, strict=True))
        unprefixed = {name.removeprefix(self.names.database_prefix): zone for name, zone in long.items()}
        return {zone: zone for zone in _ZONES} | unprefixed | long

    def _source(self, name: TableReference) -> _Source:
        zone = self._zone_of.get(name.schema)
        if zone is None:
            raise WrongUseError(
                "there is no such schema",
                where=f"table {str(name)!r}",
                expected=f"one of {', '.join(_ZONES)}, or a long database name ({', '.join(self.names.databases)})",
            )
        source = self._find(zone, name.table)
        if source is None:
            raise self._unknown_table(zone, name)
        return source

    def _find(self, zone: str, table: str) -> _Source | None:
        tables = self._locations[zone]
        if table in tables:
            return _Source(tables[table])
        if zone == "raw" and f"{table}{RAW_SUFFIX}" in tables:
            return _Source(tables[f"{table}{RAW_SUFFIX}"])
        topic = table.removesuffix(LATEST_SUFFIX)
        if zone == "standardized" and topic != table and topic in tables:
            return _Source(tables[topic], latest=True)
        return None

    def _unknown_table(self, zone: str, name: TableReference) -> LeanOpsError:
        here = [table.removesuffix(RAW_SUFFIX) for table in self._locations[zone]]
        near = [f"{zone}.{table}" for table in difflib.get_close_matches(name.table, here, n=_NEAR_NAMES)]
        near += [f"{other}.{name.table}" for other in _ZONES if other != zone and self._find(other, name.table)]
        some = f"one like {', '.join(near)}" if near else f"one of {_some([f'{zone}.{table}' for table in here])}"
        return WrongUseError(
            "there is no such table",
            where=f"table {str(name)!r}",
            expected=some if near or here else None,
            remedy=None if near or here else f"There are no tables in {zone} yet.",
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join((*names[:_NEAR_NAMES], *(["…"] if len(names) > _NEAR_NAMES else [])))


def _make_views(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[TableReference, _Source],
    planned: Mapping[str, TableFiles],
) -> None:
    for name, source in tables.items():
        select = planned[source.location].select()
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.schema)}")
        connection.execute(
            f"CREATE VIEW {quoted(name.schema)}.{quoted(name.table)} AS {_latest(select) if source.latest else select}"
        )


def _latest(select: str) -> str:
    """The newest row of each key; a row without a key has no newer version and is always shown."""
    return (
        f"SELECT * FROM ({select}) QUALIFY nullif(trim(idempotency_key), '') IS NULL OR row_number() OVER ("  # noqa: S608
        "PARTITION BY idempotency_key ORDER BY publish_time DESC NULLS LAST, ingestion_ts DESC NULLS LAST,"
        " message_id DESC NULLS LAST) = 1"
    )


def _answer(connection: duckdb.DuckDBPyConnection, sql: str, planned: Iterable[TableFiles]) -> list[dict[str, Any]]:
    import duckdb

    try:
        return rows(connection, sql)
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        if damaged_parquet(path for files in planned for path in files.paths):
            raise
        raise WrongUseError("the query can't be answered", found=str(error).strip()) from error
