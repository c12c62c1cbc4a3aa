"""What a server needs on this machine before it can start: made once, kept in the cache, looked at before each use."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

from lean_ops.lake.jars import alone, scratch
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.settings import load_settings

# Set to 1 to skip the tests that need a missing server, instead of having them fail.
WITHOUT_SERVERS: Final = "LEAN_OPS_TESTS_WITHOUT_SERVERS"
_CACHE_VARIABLE: Final = "LEAN_OPS_CACHE_DIR"


class Supply(Protocol):
    """Something that is fetched or built, and pinned."""

    @property
    def name(self) -> str:
        """Which server it is for."""
        ...

    def made_of(self) -> str:
        """A text that differs whenever the result would."""
        ...

    def is_whole(self, folder: Path) -> bool:
        """Whether the folder holds all of it, at a glance."""
        ...

    def make(self, folder: Path, place: Path, cache_dir: Path) -> None:
        """Fill the empty folder; `place` is for what is needed on the way. LeanOpsError says why it can't."""
        ...


def carried_out(
    command: list[str],
    failure: str,
    remedy: str,
    seconds: int,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Run a command that fetches or builds; TransientError with its last words if it does not end well."""
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=folder,
            env=environ,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        raise TransientError(failure, found=f"nothing within {seconds // 60} minutes") from error
    if done.returncode != 0:
        raise TransientError(failure, found=done.stdout.strip()[-2000:] or "no word why", remedy=remedy)


def cache_dir() -> Path:
    """The product's own cache, found as the product finds it."""
    given = {key: value for key, value in os.environ.items() if key == _CACHE_VARIABLE}
    return load_settings({}, given).settings.cache_dir


def find(supply: Supply, cache: Path) -> Path:
    """The folder of a supply, or TerminalError with the command that makes it."""
    folder = _folder(supply, cache)
    if not supply.is_whole(folder):
        raise TerminalError(f"{supply.name} is not on this machine", where=str(folder), remedy="Run `make servers`.")
    return folder


def ensure(supply: Supply, cache: Path, notice: Callable[[str], None]) -> None:
    """Make the supply unless it is there; of two at once the second waits and finds it."""
    folder = _folder(supply, cache)
    if supply.is_whole(folder):
        return
    with alone(folder.parent):
        if supply.is_whole(folder):
            return
        with scratch(folder.parent) as place:
            notice(f"{supply.name}: fetching what it needs, only this once")
            draft = place / supply.name
            draft.mkdir()
            supply.make(draft, place, cache)
            shutil.rmtree(folder, ignore_errors=True)  # there only if something was damaged since
            draft.replace(folder)


def contents(files: Iterable[Path]) -> str:
    """What some files say, as a short text."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _folder(supply: Supply, cache: Path) -> Path:
    digest = hashlib.sha256(supply.made_of().encode()).hexdigest()[:16]
    return cache / "servers" / f"{supply.name}-{digest}"
