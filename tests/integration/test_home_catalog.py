"""A table's metadata is read once for each version of it, and what is kept is never older than the catalog."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.avro.file import AvroFile
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate
from pyiceberg.typedef import Record
from pyiceberg.types import StringType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from lean_ops.lake.append import append_files
from lean_ops.lake.catalog import Lake
from lean_ops.lake.home_catalog import HomeCatalog
from lean_ops.lake.local_path import local_path
from lean_ops.model.errors import TerminalError
from lean_ops.model.tables import PARSE_ERRORS, Column, TableName, TableShape
from lean_ops.settings import load_settings

NAME = TableName("db", "t")
SHAPE = TableShape((Column("name"),), ())

Opener = Callable[[], Lake]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens the home once more, as another process would."""
    lakes: list[Lake] = []

    def open_home() -> Lake:
        lakes.append(Lake(load_settings({"home": tmp_path / "a home with spaces"}, environ={}).settings))
        return lakes[-1]

    yield open_home
    for lake in lakes:
        lake.catalog.close()


@pytest.fixture
def lake(opened: Opener) -> Lake:
    lake = opened()
    lake.ensure(NAME, SHAPE)
    return lake


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The metadata files that are read."""
    read, locations = HomeCatalog._read, list[str]()

    def noted(catalog: HomeCatalog, table: Any, location: str) -> Any:
        locations.append(location)
        return read(catalog, table, location)

    monkeypatch.setattr(HomeCatalog, "_read", noted)
    return locations


def commit(table: Table) -> int:
    """One more snapshot."""
    return append_files(table, [], {})


def newest(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot
    return snapshot.snapshot_id


def ids(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.metadata.snapshots]


def test_a_table_that_did_not_move_is_read_once(opened: Opener, lake: Lake, reads: list[str]) -> None:
    other = opened()
    first = other.load(NAME)
    for _ in range(10):
        again = other.load(NAME)
        assert again.metadata is first.metadata
        assert (again.name(), again.metadata_location) == (first.name(), first.metadata_location)
    assert reads == [lake.load(NAME).metadata_location]


def test_what_was_committed_here_is_not_read_at_all(lake: Lake, reads: list[str]) -> None:
    made = [commit(lake.load(NAME)) for _ in range(5)]
    assert ids(lake.load(NAME)) == made
    assert reads == []


def test_a_commit_of_another_process_is_noticed_and_read_once(opened: Opener, lake: Lake, reads: list[str]) -> None:
    other = opened()
    for _ in range(3):
        made = commit(lake.load(NAME))
        assert newest(other.load(NAME)) == made
        assert newest(other.load(NAME)) == made
    assert len(reads) == 3
    made = commit(other.load(NAME))
    assert newest(lake.load(NAME)) == made
    assert ids(lake.load(NAME)) == ids(other.load(NAME))


def test_of_a_table_that_others_move_one_version_is_kept(opened: Opener, lake: Lake) -> None:
    other = opened()
    for _ in range(5):
        commit(lake.load(NAME))
        other.load(NAME)
    known: Any = other.catalog
    assert len(known._known._kept) == 1


def test_a_commit_on_a_version_that_another_process_has_left_behind_is_refused(opened: Opener, lake: Lake) -> None:
    stale = lake.load(NAME)
    made = commit(opened().load(NAME))
    nothing_yet = AssertRefSnapshotId(ref="main", snapshot_id=None)
    with pytest.raises(CommitFailedException):
        lake.catalog.commit_table(stale, (nothing_yet,), (SetPropertiesUpdate(updates={"mine": "1"}),))
    now = lake.load(NAME)
    assert (newest(now), now.properties.get("mine")) == (made, None)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def overwritten(file: Path) -> None:
    file.write_bytes(b"\0" * file.stat().st_size)


@pytest.mark.parametrize("harm", [cut_off, emptied, overwritten])
def test_a_metadata_file_that_was_damaged_after_it_was_read_is_told_as_damage(
    lake: Lake, harm: Callable[[Path], None]
) -> None:
    commit(lake.load(NAME))
    file = local_path(lake.load(NAME).metadata_location)
    whole = file.read_bytes()
    harm(file)
    with pytest.raises(TerminalError, match=r"db\.t: its metadata file is damaged") as told:
        lake.load(NAME)
    assert file.name in str(told.value)
    with pytest.raises(TerminalError, match="its metadata file is damaged"):
        lake.ensure(NAME, SHAPE)
    file.write_bytes(whole)
    assert len(ids(lake.load(NAME))) == 1


def test_a_metadata_file_that_was_removed_after_it_was_read_is_told_as_missing(lake: Lake) -> None:
    local_path(lake.load(NAME).metadata_location).unlink()
    with pytest.raises(TerminalError, match=r"db\.t: its metadata file is missing"):
        lake.load(NAME)


def test_a_table_that_was_dropped_elsewhere_is_gone_here_too(opened: Opener, lake: Lake) -> None:
    lake.load(NAME)
    opened().catalog.drop_table((NAME.database, NAME.table))
    with pytest.raises(NoSuchTableError):
        lake.catalog.load_table((NAME.database, NAME.table))
    assert not lake.exists(NAME)


def test_a_table_that_was_dropped_and_made_anew_is_the_new_one(opened: Opener, lake: Lake) -> None:
    before = lake.load(NAME).metadata.table_uuid
    other = opened()
    other.catalog.drop_table((NAME.database, NAME.table))
    other.ensure(NAME, SHAPE)
    assert lake.load(NAME).metadata.table_uuid != before


def test_versions_of_a_table_share_their_snapshots(lake: Lake) -> None:
    for _ in range(5):
        commit(lake.load(NAME))
    before = lake.load(NAME).metadata
    commit(lake.load(NAME))
    after = lake.load(NAME).metadata
    assert len(after.snapshots) == 6
    assert all(one is other for one, other in zip(before.snapshots, after.snapshots, strict=False))
    assert copy.deepcopy(after) is not after
    assert copy.deepcopy(after).snapshots[0] is after.snapshots[0]


def test_an_older_version_in_hand_stays_as_it_was_whatever_is_committed(lake: Lake) -> None:
    commit(lake.load(NAME))
    old = lake.load(NAME)
    told = old.metadata.model_dump_json()
    for number in range(3):
        commit(lake.load(NAME))
        lake.load(NAME).manage_snapshots().create_branch(newest(lake.load(NAME)), f"b{number}").commit()
        with lake.load(NAME).update_schema() as update:
            update.add_column(f"more{number}", StringType())
        with lake.load(NAME).transaction() as transaction:
            transaction.set_properties({"mine": str(number)})
    assert old.metadata.model_dump_json() == told
    now = lake.load(NAME)
    assert (len(ids(now)), now.schema().column_names) == (4, ["name", "more0", "more1", "more2"])
    assert now.properties["mine"] == "2"


def test_what_is_kept_is_what_the_file_holds(opened: Opener, lake: Lake) -> None:
    for number in range(3):
        commit(lake.load(NAME))
        with lake.load(NAME).update_schema() as update:
            update.add_column(f"more{number}", StringType(), doc="ü")
    kept, read = lake.load(NAME), opened().load(NAME)
    assert kept.metadata is not read.metadata
    assert kept.metadata == read.metadata
    assert kept.metadata_location == read.metadata_location


def test_a_transaction_that_was_given_up_leaves_no_trace(lake: Lake) -> None:
    table = lake.load(NAME)
    told = table.metadata.model_dump_json()
    transaction = table.transaction()
    transaction.set_properties({"mine": "1"})
    transaction.update_schema().add_column("more", StringType()).commit()
    assert lake.load(NAME).metadata.model_dump_json() == told
    assert table.metadata.model_dump_json() == told


def test_threads_that_commit_and_load_see_every_commit(opened: Opener, lake: Lake) -> None:
    other = opened()

    def work(number: int) -> int:
        mine = (lake, other)[number % 2]
        made = commit(mine.load(NAME))
        assert made in ids(mine.load(NAME))
        return made

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(work, range(12)))
    assert sorted(ids(lake.load(NAME))) == sorted(ids(other.load(NAME))) == sorted(made)


def test_the_schema_of_a_manifest_is_worked_out_once_and_is_each_manifests_own(lake: Lake) -> None:
    by_topic = lake.ensure(TableName("db", "by_topic"), PARSE_ERRORS)
    for table in (lake.load(NAME), by_topic):
        table.append(table.schema().as_arrow().empty_table())
        table.append(pa.Table.from_pylist([{}], schema=table.schema().as_arrow()))

    def schemas(name: TableName) -> list[Schema]:
        table = lake.load(name)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        found = []
        for path in (snapshot.manifest_list, *(one.manifest_path for one in snapshot.manifests(table.io))):
            with AvroFile[Record](table.io.new_input(path)) as file:
                found.append(file.schema)
                text = json.loads(file.header.meta["avro.schema"])
                assert file.schema == AvroSchemaConversion().avro_to_iceberg(text)
        return found

    first, again, other = schemas(NAME), schemas(NAME), schemas(TableName("db", "by_topic"))
    assert all(one is same for one, same in zip(first, again, strict=True))
    assert first[0] is other[0]
    assert first[1] != other[1]


def test_what_another_process_has_committed_is_read_as_it_stands_and_keeps_what_was_known(
    lake: Lake, opened: Opener
) -> None:
    commit(lake.load(NAME))
    before = lake.load(NAME).metadata
    other = opened()
    for _ in range(3):
        commit(other.load(NAME))
    found, anew = lake.load(NAME).metadata, opened().load(NAME).metadata
    assert found == anew
    assert len(found.snapshots) == 4
    assert found.snapshots[0] is before.snapshots[0]
    assert found.schemas[0] is before.schemas[0]
