"""A clock that was ahead and is set back: the times in a table's logs stay in order."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.snapshots import MetadataLogEntry

from lean_ops.lake.commit_times import in_order
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

DAY_MS = 86_400_000


@pytest.fixture
def services(tmp_path: Path) -> Services:
    services = Services(load_settings({"home": tmp_path / "home"}, environ={}))
    services.lake.ensure_shared()
    return services


def append(services: Services) -> dict[str, Any]:
    """The metadata after one more row."""
    name = services.lake.names.ops("topic_registry")
    services.shared.append_rows(name, [{"topic_name": "events"}])
    location = services.lake.load(name).metadata_location
    return dict(json.loads(Path(location.removeprefix("file://")).read_text()))


def times(metadata: dict[str, Any], log: str) -> list[int]:
    return [entry["timestamp-ms"] for entry in metadata[log]]


def test_after_a_clock_that_was_ahead_no_log_goes_backwards_or_into_the_future(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(services)
    with monkeypatch.context() as ahead:
        real = time.time
        ahead.setattr("pyiceberg.table.snapshots.time.time", lambda: real() + 400 * 86_400)
        in_future = append(services)
    assert in_future["last-updated-ms"] > time.time() * 1000 + 300 * DAY_MS
    back = append(services)
    for log in ("snapshot-log", "metadata-log"):
        assert times(back, log) == sorted(times(back, log))
        assert max(times(back, log)) <= back["last-updated-ms"] <= time.time() * 1000
    assert len(back["snapshot-log"]) == 3
    given = [snapshot["timestamp-ms"] for snapshot in back["snapshots"]]
    assert max(given) == in_future["last-updated-ms"], "the snapshots keep the times they were given"


def test_metadata_in_order_is_left_as_it_is(services: Services) -> None:
    append(services)
    metadata = services.lake.load(services.lake.names.ops("topic_registry")).metadata
    assert in_order(metadata) is metadata
    ahead = MetadataLogEntry(metadata_file="x", timestamp_ms=metadata.last_updated_ms + 1)
    late = metadata.model_copy(update={"metadata_log": [ahead]})
    assert [entry.timestamp_ms for entry in in_order(late).metadata_log] == [metadata.last_updated_ms]
