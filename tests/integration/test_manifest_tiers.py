"""Manifests merged by tiers: few of them, each file told of a few times, and nothing about a file is changed by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestWriter
from pyiceberg.table import Table

from lean_ops.lake import manifest_tiers
from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.catalog import Lake
from lean_ops.lake.manifest_tiers import TOGETHER
from lean_ops.model.partitioning import PartitionField, Transform
from lean_ops.model.tables import Column, TableName, TableShape
from lean_ops.settings import load_settings

SHAPE = TableShape((Column("name"),), (PartitionField(Transform.IDENTITY, "name"),))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    yield lake.ensure(TableName("db", "t"), SHAPE)
    lake.catalog.close()


def append(table: Table, *names: str) -> int:
    rows = pa.Table.from_pylist([{"name": name} for name in names], schema=table.schema().as_arrow())
    snapshot = append_files(table, write_files(table, rows), {})
    table.refresh()
    return snapshot


def manifests(table: Table) -> list[int]:
    """How many files each manifest of main tells of."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return sorted(
        (each.added_files_count or 0) + (each.existing_files_count or 0) for each in snapshot.manifests(table.io)
    )


def entries(table: Table) -> dict[str, tuple[ManifestEntryStatus, int | None, int | None]]:
    """What the manifests say of each file, by the name that its rows have."""
    snapshot = table.current_snapshot()
    assert snapshot is not None
    found = [entry for each in snapshot.manifests(table.io) for entry in each.fetch_manifest_entry(table.io)]
    told = {str(entry.data_file.partition[0]): entry for entry in found}
    assert len(told) == len(found)
    return {name: (entry.status, entry.snapshot_id, entry.sequence_number) for name, entry in told.items()}


def test_so_many_that_commits_have_written_become_one_and_not_before(table: Table) -> None:
    snapshots = {f"n{number:02}": append(table, f"n{number:02}") for number in range(TOGETHER - 1)}
    assert manifests(table) == [1] * (TOGETHER - 1)
    snapshots["last"] = append(table, "last")
    assert manifests(table) == [TOGETHER]
    numbers = {snapshot.snapshot_id: snapshot.sequence_number for snapshot in table.metadata.snapshots}
    old, new = ManifestEntryStatus.EXISTING, ManifestEntryStatus.ADDED
    assert entries(table) == {
        name: (new if name == "last" else old, snapshot, numbers[snapshot]) for name, snapshot in snapshots.items()
    }
    assert sorted(table.scan().to_arrow().column("name").to_pylist()) == sorted(snapshots)


def test_each_file_is_told_of_a_few_times_however_many_commits_there_are(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_tiers, "TOGETHER", 4)
    monkeypatch.setattr(manifest_tiers, "_TIERS", (4, 16))
    again: list[str] = []
    existing = ManifestWriter.existing

    def counted(writer: ManifestWriter, entry: ManifestEntry) -> ManifestWriter:
        again.append(entry.data_file.file_path)
        return existing(writer, entry)

    monkeypatch.setattr(ManifestWriter, "existing", counted)
    for number in range(80):
        append(table, f"n{number}")
    assert sum(manifests(table)) == 80
    assert len(manifests(table)) <= 3 + 3 + 80 // 16
    assert max(map(again.count, again)) <= 2


def test_a_table_that_wants_no_merging_has_none(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_tiers, "TOGETHER", 2)
    with table.transaction() as transaction:
        transaction.set_properties({"commit.manifest-merge.enabled": "false"})
    for name in "abc":
        append(table, name)
    assert manifests(table) == [1, 1, 1]
