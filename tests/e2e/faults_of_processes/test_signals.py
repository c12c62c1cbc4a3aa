"""Requests to stop a run: by Ctrl-C, by SIGTERM, by a terminal that goes away, once and twice."""

from __future__ import annotations

import os
import pty
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.e2e.faults_of_processes.processes import Home, Running, bodies, wait_until

pytestmark = pytest.mark.e2e

RECORDS = 20_000


def ask_until_it_ends(run: Running) -> None:
    """Press Ctrl-C again and again: one that comes too early counts as the request before it."""

    def asked() -> bool:
        with suppress(ProcessLookupError):
            run.signal(signal.SIGINT)
        time.sleep(0.3)
        return run.process.poll() is not None

    wait_until(asked, "its end", 60)


def test_a_run_stops_between_commits_and_the_next_one_continues(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.open_topics({"events": bodies(RECORDS)})

    with home.running("run") as run:  # left at once when asked again; Spark is just starting
        run.until_said("starting Spark")
        run.until(run.remember_family, "Spark starts")
        run.signal(signal.SIGINT)
        run.signal(signal.SIGINT)  # the same request, told twice
        with pytest.raises(TimeoutError):
            wait_until(lambda: run.process.poll() is not None, "nothing", 1.2)
        ask_until_it_ends(run)
        assert "left at once, as asked for twice" in run.end(1)

    with home.running("run") as run:
        home.until_writing(run, "events")
        run.signal(signal.SIGTERM, to_all=True)
        said = run.end(1, limit=300)
    assert "error: interrupted between commits by SIGTERM. The next `lean-ops run` continues." in said
    assert "Traceback" not in said
    assert (home.leases(), home.presences()) == (set(), [])
    assert home.failures() == {}
    assert home.rows("standardized.events") == [(0, 0)]

    terminal, inside = pty.openpty()
    with home.running("run", "--every", "1s", stdin=inside, terminal=inside) as run:
        os.close(inside)
        home.until_writing(run, "events")
        os.close(terminal)
        run.end(1, limit=300)
    assert (home.leases(), home.presences()) == (set(), [])

    with home.running("run", "--every", "5s") as run:
        run.until_said("nothing new to process")
        run.signal(signal.SIGTERM, to_all=True)
        said = run.end(0, limit=300)
    assert "stopped between two cycles by SIGTERM" in said
    assert f"events: {RECORDS} in = {RECORDS} standardized + 0 duplicates + 0 errors" in said
    assert home.rows("standardized.events", "curated.events") == [(RECORDS, RECORDS)] * 2
    home.is_settled()
