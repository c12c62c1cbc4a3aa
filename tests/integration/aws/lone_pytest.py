"""A pytest in a process of its own, with one test that needs a server: to see what becomes of both."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def lone_test(name: str, folder: Path, body: str = "pass") -> Path:
    """A file with one test that asks for a server."""
    file = folder / "test_lone.py"
    plugin = f"from tests.servers.fixtures import {name}"
    file.write_text(f"import pathlib, time\n{plugin}\ndef test_lone({name}):\n    {body}\n", encoding="utf-8")
    return file


def run_pytest(tests: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """What pytest says of a file or folder of tests."""
    command = _command(tests)
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, env=_environ() | environ, timeout=300
    )


@contextmanager
def lone_pytest(name: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A pytest whose test has its server and waits, and the number of the server's guard."""
    told = folder / "guard"
    draft = f"draft = pathlib.Path({str(told)!r} + '.draft')"
    body = f"{draft}; draft.write_text(str({name}.process.guard.pid)); draft.rename({str(told)!r}); time.sleep(600)"
    with (folder / "pytest.log").open("wb") as log:
        command = _command(lone_test(name, folder, body))
        process = subprocess.Popen(command, cwd=ROOT, env=_environ(), stdout=log, stderr=log)
    try:
        assert eventually(lambda: told.is_file() or process.poll() is not None, 240)
        assert process.poll() is None, (folder / "pytest.log").read_text(encoding="utf-8", errors="replace")
        yield process, int(told.read_text(encoding="ascii"))
    finally:
        process.kill()
        process.wait(timeout=30)


def eventually(holds: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _command(tests: Path) -> list[str]:
    """A pytest without the project's settings, of this file or folder only."""
    folder = tests if tests.is_dir() else tests.parent
    options = ["-p", "no:cacheprovider", "-ra", f"--rootdir={folder}", "-c", os.devnull]
    return [sys.executable, "-m", "pytest", *options, f"--basetemp={folder / 'lone'}", str(tests)]


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}
