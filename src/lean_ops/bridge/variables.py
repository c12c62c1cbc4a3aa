"""The file from which Terraform knows for which topics to make queues: `topics.auto.tfvars.json`.

A topic that is gone from Pub/Sub stays in it: Terraform would delete its queue with whatever is in there. Whoever has
seen that the queue is empty takes the topic out by hand, and it stays out.
"""

from __future__ import annotations

import io
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lean_ops.aws.objects import Objects

FILE_NAME: Final = "topics.auto.tfvars.json"
_TOPICS: Final = "topics"
_MOST_BYTES: Final = 10 * 1024 * 1024


class Place(Protocol):
    """Where a small file is kept; it is there whole or not at all."""

    @property
    def name(self) -> str:
        """The place, for a person."""

    def read(self) -> bytes | None:
        """Its content; None if there is none."""

    def write(self, content: bytes) -> None:
        """Keep this content in the place of what was there."""


@dataclass(frozen=True, slots=True)
class Change:
    """What the file must become, and the topics that it has not had."""

    content: bytes
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables file, wherever it is kept."""

    place: Place

    def change(self, active: Iterable[str], registered: Iterable[str]) -> Change | None:
        """What to write so that all active topics are in it; None if nothing.

        Where there is no file yet, every topic that was ever registered is in the first one.
        """
        before = self.place.read()
        values = self._values(before) if before is not None else {_TOPICS: []}
        had = set(values[_TOPICS])
        topics = had.union(active, () if before is not None else registered)
        content = _content({**values, _TOPICS: sorted(topics)})
        return None if content == before else Change(content, tuple(sorted(topics - had)))

    def _values(self, content: bytes) -> dict[str, Any]:
        """What the file says; a file of another kind must not be overwritten."""
        with suppress(ValueError):
            values = json.loads(content[: _MOST_BYTES + 1])
            topics = values.get(_TOPICS, []) if isinstance(values, dict) else None
            if isinstance(topics, list) and all(isinstance(topic, str) for topic in topics):
                return {**values, _TOPICS: topics}
        raise TerminalError(
            "this is not a file of Terraform variables with a list of topics",
            where=self.place.name,
            found=repr(content[:80]),
            remedy="Move it away, or name another file.",
        )


def _content(values: dict[str, Any]) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine."""

    path: Path

    @property
    def name(self) -> str:
        """The place, for a person."""
        return str(self.path)

    def read(self) -> bytes | None:
        """Its content; None if there is none."""
        return self.path.read_bytes() if self.path.exists() else None

    def write(self, content: bytes) -> None:
        """Write it whole: it gets its name when it is complete."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_name(f".{self.path.name}.tmp")
        unfinished.write_bytes(content)
        unfinished.replace(self.path)


@dataclass(frozen=True, slots=True)
class BucketFile:
    """An object of a bucket."""

    objects: Objects
    key: str

    @property
    def name(self) -> str:
        """The place, for a person."""
        return self.key

    def read(self) -> bytes | None:
        """Its content; None if there is none."""
        from lean_ops.aws.objects import MissingObjectError

        try:
            with self.objects.opened(self.key) as content:
                return content.read(_MOST_BYTES + 1)
        except MissingObjectError:
            return None

    def write(self, content: bytes) -> None:
        """Keep it as an object."""
        self.objects.put(self.key, io.BytesIO(content))
