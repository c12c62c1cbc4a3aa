"""Others with the same rows in the same run: how fast, and what each lost or changed on the way."""

from __future__ import annotations

import logging
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq

from benchmarks.data import Events, schema_text
from benchmarks.home import Home, bodies, open_home
from benchmarks.losses import Expected, Losses
from benchmarks.others import SparkJobs, dlt_load, duck, has_dlt, read_dlt
from benchmarks.report import Chart, Mark, Result, Table
from benchmarks.rounds import Contender, Facts, Measurement, interleaved, middle, of_contender, ratio
from benchmarks.suite import Benchmark, Setting
from lean_ops.model.batch import Zone
from lean_ops.model.tables import TableName

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

_OURS: Final = "lean-ops"
_FROM_JSON, _FROM_JSON_CLEAN = "Spark, inferred schema and from_json", "from_json, no rows with a key twice"
_UDF, _DUCK, _DLT = "Spark, a Python function", "DuckDB, 31 known leaves", "dlt"
_RAW: Final = "raw"
_CLEAN: Final = TableName("floor_db", "raw_clean")
# Malformed rows count as well, also those in single quotes: Spark takes some of them.
_NO_KEY_TWICE: Final = r"""regexp_count(json_payload, '["\']type["\']:') < 2"""


def run(setting: Setting) -> Result:
    """Every contender in turn, then a look at what each has made in the last round."""
    logging.getLogger("SQLQueryContextLogger").disabled = True  # pages about a failure that the table tells in a line
    with open_home(setting.folder / "home") as home:
        work = _Work(home, setting)
        work.prepare()
        contenders = [Contender(name, _tolerant(run_it), prepare) for name, run_it, prepare in work.ways()]
        found = interleaved(contenders, setting.repeats, 1, setting.say)
        setting.say("comparing")
        expected = Expected.of(Events(setting.sizes["events"], setting.seed))
        losses = {name: expected.compared_with(work.output(name)) for name in work.made}
    return _result(setting, found, losses)


def _tolerant(work: Callable[[int], None]) -> Callable[[int], Facts]:
    """The same work; a failure is a result of this comparison, not its end."""

    def attempt(number: int) -> Facts:
        try:
            work(number)
        except Exception as error:  # whatever another tool ends with is what we tell
            return {"failed": _in_short(error)}
        return {"failed": None}

    return attempt


def _in_short(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[0][:160]


class _Work:
    """Each contender's work; `made` has what the last one of each has written."""

    def __init__(self, home: Home, setting: Setting) -> None:
        self._home = home
        self._setting = setting
        self._events = setting.sizes["events"]
        self._jobs = SparkJobs(home, self._events)
        self.made: dict[str, Any] = {}

    def prepare(self) -> None:
        """The RAW table that the others read, and one without the rows that have a key twice."""
        self._home.services.lake.ensure_raw(_RAW)
        self._home.ingest(_RAW, bodies(self._setting, self._events))
        self._home.services.lake.catalog.create_namespace_if_not_exists(_CLEAN.database)
        rows = self._jobs.raw(self._raw).where(_NO_KEY_TWICE)
        rows.writeTo(f"lean_ops.{_CLEAN}").using("iceberg").createOrReplace()

    @property
    def _raw(self) -> TableName:
        return self._home.services.lake.names.raw(_RAW)

    def ways(self) -> list[tuple[str, Callable[[int], None], Callable[[int], None]]]:
        """Each contender with its work and what comes before."""
        ways = [
            (_OURS, self._ours, self._bring),
            (_FROM_JSON, self._keep(_FROM_JSON, lambda n: self._jobs.from_json(self._raw, n)), _nothing),
            (_FROM_JSON_CLEAN, self._keep(_FROM_JSON_CLEAN, lambda n: self._jobs.from_json(_CLEAN, n)), _nothing),
            (_UDF, self._keep(_UDF, lambda n: self._jobs.python_udf(self._raw, n)), _nothing),
            (_DUCK, self._keep(_DUCK, lambda _: duck(self._files(), self._setting.folder / "duck.parquet")), _nothing),
        ]
        if has_dlt():
            ways.append((_DLT, self._keep(_DLT, lambda _: dlt_load(self._files(), self._dlt)), self._clear_dlt))
        return ways

    def _keep(self, name: str, make: Callable[[int], Any]) -> Callable[[int], None]:
        def work(number: int) -> None:
            self.made.pop(name, None)
            self.made[name] = make(number)

        return work

    def _bring(self, number: int) -> None:
        topic = f"ours_{number}"
        self._home.submit(topic, schema_text(topic, curated=False))
        self._home.ingest(topic, bodies(self._setting, self._events))

    def _ours(self, number: int) -> None:
        self._home.run(f"ours_{number}", Zone.STANDARDIZED)
        self.made[_OURS] = self._home.services.lake.names.standardized(f"ours_{number}")

    @property
    def _dlt(self) -> Path:
        return self._setting.folder / "dlt"

    def _clear_dlt(self, _: int) -> None:
        shutil.rmtree(self._dlt, ignore_errors=True)
        self._dlt.mkdir()

    def _files(self) -> list[str]:
        """RAW's data files."""
        tasks = self._home.services.lake.load(self._raw).scan().plan_files()
        return [task.file.file_path.removeprefix("file://") for task in tasks]

    def output(self, name: str) -> pa.Table:
        """What a contender has made, as rows."""
        made = self.made[name]
        if isinstance(made, TableName):
            return self._home.services.lake.load(made).scan().to_arrow()
        return read_dlt(made) if name == _DLT else pq.read_table(made)


def _nothing(_: int) -> None:
    """No preparation."""


def _result(setting: Setting, found: list[Measurement], losses: dict[str, Losses]) -> Result:
    names = list(dict.fromkeys(each.contender for each in found))
    events = setting.sizes["events"]
    rows = tuple(_row(found, name, events, losses.get(name)) for name in names)
    columns = (
        "what",
        "records/s",
        "CPU s",
        "CPU, times ours",
        "rows missing",
        "malformed taken",
        "columns lost",
        "values lost",
        "values changed",
        "failed",
    )
    done = [name for name in names if name in losses]
    marks = [
        Mark(name, *(events / wall for wall in (middle(found, name, "wall_seconds"), *_extremes(found, name))))
        for name in done
    ]
    return Result(
        (),
        (Table(f"{events:,} events", columns, rows),),
        (Chart("Side by side", "records a second", tuple(marks)),),
        tuple(found),
        tuple(ratio(found, name, _OURS) for name in done if name != _OURS),
        (
            "Lost and changed are counted against the texts that the events were made of, value by value.",
            "dlt was not installed."
            if not has_dlt()
            else "A variant column of dlt and its table of a list count as the leaf's own.",
        ),
    )


def _extremes(found: list[Measurement], name: str) -> tuple[float, float]:
    walls = [each.usage.wall_seconds for each in of_contender(found, name)]
    return max(walls), min(walls)


def _row(found: list[Measurement], name: str, events: int, losses: Losses | None) -> tuple[Any, ...]:
    rate = round(events / middle(found, name, "wall_seconds"))
    times = "1" if name == _OURS else f"{ratio(found, name, _OURS).median:.2f}"
    failed = next((each.facts["failed"] for each in of_contender(found, name) if each.facts["failed"]), None)
    if losses is None:
        return (name, "-", "-", "-", *("-" for _ in range(5)), failed)
    return (name, rate, round(middle(found, name), 1), times, *asdict(losses).values(), failed or "no")


BENCHMARK: Final = Benchmark(
    question="How do others do on the same rows, and what do they lose or change?",
    short={"events": 50_000},
    full={"events": 200_000},
    run=run,
)
