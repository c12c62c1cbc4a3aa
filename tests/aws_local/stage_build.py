"""What is deployed to the local AWS: the zips and the jobs' files as `make build` makes them, built once for a source.

They are kept in build/aws-local, in a folder named by a hash of all that goes into them.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from lean_ops.model.errors import TerminalError

ROOT: Final = Path(__file__).resolve().parents[2]
_KEPT: Final = ROOT / "build" / "aws-local"
_SOURCES: Final = ("src/lean_ops", "deploy", "lock", "schemas", "scripts", "pyproject.toml")
_DONE: Final = "done"
_MOST_KEPT: Final = 3
_SECONDS: Final = 600


def built(say: Callable[[str], None]) -> Path:
    """A folder with `lambdas` and `glue/VERSION`; TerminalError if something can't be built."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests in several processes
        folder = _KEPT / _hash()
        if not (folder / _DONE).is_file():
            say("building zips and the jobs' files")
            shutil.rmtree(folder, ignore_errors=True)
            _build("build_lambdas.py", folder / "lambdas")
            _build("build_glue.py", folder / "glue")
            (folder / _DONE).touch()
        (folder / _DONE).touch()
        _forget_old()
        return folder


def _build(script: str, out: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), "--out", str(out)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise TerminalError("can't be built", where=f"scripts/{script}", found=done.stderr.strip()[-2000:])


def _hash() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for file in _files():
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _files() -> Iterator[Path]:
    for source in _SOURCES:
        place = ROOT / source
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        yield from (file for file in found if file.is_file() and "__pycache__" not in file.parts)


def _forget_old() -> None:
    """Somebody may be using the ones before this; the oldest nobody does."""
    marks = sorted(_KEPT.glob(f"*/{_DONE}"), key=lambda mark: mark.stat().st_mtime, reverse=True)
    for mark in marks[_MOST_KEPT:]:
        shutil.rmtree(mark.parent, ignore_errors=True)
