"""`python -m benchmarks.worker FILE`: one benchmark in a process of its own, told what to do by a JSON file."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.plot import svg
from benchmarks.report import document, write_document
from benchmarks.suite import Setting, load

_BEGAN: Final = time.monotonic()


def main() -> None:
    """Run the benchmark, and write its document and its plot."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that Spark ends too
    told: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    name, run, out = told["name"], told["run"], Path(told["out"])
    folder = out / "work" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    benchmark = load(name)
    result = benchmark.run(Setting(folder, run["sizes"], run["repeats"], run["seed"], say))
    write_document(out, document(name, benchmark.question, result, run))
    (out / f"{name}.svg").write_text(svg(result.charts), encoding="utf-8")


def say(text: str) -> None:
    """A line of progress with the seconds so far; stdout belongs to the summary."""
    print(f"  {time.monotonic() - _BEGAN:6.0f} s  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
