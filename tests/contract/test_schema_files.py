"""What every place for schema files promises; each test runs on each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tests.contract.schema_desk import ACTIVE, PENDING, bucket_files, files, folder_files, seaweed

from lean_ops.govern.schema_files import SchemaFiles
from lean_ops.model.errors import TransientError
from lean_ops.model.stored_file import MovedError

__all__ = ["bucket_files", "files", "folder_files", "seaweed"]


def test_a_file_is_read_as_it_was_written_and_a_missing_one_is_none(files: SchemaFiles) -> None:
    assert files.read(ACTIVE) is None
    for content in (b"", b"\x00\xff", "ü\n".encode()):
        files.write(ACTIVE, content)
        stored = files.read(ACTIVE)
        assert stored is not None
        assert stored.content == content
    assert str(files.place(ACTIVE)).endswith("/events/active/schema.json")


def test_a_file_is_replaced_only_if_it_is_still_as_it_was_seen(files: SchemaFiles) -> None:
    files.replace(ACTIVE, b"one", None)
    seen = files.read(ACTIVE)
    with pytest.raises(MovedError):
        files.replace(ACTIVE, b"another", None)
    files.replace(ACTIVE, b"two", seen)
    with pytest.raises(MovedError) as refused:
        files.replace(ACTIVE, b"three", seen)
    assert isinstance(refused.value, TransientError)
    now = files.read(ACTIVE)
    assert now is not None
    assert now.content == b"two"
    files.remove(ACTIVE)
    with pytest.raises(MovedError):
        files.replace(ACTIVE, b"four", now)


def test_a_file_is_removed_only_if_it_is_still_as_it_was_seen(files: SchemaFiles) -> None:
    files.remove(PENDING)
    files.write(PENDING, b"one")
    seen = files.read(PENDING)
    files.write(PENDING, b"two")
    files.remove(PENDING, seen)
    now = files.read(PENDING)
    assert now is not None
    assert now.content == b"two"
    files.remove(PENDING, now)
    files.remove(PENDING, now)
    assert files.read(PENDING) is None


def test_keys_are_found_by_their_beginning_and_topics_by_a_file(files: SchemaFiles) -> None:
    for key in ("events/archive/1.0.0_b.json", "events/archive/1.0.0_a.json", "events/archive/1.0.01_a.json"):
        files.write(key, b"x")
    files.write("orders/pending/schema.json", b"x")
    files.write("events/pending/schema.json", b"x")
    files.write("events/pending/request.json", b"x")
    assert files.keys("events/archive/1.0.0_") == ["events/archive/1.0.0_a.json", "events/archive/1.0.0_b.json"]
    assert files.keys("nobody/archive/1.0.0_") == []
    assert files.topics_with("pending/schema.json") == ["events", "orders"]
    assert files.topics_with("pending/activation.json") == []


def test_of_many_that_replace_one_object_at_once_exactly_one_succeeds(bucket_files: SchemaFiles) -> None:
    threads, start = 8, Barrier(8)
    bucket_files.write(ACTIVE, b"old")
    seen = bucket_files.read(ACTIVE)

    def race(number: int) -> bytes | None:
        start.wait(30)
        try:
            bucket_files.replace(ACTIVE, str(number).encode(), seen)
        except MovedError:
            return None
        return str(number).encode()

    with ThreadPoolExecutor(threads) as pool:
        winners = [content for content in pool.map(race, range(threads)) if content is not None]
    stored = bucket_files.read(ACTIVE)
    assert stored is not None
    assert winners == [stored.content]
