"""The same batch into tables of different sizes: what grows with the table, and how much."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.data import START
from benchmarks.floor import session_for, spark_table
from benchmarks.home import Home, open_home
from benchmarks.plain_merge import VERSIONS, PlainMerge, name_of
from benchmarks.report import Bar, Chart, Mark, Result, Table
from benchmarks.rounds import Contender, Facts, Measurement, interleaved, middle, ratio
from benchmarks.suite import Benchmark, Setting
from lean_ops.model.batch import Zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_ZONES: Final = (Zone.STANDARDIZED, Zone.CURATED)
_LIMITS: Final = {Zone.STANDARDIZED: (1.5, None), Zone.CURATED: (3.5, 2.0)}
_ROWS_A_DAY: Final = 250_000  # a table grows because time passes: sixteen times the rows are sixteen times the days
_LOADED_AT_ONCE: Final = 4_000_000
_SCHEMA: Final = {
    "order_id": {"json_path": "$.orderId", "type": "STRING", "cde": True},
    "status": {"type": "STRING", "required": True, "enum": ["placed", "paid", "shipped"]},
    "amount": {"type": "DECIMAL(10,2)", "min": 0},
    "customer_id": {"json_path": "$.customer.id", "type": "BIGINT"},
    "customer_email": {"json_path": "$.customer.email", "type": "STRING"},
    "updated_at": {"json_path": "$.updatedAt", "type": "TIMESTAMP", "required": True},
}


def run(setting: Setting) -> Result:
    """Both hops into three sizes in turn, then a MERGE alone into tables of both formats."""
    with open_home(setting.folder / "home") as home:
        work = _Work(home, setting)
        for rows in work.sizes:
            work.load(rows)
        found = interleaved(list(work.contenders()), setting.repeats, 1, setting.say)
        plain = PlainMerge(home, setting.sizes["batch"])
        for rows in work.sizes:
            plain.copy(home.services.lake.names.curated(_topic(rows)), rows)
        found += interleaved(list(plain.contenders(work.sizes)), setting.repeats, 1, setting.say)
    return _result(setting, found)


def _name(zone: Zone, rows: int) -> str:
    return f"{zone} into {rows / 1e6:g}M rows"


class _Work:
    """A topic for each size in one home."""

    def __init__(self, home: Home, setting: Setting) -> None:
        self._home = home
        self._setting = setting
        self.sizes = sizes_of(setting)

    def load(self, rows: int) -> None:
        """A topic with so many rows in every zone: RAW by Spark, the other zones by the product itself."""
        topic = _topic(rows)
        self._setting.say(f"loading {rows:,} rows")
        self._home.submit(topic, _schema_text(topic))
        self._home.services.lake.ensure_raw(topic)
        for first in range(0, rows, _LOADED_AT_ONCE):
            self._append_raw(topic, first, min(_LOADED_AT_ONCE, rows - first))
            self._home.run(topic)

    def _append_raw(self, topic: str, first: int, count: int) -> None:
        session = session_for(self._home, count)
        rows = session.range(first, first + count, 1, 2).selectExpr(*_raw_columns(topic))
        writer = rows.writeTo(spark_table(self._home.services.lake.names.raw(topic)))
        writer.option("distribution-mode", "none").option("fanout-enabled", "true").append()

    def contenders(self) -> Iterator[Contender]:
        """Each hop of each size; a size's batch is ingested before its first hop."""
        for rows in self.sizes:
            for zone in _ZONES:
                prepare = self._bring(rows) if zone is Zone.STANDARDIZED else _nothing
                yield Contender(_name(zone, rows), self._hop(rows, zone), prepare)

    def _bring(self, rows: int) -> Callable[[int], None]:
        def prepare(number: int) -> None:
            file = self._setting.folder / "batch.jsonl"
            _write_batch(file, rows, number, self._setting)
            self._home.ingest(_topic(rows), file)

        return prepare

    def _hop(self, rows: int, zone: Zone) -> Callable[[int], Facts]:
        def work(_: int) -> Facts:
            counts = self._home.run(_topic(rows), zone)[zone]
            return {"records_in": counts.records_in, "inserted": counts.inserted, "updated": counts.updated}

        return work


def _nothing(_: int) -> None:
    """The hop before has brought the rows."""


def sizes_of(setting: Setting) -> tuple[int, ...]:
    """The three tables' sizes."""
    return tuple(setting.sizes[name] for name in ("small", "middle", "large"))


def _topic(rows: int) -> str:
    return f"orders_{rows}"


def _schema_text(topic: str) -> bytes:
    schema = {"schema_version": "1.0.0", "table_name": topic, "envelope_columns": {}, "payload_columns": _SCHEMA}
    return json.dumps({**schema, "version_column": "updated_at", "zones": [str(zone) for zone in _ZONES]}).encode()


def _raw_columns(topic: str) -> list[str]:
    """RAW rows of numbers, by Spark: message and key by number, published over the table's days in order."""
    micros = int(START.timestamp() * 1_000_000)
    published = f"timestamp_micros({micros}L + id * {86_400_000_000 // _ROWS_A_DAY}L)"
    payload = (
        """concat('{"orderId":"', id, '","status":"', elt(int(id % 3) + 1, 'placed', 'paid', 'shipped'),"""
        """ '","amount":', id % 90000, '.50,"customer":{"id":', pmod(xxhash64(id), 1000000),"""
        """ ',"email":"c', pmod(xxhash64(id), 1000000), '@example.com"},"updatedAt":"',"""
        f""" date_format({published}, "yyyy-MM-dd'T'HH:mm:ss'Z'"), '"}}')"""
    )
    return [
        f"'{topic}' AS topic_name",
        "concat('m-', id) AS message_id",
        "concat('order-', id) AS idempotency_key",
        "CAST(NULL AS string) AS period_reference",
        "CAST(NULL AS string) AS correlation_id",
        f"{published} AS publish_time",
        f"CAST({int(START.timestamp())} + id DIV 1000 AS bigint) AS ingestion_ts",
        f"{payload} AS json_payload",
    ]


def _write_batch(file: Path, rows: int, number: int, setting: Setting) -> None:
    """A batch of the day after the table's last: two thirds new keys, the rest newer versions of keys that are there.

    Of the newer versions nine in ten are of recent keys and one in ten is of any key.
    """
    batch, dice = setting.sizes["batch"], random.Random(f"{setting.seed}/{rows}/{number}")  # noqa: S311  no secret
    new, recent = batch * 2 // 3, batch * 3 // 10
    recent_keys = range(max(0, rows - max(batch * 10, _ROWS_A_DAY)), rows)
    keys = [10**9 * (number + 2) + place for place in range(new)]
    keys += dice.sample(recent_keys, recent) + dice.sample(range(rows), batch - new - recent)
    time = START + timedelta(days=rows // _ROWS_A_DAY + 1, seconds=number * 900)
    text = time.isoformat().replace("+00:00", "Z")
    with file.open("w", encoding="utf-8") as out:
        for place, key in enumerate(keys):
            payload = (
                f'{{"orderId":"{key}","status":"paid","amount":{place}.50,'
                f'"customer":{{"id":{key % 1000000},"email":"c@example.com"}},"updatedAt":"{text}"}}'
            )
            out.write(
                f'{{"message_id":"b{number}-{place}","publish_time":"{text}","idempotency_key":"order-{key}",'
                f'"payload":{payload}}}\n'
            )


def _result(setting: Setting, found: Sequence[Measurement]) -> Result:
    sizes = sizes_of(setting)
    named = _rows_of_tables()
    growth = [ratio(found, name(sizes[-1]), name(sizes[0])) for _, name in named]
    words = f"{sizes[-1] / 1e6:g}M over {sizes[0] / 1e6:g}M rows"
    bars = [
        Bar(f"{zone}: CPU, {words}", each.median, _LIMITS[zone][0], goal=_LIMITS[zone][1])
        for zone, each in zip(_ZONES, growth, strict=False)
    ]
    marks = [
        Mark(label, each.median, each.lowest, each.highest) for (label, _), each in zip(named, growth, strict=True)
    ]
    chart = Chart(f"Growth: CPU of the same batch, {words}", "times", tuple(marks))
    return Result(tuple(bars), tuple(_tables(setting, found)), (chart,), tuple(found), tuple(growth), _notes())


def _rows_of_tables() -> list[tuple[str, Callable[[int], str]]]:
    """What is compared, and its contender's name for a size: the hops first, then the MERGE of each format."""
    hops = [(f"{zone}, whole hop", partial(_name, zone)) for zone in _ZONES]
    return [*hops, *((f"MERGE alone, v{version}", partial(name_of, version=version)) for version in VERSIONS)]


def _tables(setting: Setting, found: Sequence[Measurement]) -> Iterator[Table]:
    sizes = sizes_of(setting)
    for quantity, words in (("cpu_seconds", "CPU seconds"), ("wall_seconds", "wall seconds")):
        rows = []
        for label, name in _rows_of_tables():
            costs = [round(middle(found, name(size), quantity), 2) for size in sizes]
            each = ratio(found, name(sizes[-1]), name(sizes[0]), quantity)
            rows.append((label, *costs, f"{each.median:.2f} ({each.lowest:.2f} to {each.highest:.2f})"))
        columns = ("what", *(f"{size / 1e6:g}M" for size in sizes), "largest over smallest (min to max)")
        yield Table(f"{words} of a batch of {setting.sizes['batch']:,}", columns, tuple(rows))


def _notes() -> tuple[str, ...]:
    return (
        f"Each table holds {_ROWS_A_DAY:,} rows a day; the batch is of the day after its last.",
        "RAW's first rows are written by Spark, everything else by the product; a table grows by one batch a round.",
        "MERGE alone is plain Spark into copies in 16 buckets of the key, in both formats.",
    )


BENCHMARK: Final = Benchmark(
    question="What does the same batch cost as its table grows?",
    short={"small": 200_000, "middle": 1_000_000, "large": 4_000_000, "batch": 30_000},
    full={"small": 1_000_000, "middle": 4_000_000, "large": 16_000_000, "batch": 30_000},
    run=run,
)
