"""The machine's clock jumps by minutes, days and years, between commands and in the middle of a run.

Every process of the product, Java included, is started with a small library in front of the system's clock.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.e2e.cli import with_tests_on_path
from tests.e2e.faults_of_processes.processes import Home, bodies

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("cc") is None or sys.platform != "linux", reason="needs a C compiler on Linux"),
]

SCRIPT = Path(__file__).parents[1] / "stopped_run.py"
DAY = 86_400


@dataclass(frozen=True)
class Clock:
    """The clock of the processes that are started with its environment."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Clock:
        clock = cls(folder)
        clock.shift(0)
        source = Path(__file__).with_name("shifted_clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", clock.library, source, "-ldl"], check=True)
        return clock

    @property
    def library(self) -> Path:
        return self.folder / "shifted_clock.so"

    @property
    def environ(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.library), "SHIFT_FILE": str(self.folder / "shift")}

    def shift(self, seconds: int) -> None:
        """From now on the clock is off by so much; processes that run see it jump."""
        with (self.folder / "shift").open("r+b" if (self.folder / "shift").exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))

    def now(self, seconds: int) -> int:
        return int(datetime.now(UTC).timestamp()) + seconds


def ingest(home: Home, prefix: str) -> None:
    file = home.home.parent / f"{prefix}.jsonl"
    file.write_bytes(bodies(3, prefix))
    with home.running("ingest", "events", str(file)) as command:
        command.end(0)


def run(home: Home, code: int = 0) -> str:
    with home.running("run") as command:
        return command.end(code)


def test_a_clock_that_jumps_stops_no_topic_and_doubles_nothing(tmp_path: Path) -> None:
    clock = Clock.made(tmp_path)
    home = Home(tmp_path / "home", clock.environ)
    home.open_topics({"events": bodies(3)})

    # Forward in the middle of a batch: the lease has expired by the clock, so nothing is published.
    script = (sys.executable, str(SCRIPT), str(home.home), str(tmp_path / "go"))
    path = with_tests_on_path()["PYTHONPATH"]
    with home.running("events=standardized:rows staged", command=script, PYTHONPATH=path) as held:
        held.until_said("standing")
        clock.shift(400 * DAY)
        (tmp_path / "go").touch()
        said = held.end(1)
    assert "the lease was lost while working" in said

    ingest(home, "future")
    said = run(home)
    assert "events: 6 in = 6 standardized" in said
    assert home.rows("standardized.events", "curated.events") == [(6, 6)] * 2

    # Back by more than a year: tables, leases and ledger hold times that are yet to come.
    clock.shift(-5 * DAY)
    ingest(home, "past")
    said = run(home)
    assert "events: 3 in = 3 standardized" in said
    assert "3 in = 3 new" in said
    assert home.rows("raw.events_staging", "standardized.events", "curated.events") == [(9, 9)] * 3
    home.is_settled()
    assert home.failures() == {}
    times = home.json("query", "SELECT ingestion_ts AS t FROM raw.events_staging WHERE message_id = 'past0'")
    assert abs(times[0]["t"] - clock.now(-5 * DAY)) < 600
    assert "future0" in home.run("trace", "future0")
