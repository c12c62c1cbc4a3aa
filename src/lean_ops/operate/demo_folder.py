"""The demo's folder in a home: the bodies of its last run, and what must have become of those of every run."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.operate.generate.order import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from lean_ops.operate.demo import Day


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """Has a file of fates for each run, of all that it sent."""

    path: Path

    @contextmanager
    def sending(self, days: Sequence[Day]) -> Iterator[dict[str, Path]]:
        """Write a day's bodies, a file for each topic; the run's fates have their name when they are sent.

        A run that was stopped between the two may have sent any part of them, so it has no fates.
        """
        files = {day.topic: self.path / day.part.file for day in days}
        for day in days:
            files[day.topic].parent.mkdir(parents=True, exist_ok=True)
            files[day.topic].write_bytes(day.content)
        with whole_file(self.path / f"fates-{days[0].story.seed}.jsonl") as fates:
            fates.writelines(day.fates for day in days)
            yield files

    def fates(self) -> list[Path]:
        """The fates of all runs that have any, the oldest run first."""
        return sorted(self.path.glob("fates-*.jsonl"))

    @property
    def tells_all(self) -> bool:
        """Whether no run was stopped while it sent its bodies."""
        return not any(self.path.glob(".fates-*.partial"))
