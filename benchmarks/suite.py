"""Which benchmarks there are, and what one is: a question, sizes for a short and a full run, and a function."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.report import Result

# In this order: `idle` looks at the home that `topics` leaves behind, and makes one itself only if there is none.
NAMES: Final = ("standardize", "curate", "growth", "topics", "idle", "ingest", "side_by_side", "memory")
DEFAULT_SEED: Final = 20260206


@dataclass(frozen=True, slots=True)
class Setting:
    """How a benchmark is run: where it may write, how much, how often, with which seed."""

    folder: Path
    sizes: Mapping[str, int]
    repeats: int
    seed: int
    say: Callable[[str], None]

    def neighbour(self, name: str) -> Path:
        """The working folder of another benchmark."""
        return self.folder.parent / name


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One question about cost, and how to answer it."""

    question: str
    short: Mapping[str, int]
    full: Mapping[str, int]
    run: Callable[[Setting], Result]

    def sizes(self, full: bool, given: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a run; of those given by hand the ones that this benchmark has."""
        chosen: dict[str, int] = dict(self.full if full else self.short)
        return chosen | {key: value for key, value in given.items() if key in chosen}


def load(name: str) -> Benchmark:
    """A benchmark by its name, which is its module's."""
    found: Any = import_module(f"benchmarks.{name}").BENCHMARK
    assert isinstance(found, Benchmark)  # noqa: S101  every module of NAMES has one
    return found
