"""A Lambda function: a few execution environments, each a process of its own that can really die."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from tests.aws_local.faults import Faults

_WORKER: Final = Path(__file__).with_name("worker.py")
_START_SECONDS: Final = 120.0

# What can go wrong in a call. The first ends in an answer that is an error, the others in none.
RAISES: Final = "raises after its work"
DIES_BEFORE: Final = "dies before its work"
DIES_AFTER: Final = "dies after its work"
KILLED: Final = "is killed at work"


@dataclass(frozen=True, slots=True)
class Code:
    """Where a function's code is: in folders of its own and nowhere else, or without any in this Python's packages."""

    handler: str = "handler"
    paths: tuple[Path, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """Python's, so that a package which the folders lack is not found by luck."""
        return ("-I", "-S") if self.paths else ("-I",)


CODE_OF_THIS_HOUSE: Final = Code()


class FunctionError(Exception):
    """The call has no result; what the function did before nobody knows."""


class Environment:
    """A process that answers one call after the other."""

    def __init__(self, module: str, environ: Mapping[str, str], log: Path, code: Code = CODE_OF_THIS_HOUSE) -> None:
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, *code.options, "-u", str(_WORKER), module, code.handler, *map(str, code.paths)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=dict(environ),
                start_new_session=True,  # Ctrl-C is for pytest
            )
        self._log = log
        self.is_alive = True

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout

    def wait_until_ready(self) -> None:
        if "ready" not in self._answer(_START_SECONDS):
            raise AssertionError(f"the function did not start: {self._log.read_text(errors='replace')[-3000:]}")

    def call(self, event: Any, seconds: float, fault: str | None, kill_after: float | None) -> dict[str, Any]:
        """The answer; empty if the process died or was killed, for being late or because it had to be."""
        line = json.dumps({"event": event, "seconds": seconds, "fault": fault}).encode() + b"\n"
        try:
            self._pipes[0].write(line)
            self._pipes[0].flush()
        except BrokenPipeError:
            self.is_alive = False
            return {}
        return self._answer(seconds if kill_after is None else kill_after)

    def _answer(self, seconds: float) -> dict[str, Any]:
        late = threading.Timer(seconds, self._process.kill)
        late.start()
        try:
            line = self._pipes[1].readline()
        finally:
            late.cancel()
            late.join()
        # A process that is about to end may look alive for a moment longer.
        self.is_alive = line.endswith(b"\n")
        return json.loads(line) if self.is_alive else {}

    def end(self) -> None:
        """Gone when this returns; a second call does nothing."""
        self._process.kill()
        self._process.wait(30)
        for pipe in self._pipes:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


@dataclass
class Function:
    """A handler's module with its settings; at most `at_a_time` calls run at once, others wait."""

    module: str
    environ: Mapping[str, str]
    log: Path
    faults: Faults
    at_a_time: int = 1
    seconds: float = 20.0
    code: Code = CODE_OF_THIS_HOUSE
    _free: queue.LifoQueue[Environment | None] = field(default_factory=queue.LifoQueue, init=False)
    _made: list[Environment] = field(default_factory=list, init=False)
    _closed: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        for _ in range(self.at_a_time):
            self._free.put(None)

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @contextmanager
    def environment(self) -> Iterator[Environment]:
        """An environment that is ready, for one call."""
        found = self._free.get()
        try:
            if found is None or not found.is_alive:
                found = self._started(found)
            yield found
        finally:
            self._free.put(found)

    def invoke(self, environment: Environment, event: Any, fault: str | None = None) -> Any:
        """What the function answers, or FunctionError."""
        self.faults.count(f"{self.name}: calls")
        kill_after = self.faults.seconds(0.5) if fault == KILLED else None
        answer = environment.call(event, self.seconds, fault, kill_after)
        if "answer" in answer:
            return answer["answer"]
        if fault is None:
            self.faults.count(f"{self.name}: {'raised' if answer else 'timed out'}, not by a fault of ours")
        raise FunctionError(f"{self.name}: {answer.get('error', 'no answer')}")

    def close(self) -> None:
        """End all environments; no other is started."""
        self._closed.set()
        for environment in list(self._made):
            environment.end()

    def _started(self, dead: Environment | None) -> Environment:
        if dead is not None:
            dead.end()
        if self._closed.is_set():
            raise FunctionError(f"{self.name} is closed")
        environment = Environment(self.module, self.environ, self.log, self.code)
        self._made.append(environment)
        if self._closed.is_set():
            environment.end()
        environment.wait_until_ready()
        return environment
