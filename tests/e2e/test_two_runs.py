"""Two runs at once on one home: one works, the other says who holds the lease."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.cli import CommandLine, body, schema_of, with_tests_on_path

pytestmark = pytest.mark.e2e


@pytest.fixture
def busy_home(tmp_path: Path) -> CommandLine:
    """A home with one topic that has something to do."""
    command_line = CommandLine(tmp_path / "home")
    schema = tmp_path / "schema.json"
    schema.write_text(schema_of("events"))
    command_line.run("ingest", "events", "-", stdin=body("m1", {"a": 1}).encode())
    command_line.run("schema", "submit", "events", str(schema))
    return command_line


def start_and_hold(command_line: CommandLine, gate: Path) -> subprocess.Popen[bytes]:
    """A run that has staged its rows and waits for a file to appear."""
    script = Path(__file__).with_name("stopped_run.py")
    held = subprocess.Popen(
        [sys.executable, script, command_line.home, gate, "events=standardized:rows staged"],
        stdout=subprocess.PIPE,
        env=with_tests_on_path(),
    )
    assert held.stdout is not None
    assert held.stdout.readline() == b"standing\n"
    return held


def test_the_second_run_names_the_holder_and_the_first_finishes(busy_home: CommandLine, tmp_path: Path) -> None:
    gate = tmp_path / "go"
    held = start_and_hold(busy_home, gate)
    try:
        said = busy_home.run("run")
        assert f"/{held.pid}/" in said
        assert "the lease is held by" in said
    finally:
        gate.touch()
        out, _ = held.communicate(timeout=120)
    assert held.returncode == 0, out
    assert b"SUCCEEDED" in out
    assert busy_home.json("query", "SELECT message_id, a FROM standardized.events") == [{"message_id": "m1", "a": "1"}]
    assert "nothing new" in busy_home.run("run")


def test_a_lease_whose_process_is_gone_is_taken_over_at_once(busy_home: CommandLine, tmp_path: Path) -> None:
    held = start_and_hold(busy_home, tmp_path / "never")
    os.kill(held.pid, signal.SIGKILL)
    held.communicate(timeout=60)
    done = busy_home.json("run")
    assert [(topic["topic"], topic["status"]) for topic in done["topics"]] == [("events", "SUCCEEDED")]
    assert done["topics"][0]["batches"][0]["counts"]["inserted"] == 1
