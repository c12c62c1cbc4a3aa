"""Commands that find nothing to do, or only read: from process start to exit, and without a JVM."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.command import lean_ops
from benchmarks.fleet import processed_home
from benchmarks.report import Bar, Chart, Mark, Result, Table
from benchmarks.rounds import Contender, Facts, Measurement, interleaved, middle, of_contender
from benchmarks.suite import Benchmark, Setting

if TYPE_CHECKING:
    from pathlib import Path

_RUN: Final = "run, nothing new"
_COMMANDS: Final = {
    _RUN: ("run",),
    "status": ("status",),
    "query of a shared table": ("query", "SELECT zone, sum(records_in) AS n FROM ops.reconciliation_log GROUP BY zone"),
    "query of a topic": ("query", "SELECT count(*) AS n FROM curated.{topic}"),
}
_SECOND, _ABOUT_A_SECOND = 1.0, 1.25


def run(setting: Setting) -> Result:
    """Every command in turn."""
    topics = setting.sizes["topics"]
    home = processed_home(setting, topics)
    topic = f"fleet_{1:0{len(str(topics))}d}"
    contenders = [
        Contender(name, partial(_call, home, *(word.format(topic=topic) for word in words)), with_self=False)
        for name, words in _COMMANDS.items()
    ]
    found = interleaved(contenders, max(5, setting.repeats), 1, setting.say)
    return _result(setting, found)


def _call(home: Path, *words_and_round: str | int) -> Facts:
    *words, _ = words_and_round
    lean_ops(home, *map(str, words))
    return {}


def _result(setting: Setting, found: list[Measurement]) -> Result:
    walls = {name: middle(found, name, "wall_seconds") for name in _COMMANDS}
    bars = [
        Bar(f"{name}, {setting.sizes['topics']} topics", wall, _SECOND if name == _RUN else _ABOUT_A_SECOND, "s")
        for name, wall in walls.items()
    ]
    machines = sum(each.usage.started_java for each in found)
    bars.append(Bar("virtual machines started", machines, 0, "JVMs"))
    rows, marks = [], []
    for name, wall in walls.items():
        each = [measured.usage for measured in of_contender(found, name)]
        lowest, highest = min(usage.wall_seconds for usage in each), max(usage.wall_seconds for usage in each)
        marks.append(Mark(name, wall, lowest, highest))
        peak = max(usage.peak_bytes for usage in each) / 2**20
        rows.append(
            (name, round(wall, 2), f"{lowest:.2f} to {highest:.2f}", round(middle(found, name), 2), round(peak))
        )
    columns = ("command", "wall s", "min to max", "CPU s", "peak MB")
    return Result(
        tuple(bars),
        (Table(f"{setting.sizes['topics']} topics, nothing new", columns, tuple(rows)),),
        (Chart("Idle: process start to exit", "seconds", tuple(marks), limit=_SECOND),),
        tuple(found),
    )


BENCHMARK: Final = Benchmark(
    question="What does a command take that finds nothing to do, or only reads?",
    short={"topics": 100},
    full={"topics": 700},
    run=run,
)
