"""Schema files in a folder, where every write is one atomic replace."""

from __future__ import annotations

import fcntl
import os
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lean_ops.model.stored_file import MovedError, Stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class FolderFiles:
    """The files under one folder. Whoever writes holds the topic's lock, so a look before a write is enough."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def place(self, key: str) -> Path:
        """The file's path."""
        return self._root / key

    def read(self, key: str) -> Stored | None:
        """The file; None if there is none."""
        try:
            return Stored(self.place(key).read_bytes())
        except FileNotFoundError:
            return None

    def write(self, key: str, content: bytes) -> None:
        """The whole content or none of it, also when the machine stops in between."""
        file = self.place(key)
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

    def replace(self, key: str, content: bytes, seen: Stored | None) -> None:
        """Write the file if it is still as it was seen."""
        if self.read(key) != seen:
            raise MovedError(self.place(key))
        self.write(key, content)

    def remove(self, key: str, seen: Stored | None = None) -> None:
        """Remove the file, or leave it if it is another one than was seen."""
        if seen is None or self.read(key) == seen:
            self.place(key).unlink(missing_ok=True)

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin so."""
        folder, _, beginning = prefix.rpartition("/")
        names = (file.name for file in self.place(folder).glob("*.json") if file.is_file())
        return sorted(f"{folder}/{name}" for name in names if name.startswith(beginning))

    def topics_with(self, name: str) -> list[str]:
        """The topics that have a file of this name."""
        return sorted(file.relative_to(self._root).parts[0] for file in self._root.glob(f"*/{name}"))

    @contextmanager
    def locked(self, topic: str) -> Iterator[None]:
        """One submission per topic at a time; the system lets go with the process."""
        folder = self._root / topic
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
