"""What `query` lets through: one SELECT over tables of the lake, and nothing that reaches outside of it.

The statement is judged by its syntax tree, by lists of what is allowed: a SELECT may hide an INSERT in a WITH, a
file in a FROM, or a function that runs SQL text. The connection itself is locked as well (lake/duck.py).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

# DuckDB's parser calls itself for whatever stands inside something else: past some thousand levels it takes minutes,
# and past some ten thousand it ends the process.
MAX_CHARACTERS: Final = 100_000
MAX_BRACKETS: Final = 200
_BRACKETS: Final = {**dict.fromkeys("([{", 1), **dict.fromkeys(")]}", -1)}
_bracket_of: Final = re.compile(r"[()\[\]{}]").findall
_QUERIES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_SOURCES: Final = frozenset(
    {"BASE_TABLE", "SUBQUERY", "JOIN", "EXPRESSION_LIST", "PIVOT", "EMPTY", "TABLE_FUNCTION", "SHOW_REF"}
)
_MODIFIERS: Final = frozenset(
    {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER", "DISTINCT_MODIFIER"}
    | {"ORDER_DEFAULT", "ASCENDING", "DESCENDING"}
)
_EXPRESSIONS: Final = frozenset(
    {"COLUMN_REF", "CONSTANT", "FUNCTION", "WINDOW", "COMPARISON", "CONJUNCTION", "OPERATOR", "CASE", "CAST", "TYPE"}
    | {"SUBQUERY", "STAR", "LAMBDA", "LAMBDA_REF", "BETWEEN", "COLLATE", "POSITIONAL_REFERENCE"}
)
_TABLE_FUNCTIONS: Final = frozenset({"range", "generate_series", "unnest", "json_each", "json_tree"})
_REFUSED_FUNCTIONS: Final = frozenset(
    {"getenv", "current_setting", "set_config", "getvariable", "current_query", "in_search_path", "which_secret"}
    | {"nextval", "currval", "setval", "setseed", "write_log", "parse_duckdb_log_message", "get_block_size"}
    | {"json_serialize_sql", "json_deserialize_sql", "json_serialize_plan", "json_execute_serialized_sql"}
    | {"query", "query_table", "glob", "sniff_csv", "stats", "checkpoint", "force_checkpoint", "summary", "sleep_ms"}
)
_REFUSED_BEGINNINGS: Final = (
    *("read_", "parquet_", "duckdb_", "pragma_", "pg_", "inet_", "has_", "__", "arrow_", "pandas_", "python_"),
    *("enable_", "disable_", "register_", "deregister_", "create_external", "destroy_external", "truncate_"),
)
_HARMLESS: Final = frozenset({"pg_typeof", "pg_size_pretty", "__postfix"})
_ALLOWED: Final = (
    "one SELECT (WITH, VALUES, DESCRIBE and SUMMARIZE too) over tables of raw., standardized., curated. and ops.;"
    f" table functions {', '.join(sorted(_TABLE_FUNCTIONS))}"
)


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table as a statement names it, in lower case."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


def referenced_tables(sql: str) -> tuple[TableReference, ...]:
    """The tables that a statement reads; WrongUseError unless it is one SELECT that only reads tables."""
    try:
        walk = _Walk()
        walk.visit(_syntax_tree(sql), frozenset())
    except RecursionError as error:
        raise refusal("an expression nested too deeply") from error
    return tuple(sorted(walk.references, key=str))


def refusal(found: str, remedy: str | None = None) -> WrongUseError:
    """The error that says what a statement held and what it may hold."""
    return WrongUseError("this SQL is not for `query`", found=found, expected=_ALLOWED, remedy=remedy)


def _check_text(sql: str) -> None:
    """WrongUseError for what the parser must not be given."""
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise WrongUseError("not SQL", found=f"bytes that are no text at character {error.start + 1}") from None
    if len(sql) > MAX_CHARACTERS:
        raise WrongUseError("too much SQL", found=f"{len(sql)} characters", expected=f"at most {MAX_CHARACTERS}")
    depth = 0
    for bracket in _bracket_of(sql):  # those in texts count as well: who writes 200 of them unclosed can write less
        depth = max(depth + _BRACKETS[bracket], 0)
        if depth > MAX_BRACKETS:
            raise refusal("an expression nested too deeply", f"Nest at most {MAX_BRACKETS} brackets.")


def _syntax_tree(sql: str) -> Any:
    """The one statement's tree, as DuckDB itself parses it."""
    import duckdb

    _check_text(sql)
    with _parser().cursor() as parser:
        try:
            kinds = [statement.type.name for statement in parser.extract_statements(sql)]
        except duckdb.Error as error:
            raise WrongUseError("not SQL", found=str(error).strip()) from error
        _refuse_other_statements(kinds)
        row = parser.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    if tree["error"] or len(tree["statements"]) != 1:
        raise refusal(str(tree.get("error_message", "something that is no SELECT")))
    return tree["statements"][0]


@cache
def _parser() -> DuckDBPyConnection:
    """A database without tables, for its parser alone; made once, because making one takes longer than parsing."""
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})


def _refuse_other_statements(kinds: Sequence[str]) -> None:
    if len(kinds) != 1:
        raise refusal(f"{len(kinds)} statements" if kinds else "no statement")
    if kinds[0] == "MULTI":
        raise refusal("a PIVOT that needs a table of its own", "Name the values: PIVOT … ON column IN ('a', 'b').")
    if kinds[0] != "SELECT":
        raise refusal(f"a statement of kind {kinds[0].replace('_', ' ')}")


@dataclass
class _Walk:
    """One pass over a syntax tree: collects tables, refuses what is not on a list."""

    references: set[TableReference] = field(default_factory=set)

    def visit(self, node: Any, ctes: frozenset[str]) -> None:
        """Judge a part of the tree, where the names of `ctes` stand for queries of the statement itself."""
        if isinstance(node, list):
            for part in node:
                self.visit(part, ctes)
        elif isinstance(node, dict):
            if isinstance(node.get("type"), str):
                self._judge(node, ctes)
            if "cte_map" in node:
                ctes = self._visit_ctes(node["cte_map"]["map"], ctes)
            for name, part in node.items():
                if name != "cte_map":
                    self.visit(part, ctes)

    def _visit_ctes(self, entries: list[dict[str, Any]], ctes: frozenset[str]) -> frozenset[str]:
        """Each WITH query sees those before it, and itself if it is recursive; the rest of the query sees all."""
        for entry in entries:
            name, query = entry["key"].lower(), entry["value"]
            recursive = query["query_node"]["type"] == "RECURSIVE_CTE_NODE"
            self.visit(query, ctes | {name} if recursive else ctes)
            ctes |= {name}
        return ctes

    def _judge(self, node: dict[str, Any], ctes: frozenset[str]) -> None:
        kind = node["type"]
        if "class" in node:
            self._judge_expression(node)
        elif kind not in _QUERIES | _SOURCES | _MODIFIERS:
            raise refusal(f"{kind.removesuffix('_NODE').removesuffix('_QUERY').replace('_', ' ')} inside a SELECT")
        elif kind == "BASE_TABLE":
            self._judge_table(node, ctes)
        elif kind == "TABLE_FUNCTION":
            self._judge_table_function(node)
        elif kind == "SHOW_REF" and node.get("query") is None:
            raise refusal("SHOW", "`lean-ops status` lists the topics; DESCRIBE raw.TOPIC lists a table's columns.")

    def _judge_expression(self, node: dict[str, Any]) -> None:
        if node["class"] == "PARAMETER":
            raise refusal("a parameter (? or $name)", "Write the value itself.")
        if node["class"] not in _EXPRESSIONS:
            raise refusal(f"an expression of kind {node['class']}")
        name = str(node.get("function_name") or "").lower()
        if name in _REFUSED_FUNCTIONS or (name.startswith(_REFUSED_BEGINNINGS) and name not in _HARMLESS):
            raise refusal(f"the function {name!r}")

    def _judge_table_function(self, node: dict[str, Any]) -> None:
        name = str(node["function"].get("function_name", "")).lower()
        if name not in _TABLE_FUNCTIONS:
            raise refusal(f"the table function {name!r}")

    def _judge_table(self, node: dict[str, Any], ctes: frozenset[str]) -> None:
        catalog, schema, table = (str(node[part]).lower() for part in ("catalog_name", "schema_name", "table_name"))
        if not catalog and not schema and table in ctes:
            return
        if catalog or not schema:
            raise refusal(
                f"the table {'.'.join(filter(None, (catalog, schema, table)))!r}",
                f"Name its zone: raw.{table}, standardized.{table}, curated.{table} or ops.{table}."
                if table.isidentifier()
                else None,
            )
        self.references.add(TableReference(schema, table))
