"""The local stand-in for Lambda: its processes really die, others take their place, and none outlives the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.aws_local.faults import Faults
from tests.aws_local.function import DIES_AFTER, DIES_BEFORE, KILLED, RAISES, Function, FunctionError
from tests.integration.aws.lone_pytest import ROOT, eventually
from tests.servers.sockets import is_alive

MODULE = "lean_ops.entrypoints.lambdas.firehose_transform"
ENVIRON = {"PATH": os.environ["PATH"], "LEAN_OPS_PROJECT": "lean-ops", "LEAN_OPS_ENVIRONMENT": "test"}
NOTHING: dict[str, list[object]] = {"records": []}


@pytest.fixture
def function(tmp_path: Path) -> Iterator[Function]:
    function = Function(MODULE, ENVIRON, tmp_path / "log", Faults(1))
    yield function
    function.close()


@pytest.mark.parametrize("fault", [RAISES, DIES_BEFORE, DIES_AFTER, KILLED])
def test_a_call_that_fails_has_no_answer_and_the_next_one_has(
    function: Function, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function.faults, "seconds", lambda _: 0.0)  # killed before it can answer
    with function.environment() as environment, pytest.raises(FunctionError):
        function.invoke(environment, NOTHING, fault)
    assert environment.is_alive == (fault == RAISES)
    with function.environment() as environment:
        assert function.invoke(environment, NOTHING) == {"records": []}


def test_a_closed_function_has_no_process(function: Function) -> None:
    with function.environment() as environment:
        function.invoke(environment, NOTHING)
    function.close()
    assert environment._process.poll() is not None
    environment.is_alive = False
    with pytest.raises(FunctionError), function.environment():
        pass


def test_a_function_ends_with_whoever_started_it_whatever_it_is_doing(tmp_path: Path) -> None:
    start = f"""
import time
from pathlib import Path
from tests.aws_local.function import Environment
environment = Environment({MODULE!r}, {ENVIRON!r}, Path({str(tmp_path / "log")!r}))
environment.wait_until_ready()
print(environment._process.pid, flush=True)
time.sleep(600)
"""
    starter = subprocess.Popen([sys.executable, "-c", start], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert starter.stdout is not None
        worker = int(starter.stdout.readline())
    finally:
        starter.send_signal(signal.SIGKILL)
        starter.communicate(timeout=30)
    assert eventually(lambda: not is_alive(worker), 30)
