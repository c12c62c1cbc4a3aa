"""A home of many topics, made by the product's own generator: some bodies for each topic and cycle, with faults."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from benchmarks.command import lean_ops
from benchmarks.home import open_home
from lean_ops.operate.generate.order import SCHEMAS, Order, make

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.suite import Setting

_PROCESSES: Final = os.cpu_count() or 1
_DONE: Final = "processed.json"
_FAULTS: Final = {
    "duplicates": 0.03,
    "corrections": 0.05,
    "drift": 0.01,
    "malformed": 0.01,
    "cde_nulls": 0.01,
    "bad_types": 0.01,
    "broken_rules": 0.005,
}


@dataclass(frozen=True, slots=True)
class Fleet:
    """The home, and the files of each topic's cycles, in order."""

    home: Path
    folder: Path
    files: Mapping[str, tuple[str, ...]]

    @classmethod
    def make(cls, setting: Setting, topics: int, messages: int, cycles: int) -> Fleet:
        """Topics with open gates whose data is yet to be ingested."""
        folder = setting.folder / "bodies"
        folder.mkdir(parents=True, exist_ok=True)
        setting.say(f"making {topics} topics, {cycles} cycles of {messages} bodies each")
        made = make(Order("fleet", messages * cycles, _FAULTS, setting.seed % 10**9, topics, files=cycles), folder)
        fleet = cls(setting.folder / "home", folder, {topic: tuple(made.files[topic]) for topic in made.topics})
        fleet._open_gates()
        return fleet

    def _open_gates(self) -> None:
        with open_home(self.home) as home:
            for topic in self.files:
                home.submit(topic, (self.folder / SCHEMAS / f"{topic}.json").read_bytes())

    def ingest(self, cycle: int) -> int:
        """Bring what every topic is sent in a cycle into RAW, by a process for each core; the rows that landed."""
        todo = [(topic, self.folder / files[cycle]) for topic, files in self.files.items()]
        shares = [todo[first::_PROCESSES] for first in range(_PROCESSES)]
        with ProcessPoolExecutor(_PROCESSES, get_context("spawn")) as pool:
            return sum(pool.map(partial(_ingest, self.home), shares))

    def processed(self) -> None:
        """Say that all that was ingested is processed, and drop the bodies: what is left serves another benchmark."""
        shutil.rmtree(self.folder)
        (self.home / _DONE).write_text(json.dumps({"topics": len(self.files)}), encoding="utf-8")


def _ingest(folder: Path, share: Sequence[tuple[str, Path]]) -> int:
    with open_home(folder) as home:
        return sum(home.ingest(topic, file) for topic, file in share)


def processed_home(setting: Setting, topics: int) -> Path:
    """A home of so many topics with nothing left to do: the one that `topics` left, or one made for the purpose."""
    left = setting.neighbour("topics") / "home"
    if (left / _DONE).is_file() and json.loads((left / _DONE).read_text(encoding="utf-8"))["topics"] == topics:
        return left
    fleet = Fleet.make(setting, topics, 20, 1)
    fleet.ingest(0)
    setting.say("processing them once")
    lean_ops(fleet.home, "run")
    fleet.processed()
    return fleet.home
