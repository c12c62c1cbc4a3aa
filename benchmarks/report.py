"""What a benchmark found, as data: bars, ratios, tables and raw numbers, written as one JSON document."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.rounds import Measurement, Ratio

_PACKAGES: Final = ("pyspark", "pyiceberg", "pyarrow", "duckdb", "dlt", "lean-ops")
_ICEBERG: Final = "iceberg-spark-runtime"


@dataclass(frozen=True, slots=True)
class Bar:
    """A promise and what was measured: at most the limit, or `at_least` it; `goal` is what we would like."""

    words: str
    value: float
    limit: float
    unit: str = "times"
    at_least: bool = False
    goal: float | None = None

    @property
    def met(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def limit_words(self) -> str:
        """The limit as a person reads it."""
        goal = "" if self.goal is None else f" (goal {self.goal:g})"
        return f"{'at least' if self.at_least else 'at most'} {self.limit:g} {self.unit}{goal}"


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers side by side; every row has a cell for each column."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A bar of a chart, with the range that its rounds had."""

    label: str
    value: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Chart:
    """What the plot of a benchmark shows: bars, or lines over the number of a cycle; `limit` is drawn across."""

    title: str
    unit: str
    marks: tuple[Mark, ...] = ()
    lines: tuple[tuple[str, tuple[float, ...]], ...] = ()
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """All that one benchmark found."""

    bars: tuple[Bar, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    measurements: tuple[Measurement, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    notes: tuple[str, ...] = field(default=())


def document(name: str, question: str, result: Result, run: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON document of a benchmark; `run` says how it was called: command, seed, sizes, repeats."""
    return {
        "name": name,
        "question": question,
        "run": dict(run),
        "machine": machine(),
        "versions": versions(),
        "bars": [{**asdict(bar), "met": bar.met, "limit_words": bar.limit_words} for bar in result.bars],
        "ratios": [_ratio(each) for each in result.ratios],
        "tables": [asdict(table) for table in result.tables],
        "notes": list(result.notes),
        "measurements": [asdict(each) for each in result.measurements],
    }


def crashed(name: str, question: str, reason: str, run: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a benchmark that did not come to its end."""
    return {"name": name, "question": question, "run": dict(run), "machine": machine(), "crashed": reason}


def _ratio(each: Ratio) -> dict[str, Any]:
    return {**asdict(each), "median": each.median, "lowest": each.lowest, "highest": each.highest}


def machine() -> dict[str, Any]:
    """What the numbers depend on, without the machine's name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": os.cpu_count(), "memory_gib": round(memory / 2**30, 1), "system": platform.system()}


def versions() -> dict[str, str]:
    """The versions that were measured; a package that is not installed is left out."""
    found = {"python": platform.python_version(), "iceberg": _iceberg_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _iceberg_version() -> str:
    from lean_ops.lake.jars import JARS

    return next(jar.version for jar in JARS if jar.artifact.startswith(_ICEBERG))


def write_document(folder: Path, found: Mapping[str, Any]) -> Path:
    """The document as a file of the benchmark's name."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{found['name']}.json"
    file.write_text(json.dumps(found, indent=2, ensure_ascii=False, default=str) + "\n", encoding="utf-8")
    return file


def readable(value: float) -> str:
    """A number for a person: four digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def summary_rows(documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str, str]]:
    """A line per bar: benchmark, what, measured, promised, met or not; one line for a benchmark that crashed."""
    rows = [("benchmark", "what", "measured", "bar", "")]
    for found in documents:
        if "crashed" in found:
            rows.append((found["name"], found["crashed"].splitlines()[-1][:90], "-", "-", "CRASHED"))
        for bar in found.get("bars", ()):
            measured = f"{readable(bar['value'])} {bar['unit']}"
            rows.append((found["name"], bar["words"], measured, bar["limit_words"], "met" if bar["met"] else "MISSED"))
    return rows


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """Rows in columns that are as wide as they must be."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)
