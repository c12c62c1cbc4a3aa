"""Several commands at once, each with the moment at which it is made to end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from signal import Signals
from typing import TypeAlias

from tests.soak.decisions import End, Moment, RunPlan, Target
from tests.soak.processes import Process, SoakError
from tests.soak.steps import Step, Usual, read_steps, standing, unfinished

LIMIT = 180.0
_LOOK_SECONDS = 0.01
_AT_THE_LATEST = 45.0

IsDue: TypeAlias = Callable[[Process], bool]


def after_seconds(seconds: float) -> IsDue:
    """Due so long after the start."""
    return lambda process: process.seconds >= seconds


class AfterSteps:
    """Due some time after a number of steps, or when nothing seems to come any more."""

    def __init__(self, count: int, pause: float) -> None:
        self._count = count
        self._pause = pause
        self._reached: float | None = None

    def __call__(self, process: Process) -> bool:
        if self._reached is None and process.steps is not None and len(read_steps(process.steps)) >= self._count:
            self._reached = process.seconds
        return process.seconds >= (_AT_THE_LATEST if self._reached is None else self._reached + self._pause)


def due_by(moment: Moment, usual: Usual) -> IsDue:
    """A moment in the life of a run, by what is usual."""
    if moment.is_early:
        return after_seconds(moment.share * usual.start_seconds)
    return AfterSteps(1 + int(moment.share * usual.steps), moment.pause * 2 * usual.step_seconds)


@dataclass
class Actor:
    """A command on the stage. `stood` and `broken` are its open batches when the signal reached it."""

    process: Process
    end: End | None = None
    is_due: IsDue = lambda _: False
    delivered_at: float | None = None
    hit_at: float | None = None
    stood: list[str] = field(default_factory=list)
    broken: dict[str, Step] = field(default_factory=dict)

    @property
    def was_hit(self) -> bool:
        """Whether a signal reached it while it lived."""
        return self.delivered_at is not None

    @property
    def steps(self) -> list[Step]:
        return read_steps(self.process.steps) if self.process.steps is not None else []

    def look(self) -> None:
        """End it if its moment has come; SoakError if it should have ended long ago."""
        process = self.process
        if process.has_ended:
            return
        if self.end is not None and not self.was_hit and self.is_due(process):
            self._hit(self.end)
        since = process.seconds - (self.delivered_at or 0.0)
        if since > LIMIT:
            raise SoakError(f"{process.name} has not ended {since:.0f} s after {self._last_event}:\n{process.words}")

    def _hit(self, end: End) -> None:
        """Where the batches stand is asked at once, before somebody who lives on can go further."""
        if self.process.deliver(end):
            self.delivered_at, self.hit_at = self.process.seconds, time.time()
            steps = self.steps
            self.stood, self.broken = standing(steps), unfinished(steps)
        else:
            self.end = None  # there was no Java yet, or no more: it may finish

    @property
    def _last_event(self) -> str:
        return str(self.end) if self.was_hit else "its start"

    def judge(self) -> None:
        """SoakError if it ended otherwise than it must."""
        code, words = self.process.code, self.process.words
        if "Traceback (most recent call last)" in words and not self._was_interrupted_while_loading(words):
            raise SoakError(f"{self.process.name} ({self._last_event}) shows a traceback:\n{words}")
        if not self.was_hit and code != 0:
            raise SoakError(f"{self.process.name} left with {code}:\n{words}")
        if self.was_hit and self.end is not None and code not in _codes(self.end):
            raise SoakError(f"{self.process.name} left with {code} after {self.end}:\n{words}")

    def _was_interrupted_while_loading(self, words: str) -> bool:
        """Ctrl-C before the program's first own line: then Python itself has the last word."""
        is_interrupt = self.end is not None and self.end.signal is Signals.SIGINT
        began = re.search(r'entrypoints/start\.py", line \d+, in main\n', words)
        return is_interrupt and words.rstrip(": \n").endswith("KeyboardInterrupt") and not began


def _codes(end: End) -> set[int]:
    """How a command may leave after a signal; it may have been done already."""
    if end.target is Target.JAVA:
        return {0, 1}
    return {0, 1, -end.signal, 128 + end.signal}


def play(actors: Sequence[Actor]) -> None:
    """Look after all of them until each has ended."""
    while any(not actor.process.has_ended for actor in actors):
        for actor in actors:
            actor.look()
        time.sleep(_LOOK_SECONDS)
    for actor in actors:
        actor.judge()


def run_arguments(plan: RunPlan) -> tuple[str, ...]:
    """The command line of a planned run."""
    return ("run", "--every", "1s") if plan.repeats else ("run",)
