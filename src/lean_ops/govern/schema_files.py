"""Where schema files are kept: the port that a folder and a bucket both have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from lean_ops.model.stored_file import Stored

Place: TypeAlias = "Path | str"


class SchemaFiles(Protocol):
    """Files by keys such as `events/active/schema.json`; each is written whole or not at all."""

    def place(self, key: str) -> Place:
        """Where a person finds the file."""

    def read(self, key: str) -> Stored | None:
        """The file; None if there is none. Of one that is larger than any schema may be, its beginning."""

    def write(self, key: str, content: bytes) -> None:
        """Write the file, whatever was there."""

    def replace(self, key: str, content: bytes, seen: Stored | None) -> None:
        """Write the file if it is still as it was seen (None: not there), else MovedError."""

    def remove(self, key: str, seen: Stored | None = None) -> None:
        """Remove the file; with `seen` only if it is still that one. Nothing happens if there is none."""

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin so, sorted; the prefix ends in the last part of a key."""

    def topics_with(self, name: str) -> list[str]:
        """The topics that have a file of this name, such as `pending/schema.json`, sorted."""


class TopicLock(Protocol):
    """One submission per topic at a time."""

    def __call__(self, topic: str, /) -> AbstractContextManager[None]:
        """The topic's lock for the time of a block; it is let go whatever becomes of its holder."""
