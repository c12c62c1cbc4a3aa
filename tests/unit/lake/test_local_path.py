from __future__ import annotations

from pathlib import Path

import pytest

from lean_ops.lake.local_path import local_name, local_path
from lean_ops.lake.metadata_file import metadata_path
from lean_ops.model.errors import TerminalError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "50% of a:b" / "metadata.json"
    file.parent.mkdir()
    file.touch()
    return file


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "file:///{}"])
def test_a_file_is_found_however_its_location_is_spelt(file: Path, spelling: str) -> None:
    location = spelling.format(file)
    assert local_path(location) == file
    assert local_name(location) == str(file)
    assert metadata_path("db.events", location) == file


def test_a_location_may_be_percent_encoded(file: Path) -> None:
    assert local_path(file.as_uri()) == file


def test_what_is_not_there_keeps_its_name(file: Path) -> None:
    missing = file.with_name("missing%20too")
    assert local_path(f"file://{missing}") == missing
    with pytest.raises(TerminalError, match=r"db\.events: its metadata file is missing"):
        metadata_path("db.events", f"file://{missing}")


def test_what_is_elsewhere_is_no_local_file() -> None:
    with pytest.raises(TerminalError, match="not a local file"):
        local_path("s3://bucket/warehouse/metadata.json")
