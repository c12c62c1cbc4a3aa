from __future__ import annotations

import json

import pytest

from lean_ops.lake import metadata_reader
from lean_ops.lake.metadata_reader import MetadataReader
from lean_ops.model.errors import TerminalError


def content(snapshot: int) -> bytes:
    entry = {"snapshot-id": snapshot, "timestamp-ms": 1, "summary": {"operation": "append", "total-records": "2"}}
    return json.dumps({"snapshots": [entry], "current-snapshot-id": snapshot}).encode()


class Files:
    """Metadata files, and how often each was fetched."""

    def __init__(self) -> None:
        self.fetched: list[str] = []

    def __call__(self, location: str) -> bytes:
        self.fetched.append(location)
        return b"{" if location == "broken" else content(int(location))


def test_a_file_is_fetched_once_and_gives_history_and_outline() -> None:
    files = Files()
    reader = MetadataReader(files)
    for _ in range(2):
        assert reader.history("db.t", "7").head == 7
        assert reader.outline("db.t", "7").rows == 2
    reader.keep()
    assert files.fetched == ["7"]


def test_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_reader, "_KEPT_BYTES", 2 * len(content(1)))
    files = Files()
    reader = MetadataReader(files)
    for location in ("1", "2", "3", "2", "3", "1"):
        reader.history("db.t", location)
    assert files.fetched == ["1", "2", "3", "1"]


def test_a_damaged_file_is_named_and_not_kept() -> None:
    files = Files()
    reader = MetadataReader(files)
    for _ in range(2):
        with pytest.raises(TerminalError, match=r"db\.t.*damaged"):
            reader.outline("db.t", "broken")
    assert files.fetched == ["broken"] * 2
