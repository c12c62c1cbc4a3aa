"""`query` over real Iceberg tables, written through pyiceberg."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lean_ops.lake import duck
from lean_ops.lake.catalog import Lake
from lean_ops.lake.duck import rows, views_of
from lean_ops.lake.query import QuerySession
from lean_ops.lake.table_files import open_table, plan
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.model.tables import CURATED_ERRORS, OPS_TABLES
from lean_ops.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyiceberg.table import Table

DAY = datetime(2026, 2, 3, tzinfo=UTC)


def make_lake(home: Path, prefix: str = "") -> Lake:
    return Lake(load_settings({"home": home, "database_prefix": prefix}, environ={}).settings)


def append(table: Table, *given: Mapping[str, Any]) -> None:
    table.append(pa.Table.from_pylist([dict(row) for row in given], schema=table.schema().as_arrow()))


def event(message_id: str, hour: int = 10, **values: Any) -> dict[str, Any]:
    return {"topic_name": "events", "message_id": message_id, "publish_time": DAY.replace(hour=hour), **values}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return make_lake(tmp_path / "a [home] with 'odd' *letters*")


@pytest.fixture
def session(lake: Lake) -> QuerySession:
    return QuerySession(lake.names, lake.file)


def test_every_name_of_a_table_leads_to_it(lake: Lake, session: QuerySession) -> None:
    append(lake.ensure_raw("events"), event("m1", json_payload='{"a":1}'))
    for name in (
        "raw.events",
        "raw.events_staging",
        "RAW.Events",
        "iceberg_raw_db.events",
        "iceberg_raw_db.events_staging",
    ):
        assert session.query(f"SELECT message_id, json_payload FROM {name}") == [  # noqa: S608
            {"message_id": "m1", "json_payload": '{"a":1}'}
        ]
    both = "SELECT count(*) AS n FROM raw.events a JOIN iceberg_raw_db.events_staging b USING (message_id)"
    assert session.query(both) == [{"n": 1}]


def test_long_names_work_with_and_without_the_prefix(tmp_path: Path) -> None:
    lake = make_lake(tmp_path, "dev_")
    append(lake.ensure_raw("events"), event("m1"))
    for name in ("raw.events", "iceberg_raw_db.events", "dev_iceberg_raw_db.events_staging"):
        assert QuerySession(lake.names, lake.file).query(f"SELECT count(*) AS n FROM {name}") == [{"n": 1}]  # noqa: S608


def test_times_are_utc_lists_are_lists_and_sums_are_integers(lake: Lake, session: QuerySession) -> None:
    at = datetime(2026, 2, 3, 10, 15, 30, 120000, tzinfo=UTC)
    table = lake.ensure(lake.names.curated_errors, CURATED_ERRORS)
    append(table, {"topic_name": "events", "error_fields": ["a", None], "ingestion_ts": 5, "processed_ts": at})
    [row] = session.query(
        "SELECT error_fields, sum(ingestion_ts) AS total, max(processed_ts) AS at, processed_ts::VARCHAR AS text,"
        " DATE '2026-02-03' AS day, 1.10::DECIMAL(5,2) AS price FROM curated.errors GROUP BY ALL"
    )
    assert row == {
        "error_fields": ["a", None],
        "total": 5,
        "at": at,
        "text": "2026-02-03 10:15:30.12+00",
        "day": date(2026, 2, 3),
        "price": Decimal("1.10"),
    }
    assert row["at"].utcoffset().total_seconds() == 0


def test_columns_added_or_renamed_between_files_are_read_by_their_ids(lake: Lake, session: QuerySession) -> None:
    table = lake.ensure_raw("events")
    append(table, event("old", correlation_id="c1"))
    with table.update_schema() as change:
        change.add_column("added", pa_string())
        change.rename_column("correlation_id", "correlation")
        change.delete_column("period_reference")
    with table.update_schema() as change:
        change.add_column("correlation_id", pa_string())  # a new column under an old name must not see old values
    append(table, event("new", correlation="c2", added="x", correlation_id="y"))
    found = session.query(
        "SELECT message_id, correlation, added, correlation_id FROM raw.events ORDER BY message_id DESC"
    )
    assert found == [
        {"message_id": "old", "correlation": "c1", "added": None, "correlation_id": None},
        {"message_id": "new", "correlation": "c2", "added": "x", "correlation_id": "y"},
    ]
    names = [row["column_name"] for row in session.query("DESCRIBE raw.events")]
    assert "period_reference" not in names


def pa_string() -> Any:
    from pyiceberg.types import StringType

    return StringType()


@pytest.mark.parametrize(
    "column",
    [
        "filename",
        "file_row_number",
        "__file",
        "_file",
        "f1",
        "r",
        "select",
        "a b",
        "it's",
        'say "hi"',
        "a.b",
        "ünïcode",
        "x;--",
    ],
)
def test_a_column_may_be_called_anything(lake: Lake, session: QuerySession, column: str) -> None:
    table = lake.ensure_raw("events")
    with table.update_schema() as change:
        change.add_column((column,), pa_string())
    append(table, event("m1", **{column: "va'l\"ue; --"}))
    quoted = column.replace('"', '""')
    assert session.query(f'SELECT message_id, "{quoted}" FROM raw.events') == [  # noqa: S608
        {"message_id": "m1", column: "va'l\"ue; --"}
    ]


def test_a_partition_folder_never_stands_in_for_a_column(lake: Lake, session: QuerySession) -> None:
    append(
        lake.ensure(lake.names.ops("drift_log"), OPS_TABLES["drift_log"]),
        {"topic_name": "a b/%=ü", "kind": "NEW_COLUMN", "detected_at": DAY},
    )
    assert session.query("SELECT topic_name FROM ops.drift_log") == [{"topic_name": "a b/%=ü"}]


def test_an_empty_table_has_its_columns_and_no_rows(lake: Lake, session: QuerySession) -> None:
    lake.ensure_raw("never_written")
    lake.ensure_standardized("empty_snapshot")
    assert session.query("SELECT * FROM raw.never_written") == []
    assert session.query("SELECT count(*) AS n, max(publish_time) AS at FROM standardized.empty_snapshot") == [
        {"n": 0, "at": None}
    ]
    columns = {row["column_name"]: row["column_type"] for row in session.query("DESCRIBE raw.never_written")}
    assert columns["publish_time"] == "TIMESTAMP WITH TIME ZONE"


def test_two_columns_of_one_name_are_both_shown(session: QuerySession) -> None:
    assert session.query("SELECT 1 AS a, 2 AS a, 3 AS a_1") == [{"a": 1, "a_1": 2, "a_1_1": 3}]


def delete_positions(table: Table, positions: Mapping[str, Sequence[int]], file: Path) -> None:
    """Commit a position-delete file, as a merge-on-read writer does; pyiceberg itself only writes data files."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    pairs = [(path, position) for path, numbers in positions.items() for position in numbers]
    pq.write_table(pa.table({"file_path": [p for p, _ in pairs], "pos": [n for _, n in pairs]}), file)
    delete = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{file}",
        file_format=FileFormat.PARQUET,
        partition=Record((DAY - datetime(1970, 1, 1, tzinfo=UTC)).days),
        record_count=len(pairs),
        file_size_in_bytes=file.stat().st_size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=[],
    )
    delete.spec_id = table.spec().spec_id
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as commit:
        commit.append_data_file(delete)


def test_deleted_positions_are_left_out(lake: Lake, session: QuerySession, tmp_path: Path) -> None:
    table = lake.ensure_raw("events")
    append(table, event("a"), event("b"), event("c"))
    append(table, event("d"), event("e"))
    files = {task.file.record_count: task.file.file_path for task in table.scan().plan_files()}
    delete_positions(table, {files[3]: [0, 2], files[2]: [1]}, tmp_path / "deletes.parquet")
    append(table, event("f"))
    ids = "SELECT message_id FROM raw.events ORDER BY 1"
    assert [row["message_id"] for row in session.query(ids)] == ["b", "d", "f"]
    assert [row["message_id"] for row in session.query(f"{ids} LIMIT 1")] == ["b"]
    assert sorted(table.refresh().scan().to_arrow()["message_id"].to_pylist()) == ["b", "d", "f"]


def test_a_table_can_be_read_as_it_was_and_says_who_wrote_each_row(lake: Lake) -> None:
    table = lake.ensure_raw("events")
    written = {}
    for message_id in ("a", "b"):
        append(table, event(message_id))
        written[message_id] = table.current_snapshot().snapshot_id  # type: ignore[union-attr]
    opened = open_table(lake.file.locations("iceberg_raw_db")["events_staging"])
    now, then = plan(opened), plan(opened, snapshot_id=written["a"])
    assert {file.snapshot_id for file in now.data} == set(written.values())
    with views_of({"t": then}) as connection:
        [row] = rows(connection, "SELECT message_id, _file FROM t")
    assert (row["message_id"], row["_file"]) == ("a", then.data[0].path)


def test_latest_shows_the_newest_of_each_key_and_every_row_without_one(lake: Lake, session: QuerySession) -> None:
    append(
        lake.ensure_standardized("events"),
        event("m1", 10, idempotency_key="k", ingestion_ts=1),
        event("m2", 12, idempotency_key="k", ingestion_ts=1),
        event("m3", 12, idempotency_key="k", ingestion_ts=2),
        event("m4", 12, idempotency_key="k", ingestion_ts=2),
        event("m5", 11, idempotency_key="k", ingestion_ts=9),
        event("m6", 10, idempotency_key="other"),
        event("n1", 10),
        event("n2", 10),
        event("n3", 10, idempotency_key=" "),
        event("n4", 10, idempotency_key=" "),
    )
    newest = session.query("SELECT message_id FROM standardized.events_latest ORDER BY 1")
    assert [row["message_id"] for row in newest] == ["m4", "m6", "n1", "n2", "n3", "n4"]
    assert session.query("SELECT count(*) AS n FROM iceberg_standardized_db.events_latest") == [{"n": 6}]


def test_an_unknown_table_lists_near_names(lake: Lake, session: QuerySession) -> None:
    lake.ensure_raw("events")
    with pytest.raises(WrongUseError, match=r"no such table.*expected one like raw\.events"):
        session.query("SELECT * FROM raw.evnts")
    with pytest.raises(WrongUseError, match=r"expected one of raw\.events$"):
        session.query("SELECT * FROM raw.zzz")
    with pytest.raises(WrongUseError, match=r"expected one like raw\.events$"):
        session.query("SELECT * FROM curated.events")
    with pytest.raises(WrongUseError, match=r"There are no tables in ops yet"):
        session.query("SELECT * FROM ops.zzz")
    for schema in ("information_schema", "pg_catalog", "main", "rw"):
        with pytest.raises(WrongUseError, match=r"no such schema.*expected one of raw, standardized, curated, ops"):
            session.query(f"SELECT * FROM {schema}.tables")  # noqa: S608


def test_duckdbs_own_complaint_is_passed_on(lake: Lake, session: QuerySession) -> None:
    lake.ensure_raw("events")
    with pytest.raises(WrongUseError, match=r"mesage_id.*\n.*message_id"):
        session.query("SELECT mesage_id FROM raw.events")
    with pytest.raises(WrongUseError, match=r"Could not convert string 'x'"):
        session.query("SELECT 'x'::INT")


def test_even_sql_that_slips_through_can_open_only_the_planned_files(lake: Lake, tmp_path: Path) -> None:
    import duckdb

    append(lake.ensure_raw("events"), event("a"))
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), other)
    before = sorted(tmp_path.rglob("*"))
    with views_of({"t": plan(open_table(lake.file.locations("iceberg_raw_db")["events_staging"]))}) as connection:
        assert rows(connection, "SELECT count(*) AS n FROM t") == [{"n": 1}]
        for sql in (
            f"SELECT * FROM '{other}'",  # noqa: S608
            f"SELECT * FROM read_text('{other}')",  # noqa: S608
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            f"ATTACH '{tmp_path / 'x.db'}'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET allowed_directories = ['/']",
            "RESET lock_configuration",
            "SELECT * FROM other",  # a Python variable
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(sql)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_is_gone_is_a_fault_and_not_wrong_use(lake: Lake, session: QuerySession) -> None:
    table = lake.ensure_raw("events")
    append(table, event("a"))
    [task] = table.scan().plan_files()
    table.io.delete(task.file.file_path)
    with pytest.raises(TerminalError, match=r"can't be read") as fault:
        session.query("SELECT * FROM raw.events")
    assert not isinstance(fault.value, WrongUseError)


def test_ctrl_c_stops_a_query(session: QuerySession) -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        session.query(
            "SELECT a.range FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 1000003 = 7"
        )
    assert time.monotonic() - started < 60  # it would take days


def test_times_that_python_does_not_know_are_told_in_words(session: QuerySession) -> None:
    plain = "TIMESTAMP '2026-02-03 01:02:03.000004'"
    sql = f"SELECT 'infinity'::TIMESTAMPTZ AS never, {plain} AS plain, NULL::TIMESTAMP AS no"
    assert session.query(sql) == [
        {
            "never": "9223372036854775807 microseconds since 1970",
            "plain": datetime(2026, 2, 3, 1, 2, 3, 4),  # noqa: DTZ001  a column without a zone
            "no": None,
        }
    ]


def test_values_survive_as_json(session: QuerySession) -> None:
    [row] = session.query("SELECT 12345678901234567890123::HUGEINT AS big, [1, NULL] AS list, {'a': 'ü'} AS struct")
    assert (
        json.dumps(row, ensure_ascii=False)
        == '{"big": 12345678901234567890123, "list": [1, null], "struct": {"a": "ü"}}'
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a, 2 AS a",
        'SELECT 1 AS "a", 2 AS "A", 3 AS a_1',
        "SELECT sum(x) AS s, count(*) FROM range(5) t(x)",
        "SELECT 'x' AS t, NULL::VARCHAR AS n, true AS b, 1.5::DOUBLE AS d, 'nan'::DOUBLE AS q",
        "SELECT 9223372036854775807 AS m",
        "SELECT 170141183460469231731687303715884105727::HUGEINT AS h, (-1)::HUGEINT AS g",
        "SELECT chr(128512) AS e, 'a' || chr(10) AS n",
        "SELECT sum(1) AS s WHERE false",
        "SELECT 1 AS n WHERE false",
    ],
)
def test_plain_columns_have_the_values_that_they_have_by_way_of_arrow(sql: str) -> None:
    with duck.connection_to([]) as connection:
        plain = duck.rows(connection, sql)
        by_arrow = duck._plain_rows(connection.sql(sql).to_arrow_table())
    assert repr(plain) == repr(by_arrow)


def test_a_query_of_plain_columns_does_without_arrow() -> None:
    program = (
        "import sys; from lean_ops.lake import duck\n"
        "with duck.connection_to([]) as connection: print(duck.rows(connection, 'SELECT 1 AS n'))\n"
        "print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["[{'n': 1}]", "False", ""]
