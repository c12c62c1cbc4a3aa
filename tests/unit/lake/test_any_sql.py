"""However it is wrapped: what would write, or read anything but tables of the lake, never gets through."""

from __future__ import annotations

import atexit
from functools import cache

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.strategies import inputs_of
from tests.fuzz.targets import run, sql

from lean_ops.lake.sql_guard import referenced_tables
from lean_ops.model.errors import WrongUseError

# Each reads a file, writes, or tells of the machine; as a query that gives one value.
FORBIDDEN = (
    "SELECT content FROM read_text('x')",
    "SELECT count(*) FROM 'x.csv'",
    'SELECT count(*) FROM "x.parquet"',
    "SELECT max(file) FROM glob('*')",
    "SELECT count(*) FROM read_parquet('x')",
    "FROM parquet_scan('x') SELECT 1",
    "SELECT value FROM duckdb_settings()",
    "SELECT getenv('HOME')",
    "SELECT current_setting('home_directory')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('x')",
    "SELECT 'HOME'.getenv()",
    "SELECT count(*) FROM memory.raw.t",
    "TABLE events",
    "DESCRIBE 'x.csv'",
    "SELECT nextval('s')",
    "SELECT write_log('x')",
    "SELECT sleep_ms(1)",
)
# Where a query may stand inside a query.
PLACES = (
    "SELECT ({})",
    "SELECT 1 WHERE 1 IN ({})",
    "SELECT 1 FROM ({})",
    "SELECT 1 FROM raw.t, LATERAL ({}) l",
    "SELECT 1 FROM raw.t JOIN ({}) j ON true",
    "SELECT a FROM raw.t ORDER BY ({})",
    "SELECT a FROM raw.t LIMIT ({})",
    "SELECT a FROM raw.t LIMIT 1 OFFSET ({})",
    "SELECT a FROM raw.t GROUP BY a HAVING EXISTS ({})",
    "SELECT a FROM raw.t GROUP BY GROUPING SETS (({}))",
    "SELECT a FROM raw.t QUALIFY row_number() OVER (PARTITION BY ({})) = 1",
    "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN ({}) PRECEDING AND CURRENT ROW) FROM raw.t",
    "SELECT sum(a) FILTER (WHERE ({}) IS NULL) FROM raw.t",
    "SELECT string_agg(a ORDER BY ({})) FROM raw.t",
    "SELECT CASE ({}) WHEN 1 THEN 2 END",
    "SELECT [({}), 1], {{'a': ({})}}, MAP {{1: ({})}}",
    "SELECT [x FOR x IN [1] IF x = ({})]",
    "SELECT list_transform([1], x -> ({}))",
    "SELECT DISTINCT ON (({})) a FROM raw.t",
    "SELECT * REPLACE (({}) AS a) FROM raw.t",
    "SELECT COLUMNS(c -> c = ({})) FROM raw.t",
    "SELECT a BETWEEN ({}) AND 2, a LIKE ({}), ({})::INT, a[({})] FROM raw.t",
    "SELECT 1 UNION ALL ({})",
    "SELECT 1 EXCEPT ({})",
    "WITH q AS ({}) SELECT 1",
    "WITH q AS MATERIALIZED ({}) SELECT * FROM q",
    "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL ({})) SELECT n FROM q",
    "WITH RECURSIVE q(n) USING KEY (n) AS (SELECT 1 UNION ({})) SELECT n FROM q",
    "VALUES (({}))",
    "SELECT * FROM (VALUES (({}))) v(a)",
    "SELECT * FROM unnest([({})])",
    "SELECT * FROM range(({}))",
    "SELECT * FROM json_each(({}))",
    "SELECT * FROM (PIVOT ({}) ON a IN ('p') USING sum(b))",
    "SELECT * FROM ({}) UNPIVOT (v FOR n IN (a, b))",
    "FROM raw.t SELECT ({})",
    "DESCRIBE {}",
    "SUMMARIZE {}",
    "SELECT * FROM (DESCRIBE {})",
    "SELECT * FROM raw.t TABLESAMPLE 10% WHERE a = ANY ({})",
    "SELECT * FROM raw.t POSITIONAL JOIN ({}) p",
    "SELECT * FROM raw.t ASOF JOIN ({}) p ON t.a >= p.a",
    "SELECT EXISTS ({}), NOT EXISTS ({}), 1 > ALL ({})",
    "SELECT struct_pack(a := ({}))",
    "SELECT ({}) COLLATE nocase",
    "/* x */ SELECT -- y\n ({})",
)
HARMLESS = "SELECT 1"


@cache
def parser() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:")


atexit.register(parser.cache_clear)  # DuckDB complains of what is left at the end of a process


def is_sql(text: str) -> bool:
    try:
        return len(parser().extract_statements(text)) == 1
    except duckdb.Error:
        return False


def wrapped(query: str, places: list[str]) -> str:
    for place in places:
        query = place.replace("{{", "\x01").replace("}}", "\x02").replace("{}", query)
        query = query.replace("\x01", "{").replace("\x02", "}")
    return query


@pytest.mark.parametrize("place", PLACES)
def test_a_place_takes_a_harmless_query_and_no_other(place: str) -> None:
    assert is_sql(wrapped(HARMLESS, [place]))
    referenced_tables(wrapped(HARMLESS, [place]))
    for query in FORBIDDEN:
        if is_sql(wrapped(query, [place])):
            with pytest.raises(WrongUseError):
                referenced_tables(wrapped(query, [place]))


@settings(max_examples=300)
@given(st.sampled_from(FORBIDDEN), st.lists(st.sampled_from(PLACES), max_size=4))
def test_no_wrapping_hides_what_is_forbidden(query: str, places: list[str]) -> None:
    with pytest.raises(WrongUseError):
        referenced_tables(wrapped(query, places))


@settings(max_examples=200)
@given(inputs_of("sql"))
def test_any_text_is_refused_or_planned_as_a_select_over_its_tables(data: bytes) -> None:
    run(sql.__name__, data)


# What a function without a lasting effect may do: tell the time, roll dice, fail, and name its own session.
KNOWN_RESTLESS = frozenset(
    {"current_connection_id", "current_database", "current_date", "current_query_id", "current_schema"}
    | {"current_schemas", "current_transaction_id", "error", "gen_random_uuid", "get_current_time", "now", "random"}
    | {"get_current_timestamp", "today", "transaction_timestamp", "txid_current", "uuid", "uuidv4", "uuidv7"}
    | {"vector_type"}
)


def test_every_function_with_an_effect_is_refused_or_known() -> None:
    """A newer DuckDB may bring another one: whoever raises the version looks at it."""
    with duckdb.connect(":memory:") as connection:
        rows = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type NOT IN ('table', 'pragma')"
            " AND (has_side_effects OR stability <> 'CONSISTENT') AND function_name SIMILAR TO '[a-z_0-9]+'"
        ).fetchall()
    for (name,) in rows:
        if name not in KNOWN_RESTLESS:
            with pytest.raises(WrongUseError, match=name):
                referenced_tables(f"SELECT {name}(1)")


def test_every_table_function_but_the_listed_ones_is_refused() -> None:
    with duckdb.connect(":memory:") as connection:
        rows = connection.execute(
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('table', 'table_macro')"
        ).fetchall()
    accepted = {name for (name,) in rows if is_accepted(f"FROM {name}(1)")}
    assert accepted == {"range", "generate_series", "unnest", "json_each", "json_tree"}


def is_accepted(text: str) -> bool:
    try:
        referenced_tables(text)
    except WrongUseError:
        return False
    return True
