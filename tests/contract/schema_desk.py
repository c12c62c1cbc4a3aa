"""A desk for schemas on a folder or a bucket, with files whose user dies when it is told to."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.servers.fixtures import seaweed as seaweed  # noqa: PLC0414  a fixture for these tests
from tests.servers.server import Server

from lean_ops.aws.schema_objects import S3SchemaFiles
from lean_ops.govern.folder_files import FolderFiles
from lean_ops.govern.lease_lock import LeaseLock
from lean_ops.govern.schema_files import SchemaFiles
from lean_ops.govern.store import SchemaStore
from lean_ops.govern.submit import Submissions
from lean_ops.govern.uploads import Outcome, judge
from lean_ops.model.registry import RegistryItem
from lean_ops.model.stored_file import Stored
from lean_ops.state.sqlite import SqliteStateStore

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
LEASE_SECONDS = 300
PENDING, ACTIVE = "events/pending/schema.json", "events/active/schema.json"


def schema(version: str = "1.0.0", **columns: dict[str, Any]) -> bytes:
    envelope = {"message_id": {"type": "STRING", "required": True}}
    document = {"schema_version": version, "table_name": "events", "envelope_columns": envelope}
    return json.dumps({**document, "payload_columns": {"user": {}, **columns}}).encode()


class DeadError(BaseException):
    """The process ends here; nothing that would tidy up after it runs."""


@dataclass
class Mortal:
    """Files whose user dies after so many changes of them; `on_change` hears of each before it is made."""

    files: SchemaFiles
    changes_left: int | None = None
    on_change: Callable[[str, str], None] = lambda *_: None

    def place(self, key: str) -> object:
        return self.files.place(key)

    def read(self, key: str) -> Stored | None:
        return self.files.read(key)

    def keys(self, prefix: str) -> list[str]:
        return self.files.keys(prefix)

    def topics_with(self, name: str) -> list[str]:
        return self.files.topics_with(name)

    def write(self, key: str, content: bytes) -> None:
        self._change("write", key, lambda: self.files.write(key, content))

    def replace(self, key: str, content: bytes, seen: Stored | None) -> None:
        self._change("replace", key, lambda: self.files.replace(key, content, seen))

    def remove(self, key: str, seen: Stored | None = None) -> None:
        self._change("remove", key, lambda: self.files.remove(key, seen))

    def _change(self, kind: str, key: str, change: Callable[[], None]) -> None:
        self.on_change(kind, key)
        change()
        if self.changes_left is not None:
            self.changes_left -= 1
            if self.changes_left <= 0:
                raise DeadError(key)


class Tables:
    """The lake's tables, which always can be made."""

    def problems(self, _: object) -> Iterator[Any]:
        return iter(())

    def ensure(self, _: object) -> None:
        """Made."""


@dataclass
class Desk:
    """A store of schemas with everything around it, for one process after another."""

    files: SchemaFiles
    lock_of: Callable[[Desk], Callable[[str], AbstractContextManager[None]]]
    registry: SqliteStateStore
    now: datetime = NOW
    history: list[dict[str, Any]] = field(default_factory=list)

    def submissions(self, files: object | None = None) -> Submissions:
        store = SchemaStore(files or self.files, self.lock_of(self), takes_uploads=True)  # type: ignore[arg-type]
        return Submissions(store, self.registry, Tables(), self._record, can_hash=False)

    def _record(self, row: Mapping[str, Any]) -> None:
        self.history.append(dict(row))

    def upload(self, content: bytes, request: bytes | None = None) -> None:
        if request is not None:
            self.files.write("events/pending/request.json", request)
        self.files.write(PENDING, content)

    def judge(self, files: object | None = None) -> Outcome:
        return judge(self.submissions(files), "events", submitted_by="ann", now=self.now).outcome

    def keys(self) -> list[str]:
        folders = ("pending", "active", "failed", "archive")
        return [key for folder in folders for key in self.files.keys(f"events/{folder}/")]

    def begin_again(self) -> None:
        """The first schema is active, and nobody has done anything else."""
        for key in (*self.keys(),):
            self.files.remove(key)
        self.files.write(ACTIVE, schema())
        self.registry.update_item("events", lambda _: RegistryItem("events"))
        self.now += timedelta(seconds=LEASE_SECONDS + 1)
        self.submissions().reconcile_registry("events", self.now)
        self.history.clear()

    def content(self, key: str) -> bytes | None:
        stored = self.files.read(key)
        return stored.content if stored else None


@pytest.fixture
def folder_files(tmp_path: Path) -> SchemaFiles:
    return FolderFiles(tmp_path / "schemas")


@pytest.fixture
def bucket_files(seaweed: Server) -> SchemaFiles:
    client, bucket = seaweed.client("s3"), f"schemas-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    return S3SchemaFiles(client, bucket)


@pytest.fixture(params=["folder", "bucket"])
def files(request: pytest.FixtureRequest) -> SchemaFiles:
    found: SchemaFiles = request.getfixturevalue(f"{request.param}_files")
    return found


def lease_lock(desk: Desk) -> Callable[[str], AbstractContextManager[None]]:
    """A lock that a dead process does not give back."""
    lock = LeaseLock(desk.registry, lambda: desk.now, sleep=lambda _: None, patience=1.0)

    @contextmanager
    def locked(topic: str) -> Iterator[None]:
        lease = lock._taken(topic)
        try:
            yield
        except DeadError:
            raise
        except BaseException:
            desk.registry.release(lease)
            raise
        desk.registry.release(lease)

    return locked


@pytest.fixture
def desk(files: SchemaFiles, tmp_path: Path) -> Desk:
    return Desk(files, lease_lock, SqliteStateStore(tmp_path / "state.db", LEASE_SECONDS, lambda _: False))
