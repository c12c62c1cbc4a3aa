"""The schema folder: `{topic}/pending|active|failed|archive`, where every move is one atomic replace."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from contextlib import contextmanager
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

_SCHEMA: Final = "schema.json"
_REQUEST: Final = "request.json"
_ACTIVATION: Final = "activation.json"
_ERROR: Final = "error.json"
NOT_SCHEMAS: Final = frozenset({_REQUEST, _ACTIVATION, _ERROR})


class SchemaFolder:
    """The schemas of all topics under one folder. Once a topic has an active schema it never lacks one.

    `pending/activation.json` is the note of an activation under way: it is there from before the active file
    changes until registry and history have followed, so that a crash in between can be made good.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def active_file(self, topic: str) -> Path:
        """Where a topic's active schema is."""
        return self.root / topic / "active" / _SCHEMA

    def error_file(self, topic: str) -> Path:
        """Why a topic's last refused schema was refused."""
        return self.root / topic / "failed" / _ERROR

    def active(self, topic: str) -> bytes | None:
        """A topic's active schema as it was sent."""
        return _content(self.active_file(topic))

    @contextmanager
    def locked(self, topic: str) -> Iterator[None]:
        """One submission per topic at a time; the system lets go with the process."""
        folder = self.root / topic
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def put_pending(self, topic: str, content: bytes, request: Mapping[str, Any] | None) -> None:
        """A change arrives, with what was asked along with it."""
        pending = self.root / topic / "pending"
        if request is None:
            (pending / _REQUEST).unlink(missing_ok=True)
        else:
            _write(pending / _REQUEST, _json(request))
        _write(pending / _SCHEMA, content)

    def activate(self, topic: str, old_version: str | None, note: Mapping[str, Any], now: datetime) -> Path | None:
        """Pending becomes active and the old one is archived; where to."""
        _write(self._note_file(topic), _json(note))
        archived = None if old_version is None else self._archive(topic, old_version, now)
        target = self.active_file(topic)
        target.parent.mkdir(parents=True, exist_ok=True)
        pending = self.root / topic / "pending"
        (pending / _SCHEMA).replace(target)
        (pending / _REQUEST).unlink(missing_ok=True)
        return archived

    def _archive(self, topic: str, version: str, now: datetime) -> Path:
        """A copy of the active file, made once even if an earlier attempt ended after it."""
        content, archive = self.active_file(topic).read_bytes(), self.root / topic / "archive"
        earlier = [file for file in archive.glob(f"{version}_*.json") if file.read_bytes() == content]
        if earlier:
            return earlier[0]
        file = archive / f"{version}_{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.json"
        _write(file, content)
        return file

    def archived(self, topic: str, version: str) -> Iterator[tuple[Path, bytes]]:
        """The archived files of a version, the newest first."""
        for file in sorted((self.root / topic / "archive").glob(f"{version}_*.json"), reverse=True):
            yield file, file.read_bytes()

    def fail(self, topic: str, error: Mapping[str, Any]) -> Path:
        """Pending becomes failed, with its errors; where they are."""
        pending, target = self.root / topic / "pending", self.error_file(topic)
        _write(target, _json(error))
        (pending / _SCHEMA).replace(target.with_name(_SCHEMA))
        (pending / _REQUEST).unlink(missing_ok=True)
        return target

    def activation(self, topic: str) -> dict[str, Any] | None:
        """The note of an activation whose registry item and history row may be missing."""
        content = _content(self._note_file(topic))
        return None if content is None else json.loads(content)

    def close_activation(self, topic: str) -> None:
        """Everything has followed the active file."""
        self._note_file(topic).unlink(missing_ok=True)

    def open_activations(self) -> tuple[str, ...]:
        """The topics that still have such a note."""
        return tuple(sorted(file.parent.parent.name for file in self.root.glob(f"*/pending/{_ACTIVATION}")))

    def _note_file(self, topic: str) -> Path:
        return self.root / topic / "pending" / _ACTIVATION


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()


def _write(file: Path, content: bytes) -> None:
    """The whole content or none of it, also when the machine stops in between."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
