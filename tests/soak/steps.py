"""The steps that runs have told of: how far a killed batch was, what is usual, and which batches were recovered."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

LAST_STEP = "checkpoint moved"
FIRST_STEP = "intent stored"


class Step(NamedTuple):
    """A step of a batch that is done."""

    at: float
    batch_id: str
    topic: str
    zone: str
    name: str


def read_steps(path: Path) -> list[Step]:
    """All steps told so far; a line that is being written is left for the next time."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [Step(float(at), *rest) for at, *rest in (line.split("\t") for line in lines)]


def unfinished(steps: list[Step]) -> dict[str, Step]:
    """The last step of each batch that did not come to its end."""
    last = {step.batch_id: step for step in steps}
    return {batch_id: step for batch_id, step in last.items() if step.name != LAST_STEP}


def standing(steps: list[Step]) -> list[str]:
    """Where the work stands, in words: after which step each open batch is."""
    if not steps:
        return ["before the first batch"]
    return [f"{step.zone}: {step.name}" for step in unfinished(steps).values()] or ["between batches"]


@dataclass
class Usual:
    """What is usual for a run, learnt from those before: seconds until Spark is up, steps, seconds between them."""

    start_seconds: float = 8.0
    steps: float = 40.0
    step_seconds: float = 0.3

    def learn(self, steps: list[Step], began: float, finished: bool) -> None:
        """Take a run into account; how many steps there are shows only in one that has finished."""
        worked = [step.at for step in steps if step.name != FIRST_STEP]
        if not worked:
            return
        self.start_seconds = nearer(self.start_seconds, worked[0] - began)
        if len(worked) > 1:
            self.step_seconds = nearer(self.step_seconds, (worked[-1] - worked[0]) / (len(worked) - 1))
        if finished:
            self.steps = nearer(self.steps, len(steps))


def nearer(old: float, new: float) -> float:
    """What is usual after one more was seen."""
    return 0.7 * old + 0.3 * new


@dataclass
class Journal:
    """Batches over all runs: those that were taken up again and finished, and how long that took.

    It is counted from the start of the run that finished them, or from the signal if the same run went on.
    """

    open: dict[str, Step] = field(default_factory=dict)
    recovered: dict[str, int] = field(default_factory=dict)
    longest_recovery: float = 0.0

    def add(self, steps: list[Step], began: float, broken: dict[str, Step], broken_at: float | None) -> None:
        """Take a run's steps into account; `broken` are the batches that were open when a signal came."""
        self.open |= broken
        for step in steps:
            if step.name == LAST_STEP and step.batch_id in self.open:
                stood = self.open.pop(step.batch_id)
                since = broken_at if broken_at is not None and step.batch_id in broken else began
                words = f"{stood.zone}: {stood.name}"
                self.recovered[words] = self.recovered.get(words, 0) + 1
                self.longest_recovery = max(self.longest_recovery, step.at - since)
        self.open |= unfinished(steps)
