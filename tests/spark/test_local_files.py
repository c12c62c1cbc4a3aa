"""How Iceberg's Java reads and writes files of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from tests.spark.driver import TopicDriver

from lean_ops.lake.kernel import java_class
from lean_ops.wiring import Services

pytestmark = pytest.mark.spark

ODD = "a b%20c%41#d+e ü"


@pytest.fixture
def files(services: Services) -> Any:
    return java_class(services.sessions.mine(), "files.LocalFileIO")()


def write(file: Any, *parts: bytes) -> int:
    stream = file.createOrOverwrite()
    for part in parts:
        stream.write(bytearray(part))
    position = int(stream.getPos())
    stream.close()
    return position


def rest(stream: Any) -> bytes:
    return bytes(stream.readAllBytes())


@pytest.mark.parametrize("spelling", ["file://{}", "file:{}", "{}"])
def test_a_location_is_taken_as_it_is_written(files: Any, tmp_path: Path, spelling: str) -> None:
    path = tmp_path / ODD / f"{ODD}.parquet"
    location = spelling.format(path)
    assert write(files.newOutputFile(location), b"one", b"two") == 6
    assert path.read_bytes() == b"onetwo"
    found = files.newInputFile(location)
    assert (found.exists(), found.getLength(), found.location()) == (True, 6, location)
    assert [each.name for each in path.parent.iterdir()] == [path.name]  # no file with checksums beside it
    files.deleteFile(location)
    files.deleteFile(location)
    assert not found.exists()


def test_a_file_is_read_from_any_place(files: Any, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1024
    path = tmp_path / "large"
    path.write_bytes(content)
    stream = files.newInputFile(str(path)).newStream()
    assert (stream.read(), stream.read(), stream.getPos()) == (0, 1, 2)
    for place in (100, 7, 200_000, 65_536, 65_535, len(content) - 1):
        stream.seek(place)
        assert stream.getPos() == place
        assert stream.read() == content[place]
    assert stream.read() == -1
    stream.seek(10)
    assert stream.skip(70_000) == 70_000
    assert bytes(stream.readNBytes(5)) == content[70_010:70_015]
    assert stream.skip(len(content)) == len(content) - 70_015
    stream.seek(3)
    assert rest(stream) == content[3:]
    stream.seek(len(content) + 5)
    assert stream.read() == -1
    stream.close()


def test_what_is_missing_or_in_the_way_is_told(files: Any, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_bytes(b"kept")
    for act, words in (
        (lambda: files.newInputFile(str(tmp_path / "gone")).newStream(), "NotFoundException"),
        (lambda: files.newInputFile(str(tmp_path / "gone")).getLength(), "NotFoundException"),
        (lambda: files.newOutputFile(str(there)).create(), "AlreadyExistsException"),
    ):
        with pytest.raises(Py4JJavaError, match=words):
            act()
    assert there.read_bytes() == b"kept"


def test_a_batch_starts_no_programs_and_leaves_no_checksums(topic: TopicDriver, services: Services) -> None:
    topic.put({"message_id": "m1", "json_payload": '{"a": 1}'}, {"message_id": "m2", "json_payload": "not JSON"})
    topic.run()
    assert list(services.settings.warehouse_dir.rglob("*.crc")) == []
