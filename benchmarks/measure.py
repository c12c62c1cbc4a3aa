"""CPU, wall time and peak memory of this process and everything that it starts, from /proc.

A child that has ended is counted too: the kernel adds its times to those of the parent that waited for it, and a
child whose parent ended first comes back to this process (`adopt_orphans`).
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_TICK: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS: Final = 0.2
_PR_SET_CHILD_SUBREAPER: Final = 36
# A look at all pages of a large process takes a while: it is taken when the quick sum has grown by this much.
_WORTH_A_LOOK: Final = 1.01


class Process(NamedTuple):
    """A line of the kernel's table: times in seconds, `waited` those of children that have ended."""

    pid: int
    parent: int
    command: str
    own: float
    waited: float
    resident: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a piece of work took; memory is the proportional set size of all processes at the worst moment."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    commands: tuple[str, ...] = ()

    @property
    def started_java(self) -> bool:
        """Whether a Java virtual machine was seen among the processes."""
        return "java" in self.commands


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ends, so that none gets out of sight."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def process_tree(root: int) -> list[Process]:
    """A process and its living descendants, the root first; nothing if it is gone."""
    found = {process.pid: process for process in _all_processes()}
    children: dict[int, list[Process]] = {}
    for process in found.values():
        children.setdefault(process.parent, []).append(process)
    tree = [found[root]] if root in found else []
    for process in tree:  # grows while it is walked
        tree.extend(children.get(process.pid, ()))
    return tree


def _all_processes() -> Iterator[Process]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                yield _parse((folder / "stat").read_text(encoding="utf-8", errors="replace"))


def _parse(stat: str) -> Process:
    """A process from its stat line; the command stands in parentheses and may hold any character."""
    pid, rest = stat.split(" (", 1)
    command, numbers = rest.rsplit(") ", 1)
    fields = numbers.split()
    own, waited = (int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14]))
    return Process(int(pid), int(fields[1]), command, own / _TICK, waited / _TICK, int(fields[21]) * _PAGE)


def cpu_seconds(before: list[Process], after: list[Process], with_root: bool) -> float:
    """Seconds that a tree has used between two looks at it; without the root only its children's.

    What a process had used before and has ended since is not used twice: a parent that waited for it has got all of
    its times, one that did not, such as Spark's for its Python workers, none of them.
    """
    known, there = {process.pid: process for process in before}, {process.pid for process in after}
    ended: defaultdict[int, float] = defaultdict(float)
    for process in before:
        if process.pid not in there:
            ended[_nearest(process, known, there)] += process.own + process.waited
    total = 0.0
    for process in after:
        earlier = known.get(process.pid)
        own, waited = (earlier.own, earlier.waited) if earlier else (0.0, 0.0)
        total += max(0.0, process.waited - waited - ended[process.pid])
        if with_root or process is not after[0]:
            total += process.own - own
    return total


def _nearest(process: Process, known: dict[int, Process], there: set[int]) -> int:
    """The nearest of a process's ancestors that is still there: in the end the times of waited ones come to it."""
    while process.parent in known and process.parent not in there:
        process = known[process.parent]
    return process.parent


def proportional_bytes(pid: int) -> int:
    """The memory of a process, shared pages divided among their holders; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


@dataclass
class Meter:
    """Measures what happens inside its `with` block; `usage` is there after it.

    `with_self` counts this process too: right for work in it, wrong for a command that it only started.
    """

    with_self: bool = True
    usage: Usage = field(init=False)
    _peak_resident: float = 0
    _peak: int = 0
    _commands: set[str] = field(default_factory=set)
    _done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        adopt_orphans()
        self._sampler = threading.Thread(target=self._sample_until_done, name="meter", daemon=True)
        self._before, self._began = process_tree(os.getpid()), time.monotonic()
        self._sampler.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        wall, after = time.monotonic() - self._began, process_tree(os.getpid())
        cpu = max(1 / _TICK, cpu_seconds(self._before, after, self.with_self))  # in ticks, none is one
        self._done.set()
        self._sampler.join()
        self.usage = Usage(wall, cpu, self._peak, tuple(sorted(self._commands)))

    def _sample_until_done(self) -> None:
        while True:
            self._sample()
            if self._done.wait(_SAMPLE_SECONDS):
                return

    def _sample(self) -> None:
        tree = process_tree(os.getpid())[0 if self.with_self else 1 :]
        self._commands.update(process.command for process in tree)
        resident = sum(process.resident for process in tree)
        if resident > self._peak_resident * _WORTH_A_LOOK:
            self._peak_resident = resident
            self._peak = max(self._peak, sum(proportional_bytes(process.pid) for process in tree))
