"""`python -m benchmarks` (`make bench`, `lean-ops bench`): what the product costs.

The short version takes minutes, `--full` takes what it needs. Results go to build/bench: NAME.json and NAME.svg.
Exit code 1 if a benchmark crashed, and with --strict also if a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import as_text, crashed, summary_rows, write_document
from benchmarks.suite import DEFAULT_SEED, NAMES, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks one after the other, and tell."""
    parser = _parser()
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in NAMES:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(NAMES)}")
    out = given.out.absolute()
    documents = [_run(name, given, out) for name in given.names or NAMES]
    if not given.keep:
        shutil.rmtree(out / "work", ignore_errors=True)
    print(json.dumps(documents, indent=2) if given.json else as_text(summary_rows(documents)))
    missed = given.strict and any(not bar["met"] for found in documents for bar in found.get("bars", ()))
    return 1 if missed or any("crashed" in found for found in documents) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lean-ops bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all when none is given")
    parser.add_argument("--full", action="store_true", help="the sizes that the bars speak of")
    parser.add_argument("--repeats", type=int, default=3, help="rounds, the warm-up not counted")
    parser.add_argument("--out", type=Path, default=_ROOT / "build" / "bench", help="folder of the results")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="the same seed makes the same data")
    parser.add_argument("--strict", action="store_true", help="a missed bar is exit code 1, too")
    parser.add_argument("--keep", action="store_true", help="leave the homes in OUT/work")
    parser.add_argument("--json", action="store_true", help="the documents on stdout instead of the summary")
    parser.add_argument("--set", action="append", type=_size, default=[], metavar="SIZE=N", help="another size")
    return parser


def _size(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    return name, int(value)


def _command(name: str, given: argparse.Namespace) -> str:
    """What to type to measure the same again."""
    sizes = (f"--set {key}={value}" for key, value in given.set)
    return " ".join(["lean-ops bench", name, *(["--full"] if given.full else []), f"--repeats {given.repeats}", *sizes])


def _run(name: str, given: argparse.Namespace, out: Path) -> dict[str, Any]:
    """One benchmark's document; whatever happens to its process, there is one."""
    benchmark = load(name)
    sizes = benchmark.sizes(given.full, dict(given.set))
    run = {"command": _command(name, given), "seed": given.seed, "repeats": given.repeats, "sizes": sizes}
    print(f"{name}: {benchmark.question}", file=sys.stderr, flush=True)
    code, words = _work({"name": name, "run": run, "out": str(out)}, out)
    if code:
        write_document(out, crashed(name, benchmark.question, words, run))
    found: dict[str, Any] = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _work(told: Mapping[str, Any], out: Path) -> tuple[int, str]:
    """A worker's exit code and its last words, which are also shown while it works."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{told['name']}.json"
    file.write_text(json.dumps(told), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.worker", str(file)]
    worker = subprocess.Popen(command, cwd=_ROOT, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    last: list[str] = []
    with worker:
        try:
            assert worker.stderr is not None  # noqa: S101  it is a pipe
            for line in worker.stderr:
                sys.stderr.write(line)
                last = [*last[-40:], line]
        except BaseException:  # whoever stops this must not leave Spark behind
            worker.terminate()
            raise
    return worker.returncode, f"exit code {worker.returncode}\n{''.join(last)}".strip()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
