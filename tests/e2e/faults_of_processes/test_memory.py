"""Java gets less memory than Spark asks for: the run says what to change, and the next one goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.faults_of_processes.processes import Home, bodies

pytestmark = pytest.mark.e2e


def test_a_run_without_enough_memory_says_so_blames_no_topic_and_the_next_one_goes_on(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.open_topics({"events": bodies(3)})
    with home.running("run", LEAN_OPS_SPARK_DRIVER_MEMORY="300m") as run:
        said = run.end(1)
    assert "Spark could not be started" in said
    assert "`spark_driver_memory` is what Java gets, now 300m" in said
    assert "Traceback" not in said
    assert home.failures() == {}
    home.run("run")
    assert home.rows("standardized.events", "curated.events") == [(3, 3)] * 2
    home.is_settled()
