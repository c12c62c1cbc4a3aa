"""The schemas of all topics: `{topic}/pending|active|failed|archive`, each step safe to die after."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from lean_ops.govern.folder_files import FolderFiles
from lean_ops.model.stored_file import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

    from lean_ops.govern.schema_files import Place, SchemaFiles, TopicLock

_SCHEMA: Final = "schema.json"
_REQUEST: Final = "request.json"
_ACTIVATION: Final = "activation.json"
_ERROR: Final = "error.json"
NOT_SCHEMAS: Final = frozenset({_REQUEST, _ACTIVATION, _ERROR})


@dataclass(frozen=True, slots=True)
class Pending:
    """A schema that waits for its judgement, and what was asked along with it, both as they came."""

    schema: Stored
    request: Stored | None = None


class SchemaStore:
    """Schema files by topic. Once a topic has an active schema it never lacks one.

    `pending/activation.json` is the note of an activation under way: it is there from before the active file
    changes until registry and history have followed, so that a crash in between can be made good. What is pending
    goes last, and only if it is still what was judged: until then the same judgement can be repeated, and an upload
    that came meanwhile waits for its own.

    With `takes_uploads` others put what is pending there, without asking for the lock.
    """

    def __init__(self, files: SchemaFiles, lock: TopicLock, *, takes_uploads: bool = False) -> None:
        self._files = files
        self._lock = lock
        self._takes_uploads = takes_uploads

    def active_file(self, topic: str) -> Place:
        """Where a topic's active schema is."""
        return self._files.place(_active(topic))

    def error_file(self, topic: str) -> Place:
        """Why a topic's last refused schema was refused."""
        return self._files.place(_failed(topic, _ERROR))

    def active(self, topic: str) -> bytes | None:
        """A topic's active schema as it was sent."""
        stored = self._files.read(_active(topic))
        return stored.content if stored else None

    def locked(self, topic: str) -> AbstractContextManager[None]:
        """One submission per topic at a time."""
        return self._lock(topic)

    # what is pending

    def pending(self, topic: str) -> Pending | None:
        """What waits for its judgement."""
        schema = self._files.read(_pending(topic, _SCHEMA))
        return Pending(schema, self._files.read(_pending(topic, _REQUEST))) if schema else None

    def put_pending(self, topic: str, content: bytes, request: Mapping[str, Any] | None) -> Pending:
        """A change arrives by hand, with what was asked along with it."""
        asked = None if request is None else Stored(_json(request))
        arrived = Pending(Stored(content), asked)
        if self._takes_uploads:
            return arrived  # written down it would take the place of an upload that nobody has judged yet
        if asked is None:
            self._files.remove(_pending(topic, _REQUEST))
        else:
            self._files.write(_pending(topic, _REQUEST), asked.content)
        self._files.write(_pending(topic, _SCHEMA), content)
        return arrived

    def discard(self, topic: str, pending: Pending) -> None:
        """It is judged; what came in its place meanwhile stays."""
        if pending.request is not None:
            self._files.remove(_pending(topic, _REQUEST), pending.request)
        self._files.remove(_pending(topic, _SCHEMA), pending.schema)

    def pending_topics(self) -> tuple[str, ...]:
        """The topics with a schema that waits for its judgement."""
        return tuple(self._files.topics_with(f"pending/{_SCHEMA}"))

    # what becomes of it

    def activate(
        self, topic: str, content: bytes, old_version: str | None, note: Mapping[str, Any], now: datetime
    ) -> Place | None:
        """The content becomes active and the old one is archived; where to. MovedError if it is not the old one."""
        old = self._files.read(_active(topic)) if old_version is not None else None
        self._files.write(_pending(topic, _ACTIVATION), _json(note))
        archived = None if old is None or old_version is None else self._archive(topic, old_version, old.content, now)
        self._files.replace(_active(topic), content, old)
        return archived

    def _archive(self, topic: str, version: str, content: bytes, now: datetime) -> Place:
        """A copy of the active file, made once even if an earlier attempt ended after it."""
        for place, archived in self.archived(topic, version):
            if archived == content:
                return place
        key = f"{topic}/archive/{version}_{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.json"
        self._files.write(key, content)
        return self._files.place(key)

    def archived(self, topic: str, version: str) -> Iterator[tuple[Place, bytes]]:
        """The archived files of a version, the newest first."""
        for key in reversed(self._files.keys(f"{topic}/archive/{version}_")):
            stored = self._files.read(key)
            if stored is not None:
                yield self._files.place(key), stored.content

    def fail(self, topic: str, content: bytes, error: Mapping[str, Any]) -> Place:
        """The content becomes the topic's failed schema, with its errors; where they are."""
        self._files.write(_failed(topic, _ERROR), _json(error))
        self._files.write(_failed(topic, _SCHEMA), content)
        return self.error_file(topic)

    # the note

    def activation(self, topic: str) -> dict[str, Any] | None:
        """The note of an activation whose registry item and history row may be missing."""
        stored = self._files.read(_pending(topic, _ACTIVATION))
        return None if stored is None else json.loads(stored.content)

    def close_activation(self, topic: str) -> None:
        """Everything has followed the active file."""
        self._files.remove(_pending(topic, _ACTIVATION))

    def open_activations(self) -> tuple[str, ...]:
        """The topics that still have such a note."""
        return tuple(self._files.topics_with(f"pending/{_ACTIVATION}"))


class SchemaFolder(SchemaStore):
    """The schemas under one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        files = FolderFiles(root)
        super().__init__(files, files.locked)


def _active(topic: str) -> str:
    return f"{topic}/active/{_SCHEMA}"


def _failed(topic: str, name: str) -> str:
    return f"{topic}/failed/{name}"


def _pending(topic: str, name: str) -> str:
    return f"{topic}/pending/{name}"


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()
