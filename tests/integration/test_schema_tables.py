"""The tables that schemas ask for, in a real catalog and without Spark: made, evolved with their rows, refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lean_ops.govern.submit import SchemaRefusedError
from lean_ops.model.batch import Zone
from lean_ops.model.curated_layout import CURATED_RULE
from lean_ops.model.errors import TerminalError
from lean_ops.model.problem import Problem
from lean_ops.model.registry import Gate
from lean_ops.model.schema import Schema, parse_schema
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

if TYPE_CHECKING:
    from pyiceberg.table import Table

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
ENVELOPE = [
    ("topic_name", "string", None),
    ("message_id", "string", None),
    ("idempotency_key", "string", None),
    ("period_reference", "string", None),
    ("correlation_id", "string", None),
    ("publish_time", "timestamptz", None),
    ("ingestion_ts", "long", None),
]
AUDIT = [
    ("first_seen_ts", "timestamptz", None),
    ("last_updated_ts", "timestamptz", None),
    ("_schema_version", "string", None),
    ("_batch_id", "string", None),
]


def content(columns: Mapping[str, Any] | None = None, version: str = "1.0.0", **keys: Any) -> bytes:
    base = {"schema_version": version, "table_name": "events", "envelope_columns": {}}
    return json.dumps({**base, "payload_columns": columns or {}, **keys}).encode()


def schema(columns: Mapping[str, Any] | None = None, **keys: Any) -> Schema:
    return parse_schema(content(columns, **keys), "a test's schema")


class Home:
    """A home as its tables are looked at: each look loads them anew."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.services = Services(load_settings({"home": folder, **settings}, environ={}), clock=lambda: NOW)
        self.tables = self.services.schema_tables

    def has(self, zone: Zone) -> bool:
        return self.services.lake.exists(self.services.lake.names.of_zone(zone, "events"))

    def table(self, zone: Zone) -> Table:
        return self.services.lake.load(self.services.lake.names.of_zone(zone, "events"))

    @property
    def curated(self) -> Table:
        return self.table(Zone.CURATED)

    @property
    def files(self) -> list[str]:
        """The metadata files that the catalog points to: another one after each commit."""
        return [self.table(zone).metadata_location for zone in (Zone.STANDARDIZED, Zone.CURATED)]

    def append(self, *rows: Mapping[str, Any]) -> None:
        table = self.curated
        table.append(pa.Table.from_pylist([dict(row) for row in rows], schema=table.schema().as_arrow()))

    def rows(self, *columns: str) -> list[dict[str, Any]]:
        """The Curated rows by their key."""
        rows = self.curated.scan(selected_fields=("idempotency_key", *columns)).to_arrow().to_pylist()
        return sorted(rows, key=lambda row: str(row["idempotency_key"]))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home")


def columns_of(table: Table) -> list[tuple[str, str, str | None]]:
    assert not any(field.required for field in table.schema().fields)
    return [(field.name, str(field.field_type), field.doc or None) for field in table.schema().fields]


def layout_of(table: Table) -> list[tuple[str, str, str]]:
    """The table's partition fields: column, transform and name."""
    column = table.schema().find_column_name
    return [(str(column(field.source_id)), str(field.transform), field.name) for field in table.spec().fields]


def bucket(number: int) -> tuple[str, str, str]:
    return ("idempotency_key", f"bucket[{number}]", f"idempotency_key_bucket_{number}")


# new tables


def test_a_standardized_table_is_made_with_the_columns_that_every_topic_has(home: Home) -> None:
    home.tables.ensure(schema())
    table = home.table(Zone.STANDARDIZED)
    assert columns_of(table) == [*ENVELOPE, ("_extra", "string", None), ("_batch_id", "string", None)]
    assert layout_of(table) == [("publish_time", "day", "publish_time_day")]


def test_a_curated_table_is_made_with_the_schemas_columns_types_and_descriptions(home: Home) -> None:
    columns = {
        "note": {"description": "what was said"},
        "steps": {"type": "INT", "description": "how many"},
        "total": {"type": "BIGINT"},
        "ratio": {"type": "DOUBLE"},
        "amount": {"type": "DECIMAL(10, 2)"},
        "active": {"type": "BOOLEAN"},
        "born": {"type": "DATE"},
        "seen": {"type": "TIMESTAMP"},
    }
    home.tables.ensure(schema(columns))
    payload = [
        ("note", "string", "what was said"),
        ("steps", "int", "how many"),
        ("total", "long", None),
        ("ratio", "double", None),
        ("amount", "decimal(10, 2)", None),
        ("active", "boolean", None),
        ("born", "date", None),
        ("seen", "timestamptz", None),
    ]
    assert columns_of(home.curated) == [*ENVELOPE, *payload, *AUDIT]


def test_a_curated_table_takes_corrections_without_rewriting_files(home: Home) -> None:
    home.tables.ensure(schema())
    properties = home.curated.properties
    modes = {name: properties[f"write.{name}.mode"] for name in ("merge", "update", "delete")}
    assert modes == dict.fromkeys(("merge", "update", "delete"), "merge-on-read")
    assert properties["write.merge.distribution-mode"] == "hash"
    assert properties["write.parquet.compression-codec"] == "zstd"
    assert home.curated.format_version == 2


def test_new_tables_have_an_empty_snapshot_for_branches_to_start_from(home: Home) -> None:
    home.tables.ensure(schema())
    for zone in (Zone.STANDARDIZED, Zone.CURATED):
        [snapshot] = home.table(zone).snapshots()
        assert snapshot.summary is not None
        assert snapshot.summary["total-records"] == "0"


def test_a_curated_table_is_not_partitioned_unless_somebody_asks(home: Home) -> None:
    home.tables.ensure(schema())
    assert layout_of(home.curated) == []


def test_the_setting_lays_new_curated_tables_out_by_key(tmp_path: Path) -> None:
    home = Home(tmp_path, curated_buckets=8)
    home.tables.ensure(schema())
    assert layout_of(home.curated) == [bucket(8)]


@pytest.mark.parametrize(
    ("partitioning", "layout"),
    [
        ([], []),
        (["bucket(16, idempotency_key)"], [bucket(16)]),
        (
            ["month(seen)", "note", "truncate(4, note)", "bucket(2, steps)"],
            [
                ("seen", "month", "seen_month"),
                ("note", "identity", "note"),
                ("note", "truncate[4]", "note_truncate_4"),
                ("steps", "bucket[2]", "steps_bucket_2"),
            ],
        ),
    ],
    ids=["none", "by key", "by several columns"],
)
@pytest.mark.parametrize("buckets", [0, 8])
def test_a_schemas_own_partitioning_goes_before_the_setting(
    tmp_path: Path, buckets: int, partitioning: list[str], layout: list[tuple[str, str, str]]
) -> None:
    home = Home(tmp_path, curated_buckets=buckets)
    columns = {"seen": {"type": "TIMESTAMP"}, "note": {}, "steps": {"type": "INT"}}
    home.tables.ensure(schema(columns, partitioning=partitioning))
    assert layout_of(home.curated) == layout


def test_a_schemas_table_properties_go_before_the_usual_ones(home: Home) -> None:
    asked = {"write.parquet.compression-codec": "snappy", "read.split.target-size": "1000"}
    home.tables.ensure(schema(table_properties=asked))
    assert asked.items() <= home.curated.properties.items()
    assert home.curated.properties["write.merge.mode"] == "merge-on-read"


def test_a_schema_that_ends_in_standardized_makes_no_curated_table(home: Home) -> None:
    home.tables.ensure(schema(zones=["standardized"]))
    assert (home.has(Zone.STANDARDIZED), home.has(Zone.CURATED)) == (True, False)


def test_a_zone_that_a_later_version_adds_gets_its_table(home: Home) -> None:
    home.tables.ensure(schema(zones=["standardized"]))
    home.tables.ensure(schema(version="1.1.0"))
    assert columns_of(home.curated) == [*ENVELOPE, *AUDIT]


# later versions


FIRST = {"steps": {"type": "INT", "description": "how many"}, "amount": {"type": "DECIMAL(5, 2)"}, "note": {}}
WIDER = {
    "steps": {"type": "BIGINT", "description": "how many there were"},
    "amount": {"type": "DECIMAL(12, 2)"},
    "note": {"description": "what was said"},
    "born": {"type": "DATE", "description": "when"},
}


def test_a_later_version_adds_widens_and_describes_in_place_and_loses_no_row(home: Home) -> None:
    home.tables.ensure(schema(FIRST))
    home.append({"idempotency_key": "a", "steps": 7, "amount": Decimal("1.25"), "note": "old"})
    before = home.curated
    home.tables.ensure(schema(WIDER, version="1.1.0"))
    after = home.curated
    assert columns_of(after) == [
        *ENVELOPE,
        ("steps", "long", "how many there were"),
        ("amount", "decimal(12, 2)", None),
        ("note", "string", "what was said"),
        *AUDIT,
        ("born", "date", "when"),
    ]
    assert after.metadata.table_uuid == before.metadata.table_uuid
    assert after.current_snapshot() == before.current_snapshot(), "not a row was written again"
    wide = {"steps": 2**40, "amount": Decimal("1234567890.12"), "note": "new", "born": date(2026, 2, 3)}
    home.append({"idempotency_key": "b", **wide})
    assert home.rows(*WIDER) == [
        {"idempotency_key": "a", "steps": 7, "amount": Decimal("1.25"), "note": "old", "born": None},
        {"idempotency_key": "b", **wide},
    ]


def test_a_later_version_changes_its_columns_in_one_commit(home: Home) -> None:
    home.tables.ensure(schema(FIRST))
    before = len(home.curated.metadata.metadata_log)
    home.tables.ensure(schema(WIDER, version="1.1.0"))
    assert len(home.curated.metadata.metadata_log) == before + 1


LAYOUTS: list[tuple[list[str], list[tuple[str, str, str]]]] = [
    (["bucket(16, idempotency_key)"], [bucket(16)]),
    (["bucket(8, idempotency_key)"], [bucket(8)]),
    (["day(publish_time)"], [("publish_time", "day", "publish_time_day")]),
    (["month(publish_time)"], [("publish_time", "month", "publish_time_month")]),
    (["day(publish_time)"], [("publish_time", "day", "publish_time_day")]),
    ([], []),
    (["note"], [("note", "identity", "note")]),
    (["note", "bucket(8, idempotency_key)"], [("note", "identity", "note"), bucket(8)]),
]


def test_a_later_layout_holds_for_new_rows_and_the_old_ones_are_still_read(home: Home) -> None:
    home.tables.ensure(schema(FIRST, partitioning=["bucket(8, idempotency_key)"]))
    keys = ["key 0"]
    home.append({"idempotency_key": "key 0", "publish_time": NOW, "note": "x"})
    for number, (partitioning, layout) in enumerate(LAYOUTS, start=1):
        home.tables.ensure(schema(FIRST, version=f"1.{number}.0", partitioning=partitioning))
        assert layout_of(home.curated) == layout
        keys.append(f"key {number}")
        home.append({"idempotency_key": keys[-1], "publish_time": NOW, "note": "x"})
        assert [row["idempotency_key"] for row in home.rows()] == keys


def test_a_version_that_says_nothing_of_partitioning_leaves_the_layout(tmp_path: Path) -> None:
    Home(tmp_path).tables.ensure(schema(partitioning=["bucket(8, idempotency_key)"]))
    home = Home(tmp_path, curated_buckets=16)
    home.tables.ensure(schema({"note": {}}, version="1.1.0"))
    assert layout_of(home.curated) == [bucket(8)]


def test_a_setting_that_came_later_leaves_the_tables_that_are_there(tmp_path: Path) -> None:
    Home(tmp_path).tables.ensure(schema())
    home = Home(tmp_path, curated_buckets=16)
    home.tables.ensure(schema({"note": {}}, version="1.1.0"))
    assert layout_of(home.curated) == []


def test_a_partition_column_may_be_widened(home: Home) -> None:
    keys = {"partitioning": ["bucket(4, steps)", "truncate(10, amount)"]}
    home.tables.ensure(schema(FIRST, **keys))
    home.append({"idempotency_key": "a", "steps": 7, "amount": Decimal("1.25")})
    home.tables.ensure(schema(WIDER, version="1.1.0", **keys))
    home.append({"idempotency_key": "b", "steps": 2**40, "amount": Decimal("1234567890.12")})
    assert [row["steps"] for row in home.rows("steps")] == [7, 2**40]


def test_later_table_properties_are_set_beside_those_that_are_there(home: Home) -> None:
    home.tables.ensure(schema(table_properties={"read.split.target-size": "1000"}))
    with home.curated.transaction() as transaction:
        transaction.set_properties({"lean-ops.last-batch": "a batch's books"})
    later = {"read.split.target-size": "2000", "write.parquet.compression-codec": "snappy"}
    home.tables.ensure(schema(version="1.1.0", table_properties=later))
    expected = {**later, "lean-ops.last-batch": "a batch's books", "write.merge.mode": "merge-on-read"}
    assert expected.items() <= home.curated.properties.items()


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"columns": WIDER},
        {"columns": FIRST, "partitioning": ["bucket(16, idempotency_key)", "note"]},
        {"table_properties": {"read.split.target-size": "1000"}},
        {"columns": WIDER, "partitioning": [], "table_properties": {}},
    ],
    ids=["plain", "columns", "layout", "properties", "nothing asked"],
)
def test_what_is_as_it_should_be_is_left_alone(tmp_path: Path, keys: dict[str, Any]) -> None:
    home = Home(tmp_path)
    home.tables.ensure(schema(**keys))
    files = home.files
    home.tables.ensure(schema(**keys))
    Home(tmp_path).tables.ensure(schema(**keys))
    assert home.files == files


def test_a_table_that_was_brought_up_to_date_is_left_alone_too(home: Home) -> None:
    home.tables.ensure(schema(FIRST, partitioning=["bucket(8, idempotency_key)"]))
    later = schema(WIDER, version="1.1.0", partitioning=["bucket(16, idempotency_key)"])
    home.tables.ensure(later)
    files = home.files
    home.tables.ensure(later)
    assert home.files == files


# tables in the way


def test_nothing_is_in_the_way_where_no_table_is_and_asking_makes_none(home: Home) -> None:
    assert list(home.tables.problems(schema(FIRST))) == []
    assert (home.has(Zone.STANDARDIZED), home.has(Zone.CURATED)) == (False, False)


def test_what_can_be_evolved_is_not_in_the_way(home: Home) -> None:
    home.tables.ensure(schema(FIRST))
    files = home.files
    assert list(home.tables.problems(schema(WIDER, version="1.1.0"))) == []
    assert home.files == files


@pytest.mark.parametrize(
    ("there", "found", "wanted"),
    [
        ("BIGINT", "BIGINT", "STRING"),
        ("BIGINT", "BIGINT", "INT"),
        ("STRING", "STRING", "DOUBLE"),
        ("DECIMAL(10, 2)", "DECIMAL(10,2)", "DECIMAL(9,2)"),
        ("DECIMAL(10, 2)", "DECIMAL(10,2)", "DECIMAL(12,3)"),
        ("TIMESTAMP", "TIMESTAMP", "DATE"),
    ],
)
def test_a_column_of_another_type_is_a_problem_and_the_table_stays_as_it_is(
    home: Home, there: str, found: str, wanted: str
) -> None:
    home.tables.ensure(schema({"value": {"type": there}}))
    files = home.files
    other = schema({"value": {"type": wanted}, "note": {}}, version="2.0.0", partitioning=["note"])
    message = "iceberg_curated_db.events has a column of this name and another type"
    assert list(home.tables.problems(other)) == [Problem(("payload_columns", "value", "type"), message, wanted, found)]
    with pytest.raises(TerminalError, match="the table's column has another type than the schema says") as told:
        home.tables.ensure(other)
    assert told.value.where == "iceberg_curated_db.events, column 'value'"
    assert (told.value.found, told.value.expected) == (found, wanted)
    assert home.files == files


def test_a_curated_table_is_in_nobodys_way_if_the_schema_ends_in_standardized(home: Home) -> None:
    home.tables.ensure(schema({"value": {"type": "BIGINT"}}))
    files = home.files
    other = schema({"value": {}}, version="2.0.0", zones=["standardized"])
    assert list(home.tables.problems(other)) == []
    home.tables.ensure(other)
    assert home.files == files


# at the desk where schemas are handed in


def submit(home: Home, file: bytes) -> None:
    home.services.submissions.submit("events", file, submitted_by="ann", now=NOW)


def test_a_submitted_schema_has_its_tables_and_an_open_gate(home: Home) -> None:
    submit(home, content(FIRST))
    assert [name for name, _, _ in columns_of(home.curated)[7:10]] == ["steps", "amount", "note"]
    assert home.services.gate.gates() == {"events": Gate(True, "schema 1.0.0", "1.0.0", curated=True)}
    submit(home, content(WIDER, version="1.1.0"))
    assert columns_of(home.curated)[7][:2] == ("steps", "long")


def test_a_submitted_schema_that_a_table_is_in_the_way_of_is_refused_and_changes_no_table(home: Home) -> None:
    home.tables.ensure(schema({"value": {"type": "BIGINT"}}))
    files = home.files
    with pytest.raises(SchemaRefusedError, match="has a column of this name and another type; found STRING"):
        submit(home, content({"value": {}}))
    assert home.files == files
    assert not home.services.gate.gates()["events"].open


def test_a_batch_of_an_older_version_takes_the_table_as_it_is(home: Home) -> None:
    older = schema(FIRST, partitioning=["bucket(8, idempotency_key)"])
    home.tables.ensure(older)
    home.tables.ensure(schema(WIDER, version="1.1.0", partitioning=["bucket(16, idempotency_key)"]))
    files = home.files
    assert home.tables.curated(older).metadata_location == files[1]
    assert home.files == files


def test_a_description_that_is_taken_back_leaves_the_table(home: Home) -> None:
    home.tables.ensure(schema({"note": {"description": "x"}}))
    home.tables.ensure(schema({"note": {}}, version="1.1.0"))
    assert ("note", "string", None) in columns_of(home.curated)
    files = home.files
    home.tables.ensure(schema({"note": {}}, version="1.2.0"))
    assert home.files == files


def test_a_column_named_as_the_partition_is_a_problem(tmp_path: Path) -> None:
    home = Home(tmp_path, curated_buckets=4)
    (problem,) = home.tables.problems(schema({"idempotency_key_bucket_4": {}}))
    assert problem.keys == ("payload_columns", "idempotency_key_bucket_4")
    assert problem.message == "is the name of a partition of the Curated table"


@pytest.mark.parametrize("buckets", CURATED_RULE.steps)
def test_the_name_of_a_layout_that_a_table_may_grow_into_is_taken(home: Home, buckets: int) -> None:
    name = f"idempotency_key_bucket_{buckets}"
    assert [problem.keys for problem in home.tables.problems(schema({name: {}}))] == [("payload_columns", name)]


def test_a_column_named_as_an_earlier_partition_is_a_problem(home: Home) -> None:
    home.tables.ensure(schema({"n": {}}, partitioning=["bucket(8, n)"]))
    home.tables.ensure(schema({"n": {}}, version="1.1.0", partitioning=[]))
    later = schema({"n": {}, "n_bucket_8": {}}, version="1.2.0", partitioning=[])
    assert [problem.keys for problem in home.tables.problems(later)] == [("payload_columns", "n_bucket_8")]
