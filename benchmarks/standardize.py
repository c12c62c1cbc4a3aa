"""RAW to Standardized: parsing, discovery, dedup, ledger and checkpoint, against writing rows that are flat already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.data import schema_text
from benchmarks.floor import append, empty_copy, session_for, spark_table
from benchmarks.home import Home, bodies, open_home
from benchmarks.report import Bar, Chart, Mark, Result, Table
from benchmarks.rounds import Contender, Facts, Measurement, interleaved, middle, of_contender, ratio
from benchmarks.suite import Benchmark, Setting
from lean_ops.model.batch import Zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FLAT: Final = "flat"
_FLOOR, _FIRST, _STEADY = "floor: flat rows, read and written", "first batch: every column is new", "later batch"


def run(setting: Setting) -> Result:
    """The floor, a first batch and a later batch in turn."""
    with open_home(setting.folder / "home") as home:
        work = _Work(home, setting)
        work.make_flat()
        contenders = [
            Contender(_FLOOR, work.floor),
            Contender(_FIRST, work.standardize("first"), work.prepare_first),
            Contender(_STEADY, work.standardize("steady"), work.prepare_steady),
        ]
        found = interleaved(contenders, setting.repeats, 1, setting.say)
    return _result(setting, found)


class _Work:
    """The contenders' work on one home; every round has topics of its own."""

    def __init__(self, home: Home, setting: Setting) -> None:
        self._home = home
        self._events = setting.sizes["events"]
        self._known = setting.sizes["known"]
        self._setting = setting

    def make_flat(self) -> None:
        """The table that the floor reads: what the product itself makes of the events."""
        self._load(_FLAT)
        self._home.run(_FLAT)

    def floor(self, number: int) -> Facts:
        names = self._home.services.lake.names
        to = empty_copy(self._home, names.standardized(_FLAT), f"standardized_{number + 1}")
        session = session_for(self._home, self._events)
        append(session.table(spark_table(names.standardized(_FLAT))), to)
        return {}

    def prepare_first(self, number: int) -> None:
        self._load(_topic("first", number))

    def prepare_steady(self, number: int) -> None:
        """A small batch before: the columns are there, as in every batch but a topic's first."""
        topic = _topic("steady", number)
        self._home.submit(topic, schema_text(topic, curated=False))
        self._home.ingest(topic, bodies(self._setting, self._known, first=10**9))
        self._home.run(topic)
        self._home.ingest(topic, bodies(self._setting, self._events))

    def standardize(self, kind: str) -> Callable[[int], Facts]:
        def work(number: int) -> Facts:
            counts = self._home.run(_topic(kind, number))[Zone.STANDARDIZED]
            return {"records_in": counts.records_in, "inserted": counts.inserted, "errors": counts.errors}

        return work

    def _load(self, topic: str) -> None:
        self._home.submit(topic, schema_text(topic, curated=False))
        self._home.ingest(topic, bodies(self._setting, self._events))


def _topic(kind: str, number: int) -> str:
    return f"{kind}_{number + 1}"


def _result(setting: Setting, found: Sequence[Measurement]) -> Result:
    ratios = [ratio(found, of, _FLOOR) for of in (_FIRST, _STEADY)]
    words = ("a first batch, CPU over the floor", "a later batch, CPU over the floor")
    bars = [Bar(text, each.median, 2.0, goal=1.6) for text, each in zip(words, ratios, strict=True)]
    marks = [Mark(each.of, each.median, each.lowest, each.highest) for each in ratios]
    return Result(
        tuple(bars),
        (cost_table(found, (_FLOOR, _FIRST, _STEADY), setting.sizes["events"]),),
        (Chart("Standardize: CPU as a multiple of the floor", "times", tuple(marks), limit=2.0),),
        tuple(found),
        tuple(ratios),
        ("The floor reads the product's own Standardized rows and writes a table with the same columns and settings.",),
    )


def cost_table(found: Sequence[Measurement], names: Sequence[str], events: int) -> Table:
    """What each contender took; the first is what the others, if there are any, are compared with."""
    compared = len(names) > 1
    times = ("CPU, times the floor (min to max)",) if compared else ()
    rows = []
    for name in names:
        cpu, wall = middle(found, name), middle(found, name, "wall_seconds")
        peak = max(measured.usage.peak_bytes for measured in of_contender(found, name))
        cells = (_times(found, name, names[0]),) if compared else ()
        rows.append((name, round(cpu, 1), round(wall, 1), round(events / wall), *cells, round(peak / 2**20)))
    return Table(f"{events:,} events", ("what", "CPU s", "wall s", "records/s", *times, "peak MB"), tuple(rows))


def _times(found: Sequence[Measurement], name: str, first: str) -> str:
    if name == first:
        return "1"
    each = ratio(found, name, first)
    return f"{each.median:.2f} ({each.lowest:.2f} to {each.highest:.2f})"


BENCHMARK: Final = Benchmark(
    question="RAW to Standardized: how much more than writing the same rows, already flat?",
    short={"events": 200_000, "known": 20_000},
    full={"events": 1_000_000, "known": 20_000},
    run=run,
)
