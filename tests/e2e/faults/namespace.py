"""A mount namespace of its own: a small disk, or a home that can't be written, seen by the processes started in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cli import LEAN_OPS, with_tests_on_path
from tests.quick_java import QUICK_JAVA

# The namespace lives as long as this shell, which waits for the end of its input.
_HOLD = "set -e; {mount}; echo ready; cat >/dev/null"


@dataclass(frozen=True)
class Namespace:
    """A namespace that a process holds open; commands run inside of it."""

    holder: int
    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def lean_ops(self, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        return self.run(str(LEAN_OPS), "--home", str(self.home), *arguments, stdin=stdin)

    def said(self, *arguments: str, code: int = 0, stdin: bytes | None = None) -> str:
        """What a command prints; its exit code must be the expected one, and it must not be lost for words."""
        done = self.lean_ops(*arguments, stdin=stdin)
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def json(self, *arguments: str, code: int = 0) -> Any:
        done = self.lean_ops(*arguments, "--json")
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def run(self, *command: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", "-t", str(self.holder), "-U", "-m", "--preserve-credentials", "--", *command]
        environ = {**with_tests_on_path(), "LEAN_OPS_SPARK_JAVA_OPTIONS": QUICK_JAVA}
        done = subprocess.run(inside, check=False, capture_output=True, input=stdin or b"", timeout=540, env=environ)
        return subprocess.CompletedProcess(inside, done.returncode, done.stdout.decode(), done.stderr.decode())

    @property
    def seen_from_outside(self) -> Path:
        """The same folder for this process, which is not in the namespace."""
        return Path(f"/proc/{self.holder}/root{self.folder}")


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Namespace]:
    """A namespace in which a folder is a disk of so many megabytes."""
    with _held(folder, f"mount -t tmpfs -o size={megabytes}m tmpfs {folder}") as namespace:
        yield namespace


@contextmanager
def read_only(folder: Path) -> Iterator[Namespace]:
    """A namespace in which nothing in a folder can be written, not even by root."""
    with _held(folder, f"mount --bind {folder} {folder}; mount -o remount,bind,ro {folder}") as namespace:
        yield namespace


@contextmanager
def _held(folder: Path, mount: str) -> Iterator[Namespace]:
    if not shutil.which("unshare") or not shutil.which("nsenter"):
        pytest.skip("NOT TESTED: this needs unshare and nsenter (util-linux, Linux)")
    holder = subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", _HOLD.format(mount=mount)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline() != b"ready\n":
            reason = holder.stderr.read().decode().strip()
            pytest.skip(f"NOT TESTED: this system lets nobody mount in a namespace of their own: {reason}")
        try:
            yield Namespace(holder.pid, folder)
        finally:
            holder.communicate()


def fill(folder: Path, leave: int) -> Path:
    """Fill a disk until so many bytes are left; the filler."""
    filler = folder / "filler"
    with filler.open("wb") as file:
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        file.write(b"\0" * max(0, free - leave))
    return filler
