"""Standardized to Curated: 28 typed columns with rules and error routing, against casting and writing alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.data import LEAVES, Events, column_of, schema_text, write_bodies
from benchmarks.floor import append, empty_copy, session_for, spark_table
from benchmarks.home import Home, bodies, open_home
from benchmarks.report import Bar, Chart, Mark, Result
from benchmarks.rounds import Contender, Facts, Measurement, interleaved, ratio
from benchmarks.standardize import cost_table
from benchmarks.suite import Benchmark, Setting
from lean_ops.model.batch import Zone
from lean_ops.model.tables import CURATED_AUDIT, ENVELOPE_NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FLAT: Final = "flat"
_FLOOR, _LOAD, _MERGE = "floor: cast and write only", "first load of the table", "steady MERGE into that table"
_LATER: Final = 10**9


def run(setting: Setting) -> Result:
    """The floor, a first load, and a MERGE into what was loaded, in turn."""
    with open_home(setting.folder / "home") as home:
        work = _Work(home, setting)
        work.prepare_load(-1, topic=_FLAT)
        contenders = [
            Contender(_FLOOR, work.floor),
            Contender(_LOAD, work.curate, work.prepare_load),
            Contender(_MERGE, work.curate, work.prepare_merge),
        ]
        found = interleaved(contenders, setting.repeats, 1, setting.say)
    return _result(setting, found)


class _Work:
    """The contenders' work on one home; every round has a topic of its own."""

    def __init__(self, home: Home, setting: Setting) -> None:
        self._home = home
        self._setting = setting
        self._events = setting.sizes["events"]

    def prepare_load(self, number: int, topic: str | None = None) -> None:
        """A topic whose rows are standardized and not yet curated."""
        name = topic or _topic(number)
        self._home.submit(name, schema_text(name))
        self._home.ingest(name, bodies(self._setting, self._events))
        self._home.run(name, Zone.STANDARDIZED)

    def prepare_merge(self, number: int) -> None:
        """Two thirds new keys, one third newer versions of keys that are there."""
        self._home.ingest(_topic(number), self._changes())
        self._home.run(_topic(number), Zone.STANDARDIZED)

    def floor(self, number: int) -> Facts:
        """The same rows and columns by plain casts: no rules, no errors, nothing counted."""
        names = self._home.services.lake.names
        to = empty_copy(self._home, names.curated(_FLAT), f"curated_{number + 1}")
        session = session_for(self._home, self._events)
        append(session.table(spark_table(names.standardized(_FLAT))).selectExpr(*_plain_casts()), to)
        return {}

    def curate(self, number: int) -> Facts:
        counts = self._home.run(_topic(number), Zone.CURATED)[Zone.CURATED]
        return {
            "records_in": counts.records_in,
            "inserted": counts.inserted,
            "updated": counts.updated,
            "errors": counts.errors,
        }

    def _changes(self) -> Path:
        count = self._setting.sizes["merged"]
        file = self._setting.folder / "changes.jsonl"
        if not file.exists():
            events, sent = Events(count, self._setting.seed, first=_LATER), Events(self._events, self._setting.seed)
            step = max(1, self._events // count)
            keys = [sent.key(n * step) if n % 3 == 0 else events.key(_LATER + n) for n in range(count)]
            write_bodies(events, file, keys)
        return file


def _topic(number: int) -> str:
    return f"shop_{number + 1}"


def _plain_casts() -> list[str]:
    columns = {column_of(leaf): rules for leaf, rules in LEAVES.items() if rules is not None}
    casts = [f"{_cast(name, rules['type'], rules.get('format'))} AS `{name}`" for name, rules in columns.items()]
    audit = {"first_seen_ts": "current_timestamp()", "last_updated_ts": "current_timestamp()"}
    return [*ENVELOPE_NAMES, *casts, *(f"{audit.get(c.name, repr('1.0.0'))} AS `{c.name}`" for c in CURATED_AUDIT)]


def _cast(name: str, kind: str, time_format: str | None) -> str:
    if time_format == "epoch_ms":
        return f"timestamp_millis(try_cast(`{name}` AS bigint))"
    return f"`{name}`" if kind == "STRING" else f"try_cast(`{name}` AS {kind})"


def _result(setting: Setting, found: Sequence[Measurement]) -> Result:
    events, merged = setting.sizes["events"], setting.sizes["merged"]
    load, merge = ratio(found, _LOAD, _FLOOR), ratio(found, _MERGE, _FLOOR)
    return Result(
        (Bar("first load, CPU over cast and write", load.median, 1.5),),
        (cost_table(found, (_FLOOR, _LOAD), events), cost_table(found, (_MERGE,), merged)),
        (
            Chart(
                "Curate: CPU as a multiple of cast and write",
                "times",
                tuple(
                    Mark(words, each.median, each.lowest, each.highest)
                    for words, each in ((f"first load of {events:,}", load), (f"MERGE of {merged:,}", merge))
                ),
                limit=1.5,
            ),
        ),
        tuple(found),
        (load, merge),
        ("The MERGE takes one third of its rows as newer versions of keys spread evenly over the table.",),
    )


BENCHMARK: Final = Benchmark(
    question="Standardized to Curated: how much more than casting and writing the same columns?",
    short={"events": 200_000, "merged": 30_000},
    full={"events": 1_000_000, "merged": 30_000},
    run=run,
)
