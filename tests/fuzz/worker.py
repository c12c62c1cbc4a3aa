"""One target in a process of its own: an engine makes inputs, each is run, timed and remembered if it is bad.

The input at work stands in a file shared with the process that watches, so it is known even after a crash of the
interpreter or a hang inside C code.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.mutator import inputs
from tests.fuzz.seeds import SEEDS, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

MAX_BYTES = 8192
CRASHES_KEPT = 20
# An input may take this much processor time; twice in a row past it is slow, not bad luck.
SLOW_MS = 200.0
SLOW_MS_PER_KB = 20.0
_NUMBER = 8


@dataclass
class Tally:
    """What happened so far."""

    engine: str
    inputs: int = 0
    slowest_ms: float = 0.0
    slowest_bytes: int = 0
    crashes: list[dict[str, str]] = field(default_factory=list)


class Desk:
    """The shared file: how many inputs were begun, the size of the one at work, and that input."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)

    @staticmethod
    def make(path: Path) -> Desk:
        """A new, empty one."""
        path.write_bytes(bytes(2 * _NUMBER + MAX_BYTES))
        return Desk(path)

    def put(self, number: int, data: bytes) -> None:
        """Begin an input."""
        self._map[2 * _NUMBER : 2 * _NUMBER + len(data)] = data
        self._map[: 2 * _NUMBER] = number.to_bytes(_NUMBER, "big") + len(data).to_bytes(_NUMBER, "big")

    def read(self) -> tuple[int, bytes]:
        """The number of inputs begun, and the last one."""
        number, size = (int.from_bytes(self._map[at : at + _NUMBER], "big") for at in (0, _NUMBER))
        return number, bytes(self._map[2 * _NUMBER : 2 * _NUMBER + size])


@dataclass
class Bench:
    """Runs inputs one by one until there were enough, then writes the tally and ends the process."""

    run: Callable[[bytes], None]
    wanted: int
    until: float
    desk: Desk
    report: Path
    tally: Tally

    def __call__(self, data: bytes) -> None:
        """One input of an engine."""
        data = data[:MAX_BYTES]
        self.tally.inputs += 1
        self.desk.put(self.tally.inputs, data)
        took = self._timed(data)
        if took > self.tally.slowest_ms:
            self.tally.slowest_ms, self.tally.slowest_bytes = took, len(data)
        bound = SLOW_MS + SLOW_MS_PER_KB * len(data) / 1024
        if took > bound and (again := self._timed(data)) > bound:
            self._keep("slow", data, f"{again:.0f} ms for {len(data)} bytes, at most {bound:.0f} are allowed")
        if self.tally.inputs >= self.wanted or time.monotonic() > self.until:
            self.finish()

    def _timed(self, data: bytes) -> float:
        start = time.process_time()
        try:
            self.run(data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            self._keep("crash", data, "".join(traceback.format_exception(error, limit=-3)))
        return (time.process_time() - start) * 1000

    def _keep(self, kind: str, data: bytes, words: str) -> None:
        """Remember a bad input; of those that fail alike, the shortest."""
        place = words if kind == "crash" else kind
        place = place.rpartition('File "')[2].partition("\n")[0]
        for known in self.tally.crashes:
            if (known["kind"], known["place"]) == (kind, place):
                if len(data) < len(known["input"]) // 2:
                    known.update(input=data.hex(), words=words)
                return
        if len(self.tally.crashes) < CRASHES_KEPT:
            self.tally.crashes.append({"kind": kind, "place": place, "words": words, "input": data.hex()})

    def finish(self) -> NoReturn:
        """Leave at once: libFuzzer has nothing to say that the tally does not."""
        self.report.write_text(json.dumps(asdict(self.tally)))
        sys.stdout.flush()
        os._exit(0)


def main() -> None:
    """Fuzz one target; `--engine own` does without atheris."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.worker")
    parser.add_argument("--target", required=True)
    parser.add_argument("--engine", choices=("atheris", "own"), required=True)
    parser.add_argument("--inputs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True)
    given = parser.parse_args()
    with contextlib.suppress(OSError):
        os.nice(10)
    desk = Desk(given.folder / "desk")
    tally = Tally(given.engine)
    until = time.monotonic() + given.seconds
    start = _with_atheris if given.engine == "atheris" else _with_own
    start(
        given.target,
        given.seed,
        given.folder,
        lambda run: Bench(run, given.inputs, until, desk, given.folder / "tally.json", tally),
    )


def _target(name: str) -> Callable[[bytes], None]:
    from tests.fuzz.targets import run

    return lambda data: run(name, data)


def _with_own(name: str, seed: int, _folder: Path, bench_of: Callable[[Callable[[bytes], None]], Bench]) -> None:
    bench = bench_of(_target(name))
    for data in inputs(SEEDS[name], WORDS[name], MAX_BYTES, seed):
        bench(data)


def _with_atheris(name: str, seed: int, folder: Path, bench_of: Callable[[Callable[[bytes], None]], Bench]) -> None:
    import atheris

    with atheris.instrument_imports(include=["lean_ops"]):
        bench = bench_of(_target(name))
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(SEEDS[name]):
        (corpus / f"seed-{number}").write_bytes(data)
    lines = ('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"' for word in WORDS[name])
    words.write_text("\n".join(lines) + "\n")
    # Who watches is the process that started this one: it also sees what happens outside of Python.
    options = [f"-seed={seed}", f"-dict={words}", f"-max_len={MAX_BYTES}", "-len_control=10", "-timeout=3600"]
    atheris.Setup(["fuzz", str(corpus), *options, "-verbosity=0", f"-artifact_prefix={folder}/"], bench)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
