"""Batches that do not fit: a gigabyte of one topic, and payloads whose keys are all new, with a small driver."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from benchmarks.command import lean_ops, unbalanced
from benchmarks.data import START, schema_text
from benchmarks.home import bodies, open_home
from benchmarks.report import Bar, Chart, Mark, Result, Table
from benchmarks.rounds import Contender, Facts, Measurement, measure, middle, of_contender
from benchmarks.suite import Benchmark, Setting

if TYPE_CHECKING:
    from pathlib import Path

_LARGE, _NEW_KEYS = "one large batch, both hops", "every payload's keys are new"
_PAYLOAD_BYTES: Final = 770
_KEYS_EACH: Final = 4
_DRIVER: Final = "2g"


def run(setting: Setting) -> Result:
    """Each batch in a `lean-ops run` of its own; balanced or not is `reconcile`'s word."""
    home = setting.folder / "home"
    found: list[Measurement] = []
    wrong: list[str] = []
    for number in range(1, setting.repeats + 1):
        for name, file in (
            (_LARGE, bodies(setting, setting.sizes["megabytes"] * 2**20 // _PAYLOAD_BYTES)),
            (_NEW_KEYS, _new_keys(setting, setting.sizes["payloads"])),
        ):
            topic = f"{'large' if name == _LARGE else 'keys'}_{number}"
            contender = Contender(name, partial(_run, home, topic), partial(_bring, home, topic, file), with_self=False)
            found.append(measure(contender, number))
            usage = found[-1].usage
            setting.say(f"round {number}: {name}: {usage.wall_seconds:.1f} s, {usage.peak_bytes / 2**20:.0f} MB")
            wrong += unbalanced(home, topic)
    return _result(setting, found, len(wrong))


def _bring(home: Path, topic: str, file: Path, _: int) -> None:
    with open_home(home) as made:
        made.submit(topic, schema_text(topic))
        made.ingest(topic, file)


def _run(home: Path, topic: str, _: int) -> Facts:
    (outcome,) = lean_ops(home, "run", topic, spark_driver_memory=_DRIVER)["topics"]
    return {"status": outcome["status"], "reason": outcome["reason"], "batches": outcome["batches"]}


def _new_keys(setting: Setting, count: int) -> Path:
    """Bodies of which no two share a key."""
    file = setting.folder / "keys.jsonl"
    if not file.exists():
        time = START.isoformat().replace("+00:00", "Z")
        with file.open("w", encoding="utf-8") as out:
            for number in range(count):
                members = ",".join(f'"k{setting.seed}_{number}_{place}":{place}' for place in range(_KEYS_EACH))
                out.write(
                    f'{{"message_id":"n-{number}","publish_time":"{time}","idempotency_key":"n-{number}",'
                    f'"payload":{{{members}}}}}\n'
                )
    return file


def _result(setting: Setting, found: list[Measurement], wrong: int) -> Result:
    names = (_LARGE, _NEW_KEYS)
    rows, marks, bars = [], [], []
    for name in names:
        each = of_contender(found, name)
        peaks = [measured.usage.peak_bytes / 2**20 for measured in each]
        finished = sum(measured.facts["status"] == "SUCCEEDED" for measured in each)
        bars.append(Bar(f"{name}: runs that finished, of {len(each)}", finished, len(each), "runs", at_least=True))
        marks.append(Mark(name, max(peaks), min(peaks), max(peaks)))
        wall = middle(found, name, "wall_seconds")
        rows.append((name, round(wall, 1), round(middle(found, name), 1), round(max(peaks)), f"{finished}/{len(each)}"))
    bars.append(Bar("topics whose books do not balance", wrong, 0, "topics"))
    sizes = f"{setting.sizes['megabytes']} MB of payloads; {setting.sizes['payloads']:,} payloads of {_KEYS_EACH} keys"
    return Result(
        tuple(bars),
        (Table(f"{sizes}; a driver of {_DRIVER}", ("batch", "wall s", "CPU s", "peak MB", "finished"), tuple(rows)),),
        (Chart("Memory of all processes", "MB at the peak", tuple(marks)),),
        tuple(found),
        notes=("Peak memory is of all processes: Java with its heap of 2 GB and what it has besides, and Python.",),
    )


BENCHMARK: Final = Benchmark(
    question="Does a batch finish that is larger than the driver's memory?",
    short={"megabytes": 256, "payloads": 10_000},
    full={"megabytes": 1024, "payloads": 50_000},
    run=run,
)
