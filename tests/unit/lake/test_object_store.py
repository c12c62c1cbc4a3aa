from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lean_ops.lake import object_store
from lean_ops.lake.metadata_file import is_object
from lean_ops.lake.object_store import Copies, io_properties
from lean_ops.model.errors import TerminalError, TransientError, WrongUseError


class Store:
    """An object store in memory, as pyiceberg's file layer sees one; counts what is opened."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self.objects = dict(objects)
        self.opened: list[str] = []
        self.fault: OSError | None = None

    def new_input(self, location: str) -> Any:
        store = self

        class Input:
            def __len__(self) -> int:
                return len(store.content(location))

            def open(self) -> Any:
                import io

                store.opened.append(location)
                return io.BytesIO(store.content(location))

        return Input()

    def content(self, location: str) -> bytes:
        if self.fault is not None:
            raise self.fault
        if location not in self.objects:
            raise FileNotFoundError(location)
        return self.objects[location]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store({"s3://lake/a.parquet": b"aaa", "s3://lake/b.parquet": b"bb"})
    monkeypatch.setattr(object_store, "_io", lambda: store)
    return store


@pytest.mark.parametrize("location", ["s3://b/k", "s3a://b/k", "s3n://b/k"])
def test_locations_of_a_store_are_told_from_files(location: str) -> None:
    assert is_object(location)
    assert not is_object(location.replace("://", "_"))
    assert not is_object(f"file:///{location}")


def test_the_store_is_reached_as_awss_own_libraries_reach_it() -> None:
    found = io_properties(
        {"AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": "http://x", "AWS_ENDPOINT_URL_S3": "http://y"}
    )
    assert (found["s3.region"], found["s3.endpoint"]) == ("eu-central-1", "http://y")
    assert float(found["s3.connect-timeout"]) > 0
    assert float(found["s3.request-timeout"]) > 0
    assert "s3.endpoint" not in io_properties({"AWS_DEFAULT_REGION": "eu-central-1"})


def test_without_a_region_nobody_asks_the_network_for_it() -> None:
    with pytest.raises(WrongUseError, match="AWS_REGION"):
        io_properties({})


def test_an_object_is_copied_once_and_under_a_name_of_its_own(store: Store) -> None:
    copies = Copies()
    first, second = (copies.path_of(f"s3://lake/{name}.parquet") for name in "ab")
    assert first != second
    assert not first.exists()
    for _ in range(2):
        copies.fetch([str(first), str(second), str(first), "/no/copy/of/ours"])
    assert (first.read_bytes(), second.read_bytes()) == (b"aaa", b"bb")
    assert sorted(store.opened) == ["s3://lake/a.parquet", "s3://lake/b.parquet"]
    assert sorted(file.name for file in first.parent.iterdir()) == sorted([first.name, second.name])


def test_an_object_that_is_gone_or_a_store_that_does_not_answer_may_be_asked_again(store: Store) -> None:
    copies = Copies()
    gone = copies.path_of("s3://lake/gone.parquet")
    with pytest.raises(TransientError, match=r"s3://lake/gone\.parquet"):
        copies.fetch([str(gone)])
    store.fault = OSError("AWS Error NETWORK_CONNECTION")
    with pytest.raises(TransientError, match="NETWORK_CONNECTION"):
        copies.fetch([str(copies.path_of("s3://lake/a.parquet"))])
    assert list(gone.parent.iterdir()) == []


def test_more_than_the_disk_holds_is_not_begun(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_LEFT_FREE", 2**62)
    copies = Copies()
    path = copies.path_of("s3://lake/a.parquet")
    with pytest.raises(TerminalError, match="Athena"):
        copies.fetch([str(path)])
    assert store.opened == []


def test_copies_go_with_their_keeper(store: Store) -> None:
    assert store is not None
    copies = Copies()
    path: Path = copies.path_of("s3://lake/a.parquet")
    copies.fetch([str(path)])
    assert path.exists()
    copies._folder.cleanup()
    assert not path.parent.exists()
