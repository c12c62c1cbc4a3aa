"""The short form of the soak: runs killed at random moments on one home, compared message by message."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.soak.__main__ import soaked
from tests.soak.decisions import RoundPlan, plan_round

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

SECONDS = 45
SEED = 9
KILLED = 3


def test_killed_at_random_moments_nothing_is_lost_doubled_or_left_behind(tmp_path: Path) -> None:
    found = soaked(SEED, tmp_path / "home", tmp_path / "report", SECONDS, least_killed=KILLED)

    assert found["failures"] == []
    assert found["differences"] == 0
    assert found["recounts"] >= 1
    assert found["runs_killed"] >= KILLED
    assert found["messages_at_the_end"] >= 500
    assert found["batches_recovered"] >= 1


def rounds(seed: int) -> list[RoundPlan]:
    return [plan_round(seed, number, 8) for number in range(1, 101)]


def test_a_seed_decides_the_rounds_and_all_ways_to_end_have_their_turn() -> None:
    assert rounds(1) == rounds(1) != rounds(2)
    assert {str(run.end) for plan in rounds(1) for run in plan.runs} == {
        *("SIGKILL to driver", "SIGKILL to java", "SIGKILL to all", "SIGTERM to driver", "SIGINT to driver", "None")
    }
