"""Processes of a soak: started with a mark that all their children inherit, so that none of them can hide."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.cli import LEAN_OPS
from tests.quick_java import QUICK_JAVA
from tests.soak.decisions import End, Target

MARK = "SOAK_MARK"
_ROOT = Path(__file__).parents[2]


class SoakError(Exception):
    """The product did not do what it must."""


@dataclass
class Process:
    """A command while it runs; what it says is in files."""

    name: str
    mark: str
    popen: subprocess.Popen[bytes]
    said: Path
    complained: Path
    steps: Path | None = None
    began: float = field(default_factory=time.monotonic)
    began_at: float = field(default_factory=time.time)
    lasted: float | None = None

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.began

    @property
    def answer(self) -> str:
        """What it printed on stdout."""
        return self.said.read_text(encoding="utf-8", errors="replace")

    @property
    def words(self) -> str:
        """All that it printed."""
        return self.answer + self.complained.read_text(encoding="utf-8", errors="replace")

    @property
    def has_ended(self) -> bool:
        """Whether it is over; looked at often, so this is also where its duration is noted."""
        if self.popen.poll() is None:
            return False
        self.lasted = self.seconds if self.lasted is None else self.lasted
        return True

    @property
    def code(self) -> int | None:
        return self.popen.poll()

    def deliver(self, end: End) -> bool:
        """Send the signal; whether there was anybody to get it."""
        targets = self._targets(end.target)
        for pid in targets:
            with suppress(ProcessLookupError):
                os.kill(pid, end.signal)
        return bool(targets)

    def _targets(self, target: Target) -> list[int]:
        if target is Target.DRIVER:
            return [] if self.has_ended else [self.popen.pid]
        marked = pids_with(self.mark)
        if target is Target.ALL:
            return sorted(marked, key=lambda pid: pid != self.popen.pid)
        return [pid for pid in marked if _program(pid) == "java"]

    def wait(self, limit: float) -> int:
        """Its exit code; SoakError if it does not end in time."""
        try:
            return self.popen.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            raise SoakError(f"{self.name} did not end within {limit:.0f} s:\n{self.words[-2000:]}") from None


class Processes:
    """Starts commands on one home and knows all that were ever started."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home = home
        self._folder = folder
        self._mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self._count = 0
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, *arguments: str) -> Process:
        """`lean-ops` with these arguments."""
        return self._start(arguments, [str(LEAN_OPS)], None)

    def start_watched(self, *arguments: str) -> Process:
        """The same, with its steps in a file."""
        steps = self._folder / f"{self._count + 1:05d}-steps.txt"
        return self._start(arguments, [sys.executable, "-m", "tests.soak.watched", str(steps)], steps)

    def _start(self, arguments: tuple[str, ...], program: list[str], steps: Path | None) -> Process:
        self._count += 1
        mark = f"{self._mark}-{self._count}"
        said = self._folder / f"{self._count:05d}-{arguments[0]}.txt"
        complained = said.with_suffix(".stderr.txt")
        path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(_ROOT)])
        environ = {**os.environ, "LEAN_OPS_SPARK_JAVA_OPTIONS": QUICK_JAVA, "PYTHONPATH": path, MARK: mark}
        with said.open("wb") as out, complained.open("wb") as err:
            popen = subprocess.Popen(
                [*program, "--home", str(self._home), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environ,
                start_new_session=True,
            )
        return Process(" ".join(arguments[:2]), mark, popen, said, complained, steps)

    def left_behind(self, limit: float) -> list[int]:
        """Processes of any command that are there after so long; a Java whose program was killed needs a while."""
        until = time.monotonic() + limit
        while (left := pids_with(f"{self._mark}-")) and time.monotonic() < until:
            time.sleep(0.1)
        return left

    def end_all(self) -> None:
        """Kill whatever is left."""
        for pid in pids_with(f"{self._mark}-"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def pids_with(mark: str) -> list[int]:
    """The processes that carry a mark, or one that begins with it."""
    wanted = f"{MARK}={mark}".encode()
    exact = not mark.endswith("-")
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                variables = (entry / "environ").read_bytes().split(b"\0")
                if any(it == wanted if exact else it.startswith(wanted) for it in variables):
                    found.append(int(entry.name))
    return found


def _program(pid: int) -> str:
    with suppress(OSError):
        return (Path("/proc") / str(pid) / "comm").read_text().strip()
    return ""
