"""What every store of objects promises."""

from __future__ import annotations

import io
import tempfile
import uuid
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from tests.contract.memory_objects import MemoryObjects
from tests.servers.fixtures import seaweed as seaweed  # noqa: PLC0414  a fixture for these tests
from tests.servers.server import Server

from lean_ops.aws.objects import BucketObjects, MissingObjectError, Objects
from lean_ops.model.errors import TerminalError, TransientError

KEY = "dlq-archive/events/2026-02-03/10/11-aa.json"


def bucket_of(server: Server) -> BucketObjects:
    client = server.client("s3")
    bucket = f"b{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    return BucketObjects(client, bucket)


@pytest.fixture(params=["memory", "seaweed"])
def objects(request: pytest.FixtureRequest) -> Objects:
    return MemoryObjects() if request.param == "memory" else bucket_of(request.getfixturevalue("seaweed"))


def read(objects: Objects, key: str = KEY) -> bytes:
    with objects.opened(key) as file:
        return file.read()


def test_what_was_put_comes_back(objects: Objects) -> None:
    objects.add(KEY, io.BytesIO(b"\xff\x00body"))
    assert read(objects) == b"\xff\x00body"


def test_an_empty_object_is_an_object(objects: Objects) -> None:
    objects.add(KEY, io.BytesIO(b""))
    assert read(objects) == b""


def test_an_object_takes_the_place_of_an_earlier_one(objects: Objects) -> None:
    for content in (b"longer than the next", b"next"):
        objects.put(KEY, io.BytesIO(content))
    assert read(objects) == b"next"


def test_an_object_is_not_replaced_by_what_is_added(objects: Objects) -> None:
    assert objects.add(KEY, io.BytesIO(b"first"))
    assert not objects.add(KEY, io.BytesIO(b"second"))
    assert read(objects) == b"first"


def test_of_many_who_add_an_object_at_once_one_does(objects: Objects) -> None:
    barrier = Barrier(8)

    def race(number: int) -> bool:
        barrier.wait()
        try:
            return objects.add(KEY, io.BytesIO(str(number).encode()))
        except TransientError:  # S3 may say that two were too close to each other
            return False

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(race, range(8)))
    assert added.count(True) == 1
    assert read(objects) == str(added.index(True)).encode()


def test_an_object_that_is_not_there_is_missing(objects: Objects) -> None:
    with pytest.raises(MissingObjectError, match="11-aa"), objects.opened(KEY):
        pass


def test_a_large_object_is_read_line_by_line_and_piece_by_piece(objects: Objects) -> None:
    with tempfile.SpooledTemporaryFile(1024) as file:
        file.write(b"facts\n" + b"x" * 9_000_000)
        file.seek(0)
        objects.add(KEY, file)
    with objects.opened(KEY) as found:
        assert found.readline() == b"facts\n"
        sizes = [len(piece) for piece in iter(lambda: found.read(1_000_000), b"")]
    assert sum(sizes) == 9_000_000
    assert max(sizes) == 1_000_000


def test_keys_are_found_by_how_they_begin(objects: Objects) -> None:
    for key in ("a/2", "a/1", "b/1", "a1"):
        objects.add(key, io.BytesIO(b""))
    assert list(objects.keys("a/")) == ["a/1", "a/2"]
    assert list(objects.keys("c")) == []


def test_whoever_stops_reading_in_the_middle_leaves_no_connection_behind(objects: Objects) -> None:
    objects.add(KEY, io.BytesIO(b"x" * 3_000_000))
    for _ in range(30):
        with objects.opened(KEY) as file:
            assert file.read(10) == b"x" * 10


# S3 alone


def test_a_bucket_that_is_not_there_is_told(seaweed: Server) -> None:
    nowhere = BucketObjects(seaweed.client("s3"), "no-such-bucket")
    with pytest.raises(TerminalError, match="s3://no-such-bucket/a"):
        nowhere.add("a", io.BytesIO(b""))


def test_a_store_that_does_not_answer_is_transient() -> None:
    import boto3
    from botocore.config import Config

    session: Any = boto3.Session("key", "secret", region_name="eu-central-1")
    config = Config(connect_timeout=1, read_timeout=1, retries={"total_max_attempts": 1})
    client = session.client("s3", endpoint_url="http://127.0.0.1:1", config=config)
    with pytest.raises(TransientError, match="s3://bucket/a"):
        BucketObjects(client, "bucket").add("a", io.BytesIO(b""))
