"""Which files of a shared table are a topic's, asked of the manifests."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import ManifestFile

from lean_ops.lake.catalog import Lake
from lean_ops.lake.shared import SharedTables
from lean_ops.lake.topic_files import TopicFiles
from lean_ops.model.tables import PARSE_ERRORS
from lean_ops.settings import load_settings

NOON = datetime(2026, 2, 3, 12, tzinfo=UTC)


def micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    lake.ensure(lake.names.parse_errors, PARSE_ERRORS)
    yield lake
    lake.catalog.close()


def write(lake: Lake, topic: str, *hours: float) -> None:
    rows = [
        {"topic_name": topic, "message_id": f"{topic}{hour}", "publish_time": NOON + timedelta(hours=hour)}
        for hour in hours
    ]
    SharedTables(lake).append_rows(lake.names.parse_errors, rows)


def test_a_table_without_rows_has_no_files(lake: Lake) -> None:
    assert TopicFiles().of_topic(lake.load(lake.names.parse_errors), "a") == []


def test_each_topic_has_its_own_files_and_no_others(lake: Lake) -> None:
    write(lake, "a", 0, 1)
    write(lake, "b", 5)
    write(lake, "a", 7)
    files, table = TopicFiles(), lake.load(lake.names.parse_errors)

    assert sorted(file.rows for file in files.of_topic(table, "a")) == [1, 2]
    assert [file.rows for file in files.of_topic(table, "b")] == [1]
    assert files.of_topic(table, "c") == []
    for file in files.of_topic(table, "a"):
        assert set(pq.read_table(file.path.removeprefix("file://")).column("topic_name").to_pylist()) == {"a"}


def test_a_file_may_hold_what_lies_between_its_times(lake: Lake) -> None:
    write(lake, "a", 0, 2)
    [file] = TopicFiles().of_topic(lake.load(lake.names.parse_errors), "a")
    hour = 3_600_000_000

    assert file.may_hold(micros(NOON), micros(NOON) + 1)
    assert file.may_hold(micros(NOON) + 2 * hour, micros(NOON) + 3 * hour)
    assert not file.may_hold(micros(NOON) - hour, micros(NOON))
    assert not file.may_hold(micros(NOON) + 2 * hour + 1, micros(NOON) + 3 * hour)


def test_a_file_without_times_may_hold_anything(lake: Lake) -> None:
    SharedTables(lake).append_rows(lake.names.parse_errors, [{"topic_name": "a", "message_id": "x"}])
    [file] = TopicFiles().of_topic(lake.load(lake.names.parse_errors), "a")

    assert file.may_hold(0, 1)


def test_a_manifest_is_read_once_and_a_new_one_is_noticed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    fetch = ManifestFile.fetch_manifest_entry

    def counted(manifest: ManifestFile, *how: object, **more: object) -> object:
        read.append(manifest.manifest_path)
        return fetch(manifest, *how, **more)  # type: ignore[arg-type]

    write(lake, "a", 0)
    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", counted)
    files = TopicFiles()
    for _ in range(3):
        files.of_topic(lake.load(lake.names.parse_errors), "a")
    assert len(read) == 1

    monkeypatch.undo()
    write(lake, "a", 1)
    assert sum(file.rows for file in files.of_topic(lake.load(lake.names.parse_errors), "a")) == 2
