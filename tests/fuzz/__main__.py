"""`python -m tests.fuzz`: every target in a process of its own, until there were enough inputs; a report as JSON.

Exit code 1 if any input crashed, hung, or was slower than its bound.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fuzz.worker import SLOW_MS, SLOW_MS_PER_KB, Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

HANG_SECONDS = 20.0
START_SECONDS = 60.0
MAX_RESTARTS = 5
# How much of the inputs a target gets: those that ask DuckDB or write files are a hundred times slower.
SHARES = {
    "envelope": 18,
    "scanner": 18,
    "payload": 12,
    "names": 6,
    "publish_time": 10,
    "casts": 12,
    "json_path": 8,
    "archive": 2,
    "lines": 8,
    "schema": 3,
    "pattern": 10,
    "sql": 0.5,
}


@dataclass
class Result:
    """What one target went through; `crashes` holds hangs and slow inputs, too."""

    target: str
    engine: str
    inputs: int = 0
    seconds: float = 0.0
    slowest_ms: float = 0.0
    slowest_bytes: int = 0
    crashes: list[dict[str, str]] = field(default_factory=list)

    def add(self, tally: dict[str, Any]) -> None:
        """Count what a process told at its end."""
        self.inputs += tally["inputs"]
        self.crashes += tally["crashes"]
        if tally["slowest_ms"] > self.slowest_ms:
            self.slowest_ms, self.slowest_bytes = tally["slowest_ms"], tally["slowest_bytes"]


def main() -> int:
    """Run all targets one after the other and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all targets together")
    parser.add_argument("--seconds", type=float, default=600, help="for all targets together, at the most")
    parser.add_argument("--report", type=Path, help="where the report is written")
    parser.add_argument("--target", choices=SHARES, action="append", help="only this one; may be given again")
    parser.add_argument("--engine", choices=("auto", "atheris", "own"), default="auto")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    engine = given.engine
    if engine == "auto":
        engine = "atheris" if importlib.util.find_spec("atheris") else "own"
    results = list(_all_fuzzed(given, engine))
    return _finish(results, given.report)


def _all_fuzzed(given: argparse.Namespace, engine: str) -> Iterator[Result]:
    """Each target with its part of the inputs; what one leaves of its time is the others'."""
    waiting = {target: SHARES[target] for target in given.target or SHARES}
    per_share, until = given.inputs / sum(waiting.values()), time.monotonic() + given.seconds
    while waiting:
        target, share = next(iter(waiting.items()))
        seconds = (until - time.monotonic()) / len(waiting)
        yield _fuzzed(target, engine, round(share * per_share) or 1, seconds, given.seed)
        del waiting[target]


def _fuzzed(target: str, engine: str, wanted: int, seconds: float, seed: int) -> Result:
    """One target until it had its inputs or its time; a process that died is followed by another one."""
    result, start = Result(target, engine), time.monotonic()
    for restart in range(MAX_RESTARTS + 1):
        left = seconds - (time.monotonic() - start)
        if result.inputs >= wanted or left <= 0:
            break
        with tempfile.TemporaryDirectory(prefix="lean-ops-fuzz-") as folder:
            _one_process(result, wanted - result.inputs, left, seed + restart, Path(folder))
    result.seconds = round(time.monotonic() - start, 1)
    _print_line(result)
    return result


def _one_process(result: Result, wanted: int, seconds: float, seed: int, folder: Path) -> None:
    desk = Desk.make(folder / "desk")
    command = [sys.executable, "-m", "tests.fuzz.worker", "--target", result.target, "--engine", result.engine]
    command += ["--inputs", str(wanted), "--seconds", str(seconds), "--seed", str(seed), "--folder", str(folder)]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        hung = _watch(process, desk)
    tally = folder / "tally.json"
    if tally.exists():
        result.add(json.loads(tally.read_text()))
        return
    number, data = desk.read()
    words = (folder / "output").read_text(errors="replace")[-2000:]
    place = f"hung for {HANG_SECONDS:.0f} s" if hung else f"the process ended with {process.returncode}"
    result.inputs += number
    kind = "hang" if hung else "crash"
    result.crashes.append({"kind": kind, "place": place, "words": words, "input": data.hex()})


def _watch(process: subprocess.Popen[bytes], desk: Desk) -> bool:
    """Wait until the process ends; one that stays at an input for too long is ended, and that is a hang."""
    last, since = -1, time.monotonic()
    try:
        while True:
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                number = desk.read()[0]
                if number != last:
                    last, since = number, time.monotonic()
                elif time.monotonic() - since > (HANG_SECONDS if number else START_SECONDS):
                    return True
            else:
                return False
    finally:
        process.kill()
        process.wait()


def _print_line(result: Result) -> None:
    rate = result.inputs / result.seconds if result.seconds else 0
    print(
        f"{result.target:<13} {result.engine:<8} {result.inputs:>8} inputs {result.seconds:>7.1f} s {rate:>7.0f}/s"
        f"  slowest {result.slowest_ms:.1f} ms ({result.slowest_bytes} bytes)  {len(result.crashes)} bad",
        flush=True,
    )


def _finish(results: list[Result], report: Path | None) -> int:
    bad = [(result.target, crash) for result in results for crash in result.crashes]
    for target, crash in bad:
        print(f"\n{target}: {crash['kind']} {crash['place']}\n{crash['words']}\ninput {crash['input']}")
    if report is not None:
        document = {
            "inputs": sum(result.inputs for result in results),
            "seconds": round(sum(result.seconds for result in results), 1),
            "bounds": {"ms": SLOW_MS, "ms_per_kb": SLOW_MS_PER_KB, "hang_seconds": HANG_SECONDS},
            "bad": len(bad),
            "targets": [vars(result) for result in results],
        }
        report.write_text(json.dumps(document, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
