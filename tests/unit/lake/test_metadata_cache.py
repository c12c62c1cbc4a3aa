from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import pytest

from lean_ops.lake import metadata_cache as module
from lean_ops.lake.metadata_cache import MetadataCache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyiceberg.table.metadata import TableMetadata


TABLE = ("db", "t")


def metadata(name: str = "") -> TableMetadata:
    """Stands for what a file holds; the cache never looks into it."""
    return cast("TableMetadata", type("Metadata", (), {"name": name})())


@pytest.fixture
def cache() -> MetadataCache:
    return MetadataCache()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "v1.metadata.json"
    file.write_text('{"format-version": 2}')
    return file


def some_files(folder: Path, count: int, size: int = 10) -> list[str]:
    for number in range(count):
        (folder / f"{number}.json").write_bytes(b"x" * size)
    return [f"file://{folder}/{number}.json" for number in range(count)]


def table(number: int) -> tuple[str, str]:
    return ("db", f"t{number}")


def kept(cache: MetadataCache) -> set[str]:
    """The tables that are known; by peeking, because a look makes an entry young again."""
    return {name for _, name in cache._kept}


def test_what_was_never_put_is_not_known(cache: MetadataCache, file: Path) -> None:
    assert cache.get(TABLE, f"file://{file}") is None


@pytest.mark.parametrize("scheme", ["file://", "file:", ""])
def test_a_file_that_stayed_the_same_gives_the_same_object(cache: MetadataCache, file: Path, scheme: str) -> None:
    known = metadata()
    cache.put(TABLE, f"{scheme}{file}", known)
    assert cache.get(TABLE, f"{scheme}{file}") is known
    assert cache.get(TABLE, f"{scheme}{file}") is known


def test_a_location_is_an_address_with_its_blanks_and_percent_signs_spelt_out(
    cache: MetadataCache, tmp_path: Path
) -> None:
    file = tmp_path / "a home with 100%.json"
    file.write_text("{}")
    known = metadata()
    cache.put(TABLE, file.as_uri(), known)
    assert cache.get(TABLE, file.as_uri()) is known
    file.write_text("{ }")
    assert cache.get(TABLE, file.as_uri()) is None


def cut_off(file: Path) -> None:
    os.truncate(file, 5)


def emptied(file: Path) -> None:
    file.write_text("")


def altered_in_place(file: Path) -> None:
    """As long as before, and later by the smallest step."""
    facts = file.stat()
    file.write_text(file.read_text().replace("2", "3"))
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))


def removed(file: Path) -> None:
    file.unlink()


def a_folder_instead(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("harm", [cut_off, emptied, altered_in_place, removed, a_folder_instead])
def test_a_file_that_is_not_the_one_that_was_read_is_not_known(
    cache: MetadataCache, file: Path, harm: Callable[[Path], None]
) -> None:
    cache.put(TABLE, f"file://{file}", metadata())
    harm(file)
    assert cache.get(TABLE, f"file://{file}") is None


def test_a_file_that_was_read_anew_gives_what_was_read_last(cache: MetadataCache, file: Path) -> None:
    cache.put(TABLE, f"file://{file}", metadata())
    file.write_text("{}")
    newer = metadata()
    cache.put(TABLE, f"file://{file}", newer)
    assert cache.get(TABLE, f"file://{file}") is newer
    assert cache._bytes == 2


def test_a_file_that_is_not_there_is_not_kept(cache: MetadataCache, file: Path) -> None:
    cache.put(TABLE, f"file://{file}", metadata())
    cache.put(TABLE, f"file://{file.parent}/gone.json", metadata())
    assert kept(cache) == set()
    assert cache._bytes == 0


def test_of_a_tables_versions_only_the_last_is_kept(cache: MetadataCache, tmp_path: Path) -> None:
    locations = some_files(tmp_path, 50)
    for location in locations:
        cache.put(TABLE, location, metadata(location))
        assert cache._bytes == 10
    assert cache.get(TABLE, locations[48]) is None
    assert cache.get(TABLE, locations[49]) is not None


def test_a_table_is_not_taken_for_another(cache: MetadataCache, file: Path) -> None:
    cache.put(TABLE, f"file://{file}", metadata())
    assert cache.get(("other", "t"), f"file://{file}") is None


def test_the_number_is_bounded_and_what_was_not_asked_for_longest_goes_first(
    cache: MetadataCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT", 3)
    locations = some_files(tmp_path, 5)
    for number in range(3):
        cache.put(table(number), locations[number], metadata())
    cache.get(table(0), locations[0])
    for number in (3, 4):
        cache.put(table(number), locations[number], metadata())
    assert kept(cache) == {"t0", "t3", "t4"}


def test_the_bytes_are_bounded(cache: MetadataCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT_BYTES", 100)
    for number, location in enumerate(some_files(tmp_path, 10, size=30)):
        cache.put(table(number), location, metadata())
    assert kept(cache) == {"t7", "t8", "t9"}
    assert cache._bytes == 90


def test_a_file_larger_than_all_that_is_kept_is_not_kept(
    cache: MetadataCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT_BYTES", 20)
    (location,) = some_files(tmp_path, 1, size=21)
    cache.put(TABLE, location, metadata())
    assert cache.get(TABLE, location) is None
    assert cache._bytes == 0


def test_threads_get_what_belongs_to_the_location_and_the_books_of_bytes_stay_right(
    cache: MetadataCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT", 7)
    locations = some_files(tmp_path, 20)

    def work(seed: int) -> set[bool]:
        seen = set()
        for turn in range(400):
            number = (seed * 31 + turn * 7) % 20
            found: Any = cache.get(table(number % 10), locations[number])
            seen.add(found is None or found.name == locations[number])
            cache.put(table(number % 10), locations[number], metadata(locations[number]))
        return seen

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(work, range(8))) == {True}
    assert len(cache._kept) == 7
    assert cache._bytes == 70
