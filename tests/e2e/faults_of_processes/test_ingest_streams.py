"""Pipes that stall, break off or were never opened, and requests to stop, while `ingest` reads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tests.e2e.cli import body
from tests.e2e.faults_of_processes.processes import Home, Running, bodies, wait_until

pytestmark = pytest.mark.e2e


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def until_landed(ingest: Running, rows: int) -> None:
    """Wait until it says, by whatever flushes, that so many rows are in RAW, and has not ended."""
    told = re.compile(r": (\d+) rows in RAW snapshot")
    wait_until(lambda: sum(map(int, told.findall(ingest.said))) == rows, f"{rows} rows in RAW", 60)
    assert ingest.process.poll() is None


def landed_by_its_word(said: str) -> int:
    """The last line that a stopped ingestion says to have landed."""
    return int(said.partition("everything up to line ")[2].partition(" ")[0])


def in_raw(home: Home) -> int:
    ((rows, messages),) = home.rows("raw.events_staging")
    assert rows == messages
    return rows


def test_a_pipe_that_stalls_is_flushed_by_time_and_one_that_breaks_off_keeps_its_torn_line(
    home: Home, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with home.running("ingest", "events", str(pipe), LEAN_OPS_FLUSH_SECONDS="0.3") as ingest:
        writer = os.open(pipe, os.O_WRONLY)
        os.write(writer, bodies(3))
        until_landed(ingest, 3)
        os.write(writer, bodies(1, "later") + body("torn", {"a": 1}).encode()[:40])
        until_landed(ingest, 4)
        os.close(writer)
        said = ingest.end(0)
    assert "5 lines: 4 in RAW, 1 dead letters (1 MALFORMED_JSON)" in said
    assert in_raw(home) == 4
    home.is_settled("events")


def test_the_writer_of_stdin_dies_and_what_it_wrote_has_landed(home: Home) -> None:
    writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert writer.stdin is not None
    with home.running("ingest", "events", "-", stdin=writer.stdout, LEAN_OPS_FLUSH_SECONDS="0.3") as ingest:
        assert writer.stdout is not None
        writer.stdout.close()
        writer.stdin.write(bodies(2) + b'{"message_id": "torn')
        writer.stdin.flush()
        until_landed(ingest, 2)
        writer.kill()
        said = ingest.end(0)
    writer.stdin.close()
    writer.wait(timeout=10)
    assert "3 lines: 2 in RAW, 1 dead letters (1 MALFORMED_JSON)" in said
    home.is_settled("events")


WORDS = {
    signal.SIGINT: "stopped by Ctrl-C",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "stopped by SIGHUP (its terminal went away)",
}


def stopped_by(home: Home, number: signal.Signals) -> int:
    """Lines that have landed by the word of an ingestion that was asked to stop while it had more to read."""
    source, sink = os.pipe()
    with home.running("ingest", "events", "-", stdin=source, LEAN_OPS_FLUSH_BYTES="1024") as ingest:
        os.close(source)
        os.write(sink, bodies(20, f"{number.name}-"))
        ingest.until_said("of stdin: ")
        os.write(sink, bodies(3, f"{number.name}-more-"))
        ingest.signal(number, to_all=True)
        ingest.signal(number, to_all=True)  # as shells and `timeout` do
        said = ingest.end(1)
    os.close(sink)
    assert WORDS[number] in said
    assert "Traceback" not in said
    return landed_by_its_word(said)


def test_asked_to_stop_it_lands_what_it_has_read_and_says_where_to_go_on(home: Home) -> None:
    landed = [stopped_by(home, number) for number in WORDS]
    assert in_raw(home) == sum(landed)
    home.is_settled("events")


def test_a_file_is_stopped_between_two_flushes_and_the_rest_ingested_later(home: Home, tmp_path: Path) -> None:
    lines = bodies(10_000).splitlines(keepends=True)
    file, rest = tmp_path / "all.jsonl", tmp_path / "rest.jsonl"
    file.write_bytes(b"".join(lines))
    with home.running("ingest", "events", str(file), LEAN_OPS_FLUSH_BYTES="100000") as ingest:
        ingest.until_said("lines 1-")
        ingest.signal(signal.SIGTERM)
        said = ingest.end(1)
    landed = landed_by_its_word(said)
    assert 0 < landed < len(lines)
    assert in_raw(home) == landed
    rest.write_bytes(b"".join(lines[landed:]))
    home.run("ingest", "events", str(rest))
    assert in_raw(home) == len(lines)
    home.is_settled("events")


def waits(ingest: Running, pipe: Path) -> bool:
    """Whether it has opened the pipe."""
    links = Path(f"/proc/{ingest.process.pid}/fd")
    return any(os.path.realpath(link) == str(pipe) for link in links.iterdir())


def test_one_that_waits_for_a_pipe_without_writer_stops_when_asked(home: Home, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with home.running("ingest", "events", str(pipe)) as ingest:
        wait_until(lambda: waits(ingest, pipe), "the pipe is open")
        ingest.signal(signal.SIGINT)
        said = ingest.end(1, limit=60)
    assert "stopped by Ctrl-C; found nothing landed" in said
