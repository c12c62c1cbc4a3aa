"""What once failed, and where fuzzing begins, through every target."""

from __future__ import annotations

import pytest
from tests.fuzz.regressions import REGRESSIONS, Regression
from tests.fuzz.seeds import SEEDS, WORDS
from tests.fuzz.targets import TARGETS, run


@pytest.mark.timeout(30)
@pytest.mark.parametrize("regression", REGRESSIONS, ids=lambda each: f"{each.target} {each.data[:20]!a}")
def test_an_input_that_once_failed_does_not_again(regression: Regression) -> None:
    run(regression.target, regression.data)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_s_seeds_pass(target: str) -> None:
    assert WORDS[target]
    for data in SEEDS[target]:
        run(target, data)
