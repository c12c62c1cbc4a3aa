"""Hundreds of small topics: a cycle of both hops from process start to exit, then many cycles in a row."""

from __future__ import annotations

import statistics
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.command import lean_ops, unbalanced
from benchmarks.cycles import CycleProcess
from benchmarks.fleet import Fleet
from benchmarks.report import Bar, Chart, Result, Table
from benchmarks.rounds import Contender, Facts, Measurement, measure
from benchmarks.suite import Benchmark, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ALL_TOPICS: Final = 700
_WALL_SECONDS: Final = 240
_PEAK_MB: Final = 4096
_FLAT: Final = 1.25  # what a row of cycles may differ on a noisy machine and still be called flat
_FIRST, _COLD, _WARM = "the topics' first cycle", "lean-ops run", "one of the cycles in a row"
_NAMES: Final = {_FIRST: "the topics' first, start to exit", _COLD: "start to exit"}


def run(setting: Setting) -> Result:
    """The topics' first cycle, which makes all tables and columns; cycles in a row; one more from start to exit.

    The first and the last are a `lean-ops run` each, those in between one process, as `lean-ops run --every` has them.
    """
    topics, cycles = setting.sizes["topics"], setting.sizes["cycles"]
    fleet = Fleet.make(setting, topics, setting.sizes["records"], cycles + 2)
    found = [_started(setting, fleet, _FIRST, 0)]
    with CycleProcess(fleet.home) as process:
        for number in range(1, cycles + 1):
            fleet.ingest(number)
            warm = Contender(_WARM, lambda _: process.cycle(), with_self=False)
            found.append(_said(setting, measure(warm, number)))
    found.append(_started(setting, fleet, _COLD, cycles + 1))
    wrong = unbalanced(fleet.home)
    fleet.processed()
    return _result(setting, found, len(wrong))


def _started(setting: Setting, fleet: Fleet, name: str, number: int) -> Measurement:
    fleet.ingest(number)
    return _said(setting, measure(Contender(name, partial(_cold, fleet), with_self=False), number))


def _cold(fleet: Fleet, _: int) -> Facts:
    outcomes = lean_ops(fleet.home, "run")["topics"]
    failed = [f"{each['topic']}: {each['reason']}" for each in outcomes if each["status"] != "SUCCEEDED"]
    return {"topics": len(outcomes), "failed": failed}


def _said(setting: Setting, found: Measurement) -> Measurement:
    usage = found.usage
    setting.say(
        f"cycle {found.round}: {usage.wall_seconds:.1f} s, {usage.cpu_seconds:.1f} s of CPU,"
        f" {usage.peak_bytes / 2**20:.0f} MB, {len(found.facts['failed'])} failed"
    )
    return found


def _result(setting: Setting, found: Sequence[Measurement], wrong: int) -> Result:
    topics, cold, warm = setting.sizes["topics"], found[-1], found[1:-1]
    failed = sum(len(each.facts["failed"]) for each in found)
    peak = max(each.usage.peak_bytes for each in found) / 2**20
    bars = [
        *(_started_in_time(found[0], cold) if topics >= _ALL_TOPICS else ()),  # of fewer topics the limit says nothing
        Bar("peak memory of all processes", peak, _PEAK_MB, "MB"),
        Bar("topics that failed, all cycles", failed, 0, "topics"),
        Bar("topics whose books do not balance", wrong, 0, "topics"),
        *_flatness(warm),
    ]
    lines = (("wall seconds", tuple(each.usage.wall_seconds for each in found)),)
    memory = (("peak MB", tuple(each.usage.peak_bytes / 2**20 for each in found)),)
    return Result(
        tuple(bars),
        (_table(setting, found),),
        (
            Chart(
                "Cycles in a row: wall time, the first and the last from start to exit",
                "seconds",
                lines=lines,
                limit=_WALL_SECONDS if topics >= _ALL_TOPICS else None,
            ),
            Chart("Cycles in a row: memory", "MB", lines=memory, limit=_PEAK_MB),
        ),
        tuple(found),
        notes=("Every cycle's bodies are ingested before it, which is not measured.",),
    )


def _started_in_time(first: Measurement, last: Measurement) -> Iterator[Bar]:
    """Both runs from process start to exit: in a new home, and in one that has all of the cycles behind it."""
    for words, each in (("first cycle of a home", first), ("a process in a home of many cycles", last)):
        yield Bar(f"{words}, start to exit", each.usage.wall_seconds, _WALL_SECONDS, "s")


def _flatness(warm: Sequence[Measurement]) -> list[Bar]:
    """The last third of the cycles against the middle one; in the first, Java still compiles and its heap grows."""
    part = len(warm) // 3
    if not part:
        return []
    bars = []
    for quantity, words in (("wall_seconds", "time"), ("peak_bytes", "memory")):
        values = [getattr(each.usage, quantity) for each in warm]
        value = statistics.median(values[-part:]) / statistics.median(values[part:-part])
        bars.append(Bar(f"{words}: last third of {len(warm)} cycles over the middle", value, _FLAT))
    return bars


def _table(setting: Setting, found: Sequence[Measurement]) -> Table:
    rows = tuple(
        (
            _NAMES.get(each.contender, f"cycle {each.round}"),
            round(each.usage.wall_seconds, 1),
            round(each.usage.cpu_seconds, 1),
            round(each.usage.peak_bytes / 2**20),
            each.facts["topics"],
            len(each.facts["failed"]),
        )
        for each in found
    )
    columns = ("cycle", "wall s", "CPU s", "peak MB", "topics done", "failed")
    return Table(f"{setting.sizes['topics']} topics, {setting.sizes['records']} bodies each", columns, rows)


BENCHMARK: Final = Benchmark(
    question="Hundreds of topics with a few new records each: what does a cycle take, and does it stay so?",
    short={"topics": 100, "records": 200, "cycles": 3},
    full={"topics": 700, "records": 200, "cycles": 20},
    run=run,
)
