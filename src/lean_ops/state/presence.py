"""Which processes of this machine are alive: each holds an operating-system lock on a file of its own.

The system drops the lock with the process, however it ends, so a lease whose owner's file can be locked
belongs to nobody any more. Process numbers could not tell: they are used again.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import uuid
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Presence:
    """This process, as the others on the machine can see it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file: IO[str] | None = None
        self._owner = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:12]}"

    def announce(self) -> str:
        """Take this process's own lock; the name under which it holds leases."""
        with self._lock:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._file = self._path(self._owner).open("w")
                fcntl.flock(self._file, fcntl.LOCK_EX)
        return self._owner

    def leave(self) -> None:
        """Let the lock go and tidy up; done by the system as well if the process ends before."""
        with self._lock:
            if self._file is not None:
                self._path(self._owner).unlink(missing_ok=True)
                self._file.close()
                self._file = None

    def is_gone(self, owner: str) -> bool:
        """Whether the process behind an owner's name has ended; False if it can't be told from here."""
        if owner.partition("/")[0] != socket.gethostname():
            return False
        try:
            with self._path(owner).open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return True
        except BlockingIOError:
            return False
        self._path(owner).unlink(missing_ok=True)
        return True

    def _path(self, owner: str) -> Path:
        return self._folder / (owner.replace("/", "_") + ".lock")


class Anywhere:
    """A process whose end nobody can see from elsewhere: its leases are free when they have expired."""

    def __init__(self) -> None:
        self._owner = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:12]}"

    def announce(self) -> str:
        """The name under which it holds leases."""
        return self._owner

    def leave(self) -> None:
        """Nothing is left behind."""

    def is_gone(self, _: str) -> bool:
        """Nobody can tell."""
        return False
