"""`python -m benchmarks.cycles HOME`: `lean-ops run`'s cycles in one process; one for each line of stdin."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from benchmarks.command import environment
from benchmarks.home import BenchmarkError, open_home

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType


@dataclass
class CycleProcess:
    """The other side: a process that is told to do a cycle and says what became of it."""

    home: Path

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "benchmarks.cycles", str(self.home)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment({})
        )
        return self

    def cycle(self) -> dict[str, Any]:
        """One cycle over all topics; what it says of itself."""
        _pipe(self._process.stdin).write("go\n")
        _pipe(self._process.stdin).flush()
        answer = _pipe(self._process.stdout).readline()
        if not answer:
            raise BenchmarkError(f"the process of the cycles ended with exit code {self._process.wait()}")
        told: dict[str, Any] = json.loads(answer)
        return told

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        _pipe(self._process.stdin).close()
        self._process.wait()


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # noqa: S101  both are pipes
    return pipe


def serve(home: Path, requests: Iterable[str]) -> None:
    """A cycle for each request, its outcome as a line of JSON; Spark stays until the requests end."""
    with open_home(home) as made:
        for _ in requests:
            began = time.monotonic()
            plan = made.services.planner.plan()
            outcomes = list(made.services.new_run().execute(plan)) if plan.work else []
            failed = [f"{each.topic}: {each.reason}" for each in outcomes if each.status != "SUCCEEDED"]
            told = {"seconds": time.monotonic() - began, "topics": len(outcomes), "failed": failed}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.stdin)
