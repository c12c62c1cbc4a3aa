"""Targets that a person writes: schema files, their patterns, and SQL."""

from __future__ import annotations

import atexit
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from lean_ops.lake.sql_guard import referenced_tables
from lean_ops.model.change import compare
from lean_ops.model.errors import WrongUseError
from lean_ops.model.problem import SchemaError
from lean_ops.model.schema import Schema, parse_schema
from lean_ops.model.schema_rules import column_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

# Parts of a plan that would write, or read anything but tables; names of operators and of what they scan.
_OUTSIDE = ("COPY", "INSERT", "DELETE", "UPDATE", "MERGE", "CREATE", "DROP", "ALTER", "ATTACH", "READ_", "PARQUET")
_OUTSIDE += ("GLOB", "SNIFF", "DUCKDB_", "PRAGMA", "SECRET", "QUERY", "LOG")
_ZONES = ("raw", "standardized", "curated", "ops")


def schema(data: bytes) -> None:
    """Any file is a schema or has problems that can be told; a schema does not differ from itself."""
    found = _schema_or_error(data)
    if isinstance(found, SchemaError):
        assert found.problems
        assert json.dumps([problem.to_dict() for problem in found.problems])
        str(found).encode()
        assert len(str(found)) <= 2000 * len(found.problems) + 4 * len(data)
        return
    assert compare(found, found) == ()
    assert len(found.declared_pointers()) <= len(found.payload_columns)
    assert all(len(str(field)) > 0 for field in found.partition_fields)


def _schema_or_error(data: bytes) -> Schema | SchemaError:
    try:
        return parse_schema(data, "x.json")
    except SchemaError as error:
        return error


def pattern(data: bytes) -> None:
    """Any pattern is accepted or has one problem."""
    problems = list(column_problems({"pattern": data.decode("utf-8", "replace")}))
    assert len(problems) <= 1
    assert all(str(problem) for problem in problems)


def sql(data: bytes) -> None:
    """A statement is refused, or DuckDB itself says that it is one SELECT that reads the tables that were named."""
    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"\xff" else "replace")
    try:
        references = {str(reference) for reference in referenced_tables(text)}
    except WrongUseError:
        return
    if any(reference.partition(".")[0] not in _ZONES for reference in references):
        return  # `query` refuses a zone that it does not know
    for part in _plan(text):
        assert not part.upper().startswith(_OUTSIDE), part
        table = part.removeprefix("memory.")
        assert table == part or table in references, part


def _plan(text: str) -> list[str]:
    """What DuckDB would do; nothing if it can't."""
    import duckdb

    connection = _database()
    assert [statement.type.name for statement in connection.extract_statements(text)] == ["SELECT"]
    try:
        plan = connection.execute(f"EXPLAIN (FORMAT json) {text}").fetchall()
    except duckdb.Error:
        return []
    return list(_parts(json.loads(plan[0][1])))


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """A database that would let everything through, with a table of each zone: what is planned here shows."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "200MB"})
    for zone in _ZONES:
        connection.execute(f"CREATE SCHEMA {zone}; CREATE TABLE {zone}.t (a INT, b VARCHAR, c TIMESTAMPTZ)")
    return connection


atexit.register(_database.cache_clear)  # DuckDB complains of what is left at the end of a process


def _parts(plan: Any) -> Iterator[str]:
    """The names of a plan's operators, of the functions that its scans call, and of the tables that it reads."""
    for node in plan if isinstance(plan, list) else [plan]:
        extra = node.get("extra_info")
        facts = extra if isinstance(extra, dict) else {}
        yield from (str(name) for name in (node.get("name"), facts.get("Function"), facts.get("Table")) if name)
        yield from _parts(node.get("children", []))
