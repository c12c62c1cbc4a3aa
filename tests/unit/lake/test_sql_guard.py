from __future__ import annotations

import pytest

from lean_ops.lake.sql_guard import referenced_tables
from lean_ops.model.errors import WrongUseError

ACCEPTED = {
    "SELECT 1": [],
    "SELECT 1;": [],
    "  -- a comment\nSELECT 1 /* another; one */": [],
    "VALUES (1, 'a'), (2, 'b')": [],
    "SELECT * FROM (VALUES (1)) t(a)": [],
    "SELECT count(*) FROM raw.events": ["raw.events"],
    'SELECT count(*) FROM RAW."Events"': ["raw.events"],
    "FROM raw.events": ["raw.events"],
    "TABLE raw.events": ["raw.events"],
    "SELECT raw.events.message_id FROM raw.events": ["raw.events"],
    "SELECT * FROM iceberg_raw_db.events_staging e JOIN standardized.events s USING (message_id)": [
        "iceberg_raw_db.events_staging",
        "standardized.events",
    ],
    "SELECT * FROM raw.a UNION ALL SELECT * FROM raw.b EXCEPT SELECT * FROM raw.c": ["raw.a", "raw.b", "raw.c"],
    "SELECT (SELECT max(x) FROM ops.a), EXISTS (FROM ops.b) FROM ops.c WHERE y IN (SELECT z FROM ops.d)": [
        "ops.a",
        "ops.b",
        "ops.c",
        "ops.d",
    ],
    "WITH q AS (SELECT * FROM raw.events) SELECT * FROM q": ["raw.events"],
    "WITH q AS (SELECT 1 AS x), r AS MATERIALIZED (SELECT * FROM Q) SELECT * FROM r, (SELECT * FROM q)": [],
    "WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t": [],
    "SELECT * FROM (WITH inner_one AS (SELECT 1) SELECT * FROM inner_one)": [],
    "SELECT * FROM range(3) r, generate_series(1, 2) g, unnest([1, 2]) u(x), LATERAL (SELECT 1)": [],
    "SELECT * FROM raw.events, json_each(json_payload)": ["raw.events"],
    "SELECT sum(x) OVER (PARTITION BY y ORDER BY z) FROM curated.t QUALIFY row_number() OVER () = 1": ["curated.t"],
    "SELECT * EXCLUDE (a) REPLACE (lower(b) AS b) FROM raw.t": ["raw.t"],
    "SELECT COLUMNS(c -> c LIKE 'm%') FROM raw.t": ["raw.t"],
    "SELECT DISTINCT ON (a) a, b FROM raw.t ORDER BY ALL LIMIT 5 OFFSET 2": ["raw.t"],
    "SELECT a FROM raw.t LIMIT 10%": ["raw.t"],
    "SELECT a, count(*) FROM raw.t GROUP BY GROUPING SETS ((a), ()) HAVING count(*) > 1": ["raw.t"],
    "SELECT * FROM raw.t TABLESAMPLE 10%": ["raw.t"],
    "SELECT * FROM (PIVOT raw.t ON a IN ('p') USING sum(b))": ["raw.t"],
    "UNPIVOT raw.t ON a, b INTO NAME n VALUE v": ["raw.t"],
    "SELECT * FROM raw.x ASOF JOIN raw.y USING (a)": ["raw.x", "raw.y"],
    "SELECT list_transform([1, 2], x -> x + 1), CASE WHEN true THEN 1 END, 'a' || 'b', x ->> '$.a', y COLLATE nocase,"
    " CAST('1' AS INT), DATE '2026-01-01' + INTERVAL 1 DAY, {'a': 1}, MAP {'k': 1}, [1][1], x BETWEEN 1 AND 2, now(),"
    " epoch_ms(1), strftime(z, '%Y'), regexp_matches(x, 'a'), typeof(1), pg_typeof(1), uuid(), 5! FROM raw.t": [
        "raw.t"
    ],
    "DESCRIBE raw.events": ["raw.events"],
    "SUMMARIZE raw.events": ["raw.events"],
    "SELECT 'read_csv(''x'')' AS text, \"getenv\" FROM raw.t": ["raw.t"],
}

REFUSED = {
    # not one SELECT
    "": "no statement",
    "-- nothing": "no statement",
    "SELECT 1; SELECT 2": "2 statements",
    "SELECT 1; DROP TABLE x": "2 statements",
    "INSERT INTO raw.t VALUES (1)": "INSERT",
    "UPDATE raw.t SET a = 1": "UPDATE",
    "DELETE FROM raw.t": "DELETE",
    "MERGE INTO raw.t USING raw.s ON a = b WHEN MATCHED THEN DELETE": "MERGE",
    "TRUNCATE raw.t": "DELETE",
    "CREATE TABLE t AS SELECT 1": "CREATE",
    "CREATE VIEW v AS SELECT 1": "CREATE",
    "CREATE SECRET s (TYPE s3)": "CREATE",
    "CREATE MACRO m() AS 1": "CREATE",
    "DROP TABLE raw.t": "DROP",
    "ALTER TABLE raw.t ADD COLUMN x INT": "ALTER",
    "COPY raw.t TO 'out.csv'": "COPY",
    "COPY (SELECT 1) TO '/tmp/x.parquet'": "COPY",
    "COPY raw.t FROM 'in.csv'": "COPY",
    "EXPORT DATABASE 'x'": "EXPORT",
    "IMPORT DATABASE 'x'": "PRAGMA",
    "ATTACH 'x.db'": "ATTACH",
    "DETACH memory": "DETACH",
    "USE other": "SET",
    "INSTALL httpfs": "LOAD",
    "LOAD httpfs": "LOAD",
    "PRAGMA version": "PRAGMA",
    "SET threads = 1": "SET",
    "RESET threads": "SET",
    "SET VARIABLE x = 1": "SET",
    "CALL pragma_version()": "CALL",
    "EXPLAIN SELECT 1": "EXPLAIN",
    "EXPLAIN ANALYZE SELECT 1": "EXPLAIN",
    "PREPARE p AS SELECT 1": "PREPARE",
    "EXECUTE p": "EXECUTE",
    "BEGIN": "TRANSACTION",
    "CHECKPOINT": "CALL",
    "VACUUM": "VACUUM",
    "PIVOT raw.t ON a USING sum(b)": "a PIVOT",
    # a SELECT on the outside only
    "WITH d AS (DELETE FROM raw.t RETURNING *) SELECT * FROM d": "DELETE inside",
    "WITH d AS (INSERT INTO raw.t VALUES (1) RETURNING *) SELECT * FROM d": "INSERT inside",
    "WITH d AS (UPDATE raw.t SET a = 1 RETURNING *) SELECT * FROM d": "UPDATE inside",
    "SELECT * FROM (SHOW TABLES)": "SHOW",
    "SHOW TABLES": "SHOW",
    "SHOW ALL TABLES": "SHOW",
    "SELECT ?": "a parameter",
    "SELECT $name": "a parameter",
    # files and other tables
    "SELECT * FROM 'file.parquet'": "'file.parquet'",
    'SELECT * FROM "/etc/passwd"': "'/etc/passwd'",
    "SELECT * FROM 's3://bucket/x.parquet'": "s3://bucket/x.parquet",
    "SELECT * FROM events": "'events'",
    "SELECT * FROM lean_ops.raw.events": "'lean_ops.raw.events'",
    "SELECT * FROM memory.main.x": "'memory.main.x'",
    "SELECT * FROM duckdb_settings": "'duckdb_settings'",
    "SELECT * FROM sqlite_master": "'sqlite_master'",
    "DESCRIBE events": "'events'",
    "DESCRIBE 'file.parquet'": "'file.parquet'",
    "SUMMARIZE 'file.parquet'": "'file.parquet'",
    # a WITH name where it does not reach
    "SELECT * FROM (WITH q AS (SELECT 1) SELECT * FROM q), q": "'q'",
    "WITH a AS (SELECT * FROM 'b.csv'), \"b.csv\" AS (SELECT 1) SELECT * FROM a": "'b.csv'",
    'WITH "x.csv" AS (SELECT * FROM \'x.csv\') SELECT * FROM "x.csv"': "'x.csv'",
    # table functions
    "SELECT * FROM read_csv('x')": "'read_csv'",
    "SELECT * FROM read_text('/etc/passwd')": "'read_text'",
    "SELECT * FROM READ_BLOB('x')": "'read_blob'",
    "SELECT * FROM read_parquet('x')": "'read_parquet'",
    "SELECT * FROM read_json('x')": "'read_json'",
    "SELECT * FROM read_duckdb('x')": "'read_duckdb'",
    "SELECT * FROM parquet_scan('x')": "'parquet_scan'",
    "SELECT * FROM parquet_metadata('x')": "'parquet_metadata'",
    "SELECT * FROM parquet_schema('x')": "'parquet_schema'",
    "SELECT * FROM sniff_csv('x')": "'sniff_csv'",
    "SELECT * FROM glob('*')": "'glob'",
    "SELECT * FROM query('DROP TABLE x')": "'query'",
    "SELECT * FROM query_table('raw.t')": "'query_table'",
    "SELECT * FROM duckdb_settings()": "'duckdb_settings'",
    "SELECT * FROM duckdb_secrets()": "'duckdb_secrets'",
    "SELECT * FROM duckdb_views()": "'duckdb_views'",
    "SELECT * FROM pragma_database_size()": "'pragma_database_size'",
    "SELECT * FROM json_execute_serialized_sql('x')": "'json_execute_serialized_sql'",
    "SELECT * FROM which_secret('x', 's3')": "'which_secret'",
    "SELECT * FROM system.main.read_csv('x')": "'read_csv'",
    "SELECT * FROM raw.t, LATERAL (SELECT * FROM read_csv(t.a))": "'read_csv'",
    "SELECT (SELECT content FROM read_text('x'))": "'read_text'",
    "SELECT 1 WHERE EXISTS (SELECT * FROM glob('*'))": "'glob'",
    "SELECT 1 ORDER BY (SELECT max(file) FROM glob('*'))": "'glob'",
    "SELECT 1 LIMIT (SELECT count(*) FROM glob('*'))": "'glob'",
    "WITH q AS (SELECT * FROM glob('*')) SELECT 1": "'glob'",
    "SELECT 1 UNION ALL SELECT count(*) FROM glob('*')": "'glob'",
    "VALUES ((SELECT max(file) FROM glob('*')))": "'glob'",
    "SELECT * FROM enable_logging()": "'enable_logging'",
    "SELECT * FROM force_checkpoint()": "'force_checkpoint'",
    # scalar functions
    "SELECT getenv('HOME')": "'getenv'",
    "SELECT 'HOME'.getenv()": "'getenv'",
    "SELECT system.main.getenv('HOME')": "'getenv'",
    "SELECT GetEnv('HOME')": "'getenv'",
    "SELECT current_setting('allowed_paths')": "'current_setting'",
    "SELECT getvariable('x')": "'getvariable'",
    "SELECT nextval('s')": "'nextval'",
    "SELECT setseed(0.5)": "'setseed'",
    "SELECT write_log('x')": "'write_log'",
    "SELECT json_serialize_plan('SELECT * FROM read_csv(''x'')')": "'json_serialize_plan'",
    "SELECT pg_get_viewdef(1)": "'pg_get_viewdef'",
    "SELECT list_transform([1], x -> getenv('a'))": "'getenv'",
    "SELECT COLUMNS(c -> getenv('x') = c) FROM raw.t": "'getenv'",
    "SELECT * REPLACE (getenv('a') AS b) FROM raw.t": "'getenv'",
    "SELECT sum(x) OVER (PARTITION BY getenv('q')) FROM raw.t": "'getenv'",
    "SELECT sum(x) FILTER (WHERE getenv('q') = '1') FROM raw.t": "'getenv'",
    "SELECT CASE WHEN getenv('q') = '1' THEN 1 END": "'getenv'",
    "SELECT a FROM raw.t GROUP BY a HAVING getenv('q') = '1'": "'getenv'",
    "SELECT * FROM raw.x JOIN raw.y ON getenv('q') = x.a": "'getenv'",
    "SELECT DISTINCT ON (getenv('q')) a FROM raw.t": "'getenv'",
}


@pytest.mark.parametrize(("sql", "tables"), ACCEPTED.items())
def test_a_select_over_our_tables_passes_and_says_which(sql: str, tables: list[str]) -> None:
    assert [str(reference) for reference in referenced_tables(sql)] == tables


@pytest.mark.parametrize(("sql", "found"), REFUSED.items())
def test_anything_else_is_refused_with_what_was_found(sql: str, found: str) -> None:
    with pytest.raises(WrongUseError) as refused:
        referenced_tables(sql)
    assert found in (refused.value.found or "")
    assert "one SELECT" in (refused.value.expected or "")


def test_text_that_is_no_sql_is_refused_with_the_parsers_words() -> None:
    with pytest.raises(WrongUseError, match=r'syntax error at or near "SELEC"'):
        referenced_tables("SELEC 1")


def test_a_statement_nested_too_deeply_is_refused() -> None:
    with pytest.raises(WrongUseError, match=r"nested|depth|deep"):
        referenced_tables(f"SELECT {'(' * 3000}1{')' * 3000}")
    with pytest.raises(WrongUseError, match=r"nested|depth|deep"):
        referenced_tables(f"SELECT {'abs(' * 900}1{')' * 900}")
    with pytest.raises(WrongUseError, match=r"nested|depth|deep"):
        referenced_tables("SELECT " + " + ".join("1" for _ in range(5000)))


def test_an_unqualified_name_is_told_its_zones() -> None:
    with pytest.raises(WrongUseError) as refused:
        referenced_tables("SELECT * FROM events")
    assert refused.value.remedy == "Name its zone: raw.events, standardized.events, curated.events or ops.events."
