"""A rebuild that is killed after any of its steps is finished or forgotten, and nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.driver import OpenGate, TopicDriver, run_topics
from tests.spark.rebuilds import (
    FIRST,
    SCHEMA,
    SECOND,
    THIRD,
    Killed,
    assert_sound,
    findings,
    live,
    rebuild,
    rebuild_lines,
    rebuilt,
    seen,
    state,
)

from lean_ops.lake.rebuild_ground import BRANCH_PREFIX
from lean_ops.ledger.books import RunStatus

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


STEPS = (
    "branches made",
    "standardized rows staged",
    "standardized errors written",
    "standardized built",
    "curated rows merged",
    "curated built",
    "caught up",
    "compared",
    "switch noted",
    "intents stored",
    "standardized switched",
    "standardized errors replaced",
    "curated switched",
    "curated errors replaced",
    "standardized ledger written",
    "standardized history written",
    "standardized checkpoint moved",
    "curated ledger written",
    "curated checkpoint moved",
    "booked",
    "cleared",
)
SWITCHED = STEPS[STEPS.index("standardized switched") :]


def kill_after(wanted: str) -> Callable[[str], None]:
    def on_step(step: str) -> None:
        if step == wanted:
            raise Killed

    return on_step


def killed(topic: TopicDriver, step: str) -> None:
    with pytest.raises(Killed):
        rebuild(topic, kill_after(step))


@pytest.fixture
def several(new_topic: Callable[[], TopicDriver]) -> dict[str, TopicDriver]:
    """A topic for every step, all with the same gate and two batches; and one that nothing happens to."""
    gate = OpenGate()
    topics = {step: new_topic() for step in (*STEPS, "undisturbed")}
    for topic in topics.values():
        topic.gate = gate
        topic.use_schema(SCHEMA)
    services = topics["undisturbed"].services
    for messages in (FIRST, SECOND):
        for topic in topics.values():
            topic.put(*messages)
        outcomes = run_topics(services, gate, [topic.name for topic in topics.values()])
        assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}
    return topics


def test_killed_after_any_step_the_next_run_finds_everything_as_it_should_be(several: dict[str, TopicDriver]) -> None:
    for step in STEPS:
        killed(several[step], step)
    gate = several["undisturbed"].gate
    for topic in several.values():
        topic.put(*THIRD)
    outcomes = run_topics(several["undisturbed"].services, gate, [topic.name for topic in several.values()])
    expected = seen(several["undisturbed"])
    for step, topic in several.items():
        outcome = outcomes[topic.name]
        assert {step: (outcome.status, outcome.reason)} == {step: (RunStatus.SUCCEEDED, None)}
        assert {step: seen(topic)} == {step: expected}
        assert {step: findings(topic)} == {step: []}
        assert {step: len(rebuild_lines(topic))} == {step: 2 if step in SWITCHED else 0}


@pytest.mark.parametrize("step", ["curated rows merged", "intents stored", "standardized switched", "curated switched"])
def test_killed_after_a_step_the_next_rebuild_puts_it_right(lived: TopicDriver, step: str) -> None:
    before = state(lived)
    killed(lived, step)
    outcome = rebuild(lived)
    assert outcome.status is RunStatus.SUCCEEDED
    assert_sound(lived, before)
    assert len(rebuild_lines(lived)) == 2


@pytest.mark.parametrize("step", ["standardized switched", "standardized ledger written"])
def test_killed_within_the_switch_a_run_without_anything_new_finishes_it(lived: TopicDriver, step: str) -> None:
    before = state(lived)
    killed(lived, step)
    outcome = lived.run()
    assert outcome is not None
    assert (outcome.status, outcome.reason) == (RunStatus.SUCCEEDED, None)
    assert_sound(lived, before)
    assert len(rebuild_lines(lived)) == 2


def test_an_open_live_batch_survives_a_rebuild_that_is_given_up(lived: TopicDriver) -> None:
    lived.put(*THIRD)

    def stop(_: Any, step: str) -> None:
        if step == "errors written":
            raise Killed

    with pytest.raises(Killed):
        lived.run(stop)
    killed(lived, "intents stored")
    outcome = lived.run()
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED
    assert findings(lived) == []
    assert len(lived.shared("parse_errors")) == 3


def test_a_published_batch_without_books_is_booked_before_the_switch(lived: TopicDriver) -> None:
    lived.put(*THIRD)

    def stop(_: Any, step: str) -> None:
        if step == "published":
            raise Killed

    with pytest.raises(Killed):
        lived.run(stop)
    rebuilt(lived)
    assert findings(lived) == []
    outcome = lived.run()
    assert outcome is None or outcome.status is RunStatus.SUCCEEDED
    assert findings(lived) == []


def test_branches_of_a_rebuild_are_not_taken_for_leftovers_of_batches(lived: TopicDriver) -> None:
    seen_branches: list[int] = []

    def on_step(step: str) -> None:
        if step == "standardized built" and not seen_branches:
            live(lived, THIRD)
            table = lived.services.lake.load(lived.services.lake.names.standardized(lived.name))
            seen_branches.append(sum(ref.startswith(BRANCH_PREFIX) for ref in table.refs()))

    rebuilt(lived, on_step)
    assert seen_branches == [1]
