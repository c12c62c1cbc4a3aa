"""Queue bodies from a file into RAW, on one core."""

from __future__ import annotations

import os
import statistics
from typing import TYPE_CHECKING, Final

import msgspec

from benchmarks.home import Home, bodies, open_home
from benchmarks.report import Bar, Chart, Mark, Result, Table
from benchmarks.rounds import Contender, Facts, Measurement, interleaved, middle, of_contender, ratio
from benchmarks.suite import Benchmark, Setting

if TYPE_CHECKING:
    from pathlib import Path

_READ, _INGEST = "read the file, decode each body", "into RAW, committed"
_LEAST: Final = 60_000


def run(setting: Setting) -> Result:
    """Ingestion beside the least that any program would have to do with the file; both on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    file = bodies(setting, setting.sizes["bodies"])
    with open_home(setting.folder / "home") as home:
        contenders = [
            Contender(_READ, lambda _: _decode(file)),
            Contender(_INGEST, lambda number: _ingest(home, file, number)),
        ]
        found = interleaved(contenders, max(5, setting.repeats), 1, setting.say)
    return _result(setting, found, file.stat().st_size)


def _decode(file: Path) -> Facts:
    decode, count = msgspec.json.Decoder().decode, 0
    with file.open("rb") as lines:
        for line in lines:
            decode(line)
            count += 1
    return {"bodies": count}


def _ingest(home: Home, file: Path, number: int) -> Facts:
    return {"raw": home.ingest(f"taken_{number}", file)}


def _result(setting: Setting, found: list[Measurement], size: int) -> Result:
    count = setting.sizes["bodies"]
    rates = [count / each.usage.wall_seconds for each in of_contender(found, _INGEST)]
    of_cpu = count / middle(found, _INGEST)
    each = ratio(found, _INGEST, _READ)
    rows = tuple(
        (name, round(count / middle(found, name, "wall_seconds")), round(count / middle(found, name)))
        for name in (_READ, _INGEST)
    )
    columns = ("what", "bodies a second (wall)", "bodies a second of CPU")
    return Result(
        (
            Bar("bodies into RAW on one core", statistics.median(rates), _LEAST, "bodies/s", at_least=True),
            Bar("the same by seconds of CPU, others on the machine apart", of_cpu, _LEAST, "bodies/s", at_least=True),
        ),
        (Table(f"{count:,} bodies of {size // count} bytes, one core", columns, rows),),
        (
            Chart(
                "Ingest on one core",
                "bodies a second",
                (Mark(_INGEST, statistics.median(rates), min(rates), max(rates)),),
                limit=_LEAST,
            ),
        ),
        tuple(found),
        (each,),
        ("After start: packages are loaded; making the topic's table and all commits are counted.",),
    )


BENCHMARK: Final = Benchmark(
    question="How many bodies a second come from a file into RAW on one core?",
    short={"bodies": 100_000},
    full={"bodies": 100_000},
    run=run,
)
