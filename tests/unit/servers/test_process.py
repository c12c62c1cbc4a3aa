from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.servers.process import ServerProcess, start

from lean_ops.model.errors import TransientError

FOREVER = "import time; print('ready', flush=True); time.sleep(600)"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[str], ServerProcess]]:
    """A Python program as a server."""
    running: list[ServerProcess] = []

    def run(program: str) -> ServerProcess:
        running.append(start("program", [sys.executable, "-c", program], tmp_path))
        return running[-1]

    yield run
    for process in running:
        process.stop()


def test_words_in_the_log_tell_that_a_server_is_ready(run: Callable[[str], ServerProcess]) -> None:
    process = run("import time; print('listening on port 80', flush=True); time.sleep(600)")
    assert process.wait_for_words(r"port (\d+)")[1] == "80"


def test_a_server_that_ends_is_told_with_its_last_words(run: Callable[[str], ServerProcess]) -> None:
    process = run("raise SystemExit('the port is taken')")
    with pytest.raises(TransientError, match=r"ended.*the port is taken"):
        process.wait_for(lambda: False)


def test_a_server_that_is_never_ready_is_stopped_and_told(run: Callable[[str], ServerProcess]) -> None:
    process = run(FOREVER)
    process.wait_for_words("ready")
    with pytest.raises(TransientError, match="not ready within 0 seconds"):
        process.wait_for(lambda: False, seconds=0.1)
    assert process.guard.returncode is not None


def test_a_server_stops_even_while_another_process_holds_its_pipe(run: Callable[[str], ServerProcess]) -> None:
    process = run(FOREVER)
    process.wait_for_words("ready")
    assert process.guard.stdin is not None
    holder = subprocess.Popen([sys.executable, "-c", FOREVER], pass_fds=[process.guard.stdin.fileno()])
    try:
        process.stop()
        assert process.guard.returncode == 0
    finally:
        holder.kill()
        holder.wait()


def test_what_a_server_leaves_elsewhere_goes_with_it(tmp_path: Path) -> None:
    leftover = tmp_path / "left.sock"
    program = f"open({str(leftover)!r}, 'w'); {FOREVER}"
    process = start("program", [sys.executable, "-c", program], tmp_path, leftovers=[str(leftover)])
    process.wait_for_words("ready")
    assert leftover.exists()
    process.stop()
    assert not leftover.exists()


def test_what_a_shell_has_set_for_real_clouds_does_not_reach_a_server(
    run: Callable[[str], ServerProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    process = run(f"import os; print('sees', os.environ.get('AWS_PROFILE'), flush=True); {FOREVER}")
    assert process.wait_for_words(r"sees (\w+)")[1] == "None"
