"""Tables whose files are damaged, whose columns somebody altered, or that somebody dropped: what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType
from tests.integration.ingest_home import TOPIC, Home, bodies

from lean_ops.ingest.intake import StoppedError
from lean_ops.lake.altered import refuse_altered
from lean_ops.lake.damage import find_damage, naming_damage
from lean_ops.lake.local_path import local_path
from lean_ops.model.errors import TerminalError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.take(bodies(3))
    return home


@pytest.fixture
def table(home: Home) -> Table:
    return home.services.lake.load(home.services.lake.names.raw(TOPIC))


def data_file(table: Table) -> Path:
    return local_path(next(iter(table.scan().plan_files())).file.file_path)


def test_a_whole_table_has_no_damage(table: Table) -> None:
    assert find_damage(table) is None


def test_a_data_file_of_another_size_is_damage(table: Table) -> None:
    file = data_file(table)
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-7])
    assert f"found {size - 7} bytes in" in str(find_damage(table))
    assert f"expected {size} bytes" in str(find_damage(table))


def test_a_data_file_that_is_gone_is_damage(table: Table) -> None:
    data_file(table).unlink()
    assert "a file of the table is missing" in str(find_damage(table))


def test_an_error_of_a_table_without_damage_passes_as_it_is(table: Table) -> None:
    with pytest.raises(ZeroDivisionError), naming_damage(lambda: [table]):
        _ = 1 / 0


def test_an_error_of_a_damaged_table_names_the_file(table: Table) -> None:
    data_file(table).unlink()
    with pytest.raises(TerminalError, match="a file of the table is missing") as told, naming_damage(lambda: [table]):
        _ = 1 / 0
    assert isinstance(told.value.__cause__, ZeroDivisionError)


def test_a_column_that_somebody_added_does_no_harm(home: Home, table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("mine", StringType())
    home.take(bodies(2, start=3))
    assert [row["mine"] for row in home.raw] == [None] * 5


def test_a_column_that_somebody_renamed_stops_ingestion_until_the_schema_is_back(home: Home, table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("json_payload", "payload")
    with pytest.raises(
        StoppedError, match="column 'json_payload': the table was altered by hand; found payload string"
    ):
        home.take(bodies(2, start=3))
    with table.refresh().update_schema() as update:
        update.rename_column("payload", "json_payload")
    home.take(bodies(2, start=3))
    home.assert_books_are_right(raw=5, dead=0)


def test_comments_count_only_where_they_are_asked_for(table: Table) -> None:
    with table.update_schema() as update:
        update.update_column("json_payload", doc="mine")
    assert refuse_altered(table) is table
    with pytest.raises(TerminalError, match="with comment 'mine'; expected json_payload string"):
        refuse_altered(table, with_docs=True)


@pytest.mark.parametrize("shared", [False, True])
def test_a_table_that_somebody_dropped_is_not_made_anew(home: Home, shared: bool) -> None:
    lake = home.services.lake
    name = lake.names.ops("reconciliation_log") if shared else lake.names.raw(TOPIC)
    newest = lake.load(name).metadata_location
    lake.catalog.drop_table((name.database, name.table))
    with pytest.raises(TerminalError, match="the table is gone from the catalog"):
        home.take(bodies(2, start=3))
    lake.catalog.register_table((name.database, name.table), newest)
    home.take(bodies(2, start=3))
    home.assert_books_are_right(raw=5, dead=0)


def test_a_table_whose_making_was_interrupted_is_made_again(home: Home) -> None:
    lake = home.services.lake
    lake.ensure_raw("other")  # no commit yet: the first metadata file is all there is
    name = lake.names.raw("other")
    lake.catalog.drop_table((name.database, name.table))
    assert lake.ensure_raw("other").current_snapshot() is None
