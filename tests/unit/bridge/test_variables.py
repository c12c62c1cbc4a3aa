from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from lean_ops.aws.objects import MissingObjectError
from lean_ops.bridge.variables import BucketFile, Change, LocalFile, Place, Variables
from lean_ops.model.errors import TerminalError


class MemoryObjects:
    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def put(self, key: str, content: IO[bytes]) -> None:
        self.contents[key] = content.read()

    @contextmanager
    def opened(self, key: str) -> Iterator[IO[bytes]]:
        if key not in self.contents:
            raise MissingObjectError("there is no such object", where=key)
        yield io.BytesIO(self.contents[key])

    def keys(self, prefix: str) -> Iterator[str]:
        return iter(sorted(key for key in self.contents if key.startswith(prefix)))


@pytest.fixture(params=["file", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "file":
        return LocalFile(tmp_path / "deep" / "topics.auto.tfvars.json")
    return BucketFile(MemoryObjects(), "discovery/topics.auto.tfvars.json")


def test_what_is_written_is_read_again(place: Place) -> None:
    assert place.read() is None
    place.write(b"one")
    place.write(b"two")
    assert place.read() == b"two"
    assert place.name.endswith("topics.auto.tfvars.json")


def test_topics_are_sorted_and_only_changes_are_written(place: Place) -> None:
    variables = Variables(place)
    first = variables.change(["b", "a"], ["c"])
    assert first == Change(b'{\n  "topics": [\n    "a",\n    "b",\n    "c"\n  ]\n}\n', ("a", "b", "c"))
    place.write(first.content)
    assert variables.change(["a", "b"], ["a", "b", "d"]) is None
    second = variables.change(["e"], [])
    assert second is not None
    assert second.added == ("e",)


@pytest.mark.parametrize("content", [b"", b"[]", b"topics", b'{"topics": "a"}', b'{"topics": [1]}', b"\xff"])
def test_a_file_of_another_kind_is_left_alone(place: Place, content: bytes) -> None:
    place.write(content)
    with pytest.raises(TerminalError, match="not a file of Terraform variables"):
        Variables(place).change(["a"], [])
    assert place.read() == content


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = LocalFile(tmp_path / "topics.auto.tfvars.json")
    file.write(b"old")

    def fails(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="no room"):
        file.write(b"new")
    assert file.read() == b"old"
