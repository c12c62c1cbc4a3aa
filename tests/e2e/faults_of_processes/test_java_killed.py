"""Parts of a run are killed while Spark works: its Java, and the driver."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.e2e.faults_of_processes.processes import Home, bodies

pytestmark = pytest.mark.e2e

RECORDS = 20_000


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Two topics, one of them large enough to be met at work."""
    home = Home(tmp_path / "home")
    home.open_topics({"large": bodies(RECORDS), "small": bodies(10)})
    return home


def all_rows(home: Home) -> list[tuple[int, int]]:
    return home.rows("standardized.large", "curated.large", "standardized.small", "curated.small")


def test_whatever_part_of_a_run_is_killed_nothing_is_lost_doubled_or_left_running(home: Home) -> None:
    with home.running("run") as run:  # Java: the same run starts another one and repeats the batch
        home.until_writing(run, "large")
        os.kill(run.java().pid, signal.SIGKILL)
        said = run.end(0)
    assert said.count("Spark ended; starting it again") == 1
    assert f"large: {RECORDS} in = {RECORDS} standardized" in said
    assert all_rows(home) == [(RECORDS, RECORDS), (RECORDS, RECORDS), (10, 10), (10, 10)]
    assert home.failures() == {}

    home.run("ingest", "large", "-", stdin=bodies(RECORDS, "more"))
    with home.running("run") as run:  # the driver: its Java ends by itself and has published nothing
        home.until_writing(run, "large")
        run.signal(signal.SIGKILL)
        run.end(-signal.SIGKILL)
    assert home.open_batches() == {"standardization_large"}
    assert home.rows("standardized.large") == [(RECORDS, RECORDS)]

    with home.running("run") as run:
        said = run.end(0)
    assert f"large: {RECORDS} in = {RECORDS} standardized + 0 duplicates + 0 errors" in said
    assert all_rows(home) == [(2 * RECORDS, 2 * RECORDS), (2 * RECORDS, 2 * RECORDS), (10, 10), (10, 10)]
    home.is_settled()
