"""A topic's two hops in one run: their order, their failures, and what is recorded of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs
from tests.unit.operate.run_bench import COUNTS, NOW, OPEN, Bench, batches_of, fails, hop_of, interrupt, lose, to_do

from lean_ops.lake.spark import SparkStartError
from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Counts, Intent, Zone
from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import Flow, Gate, RegistryItem, Status
from lean_ops.operate.hop_run import BatchOutcome, in_words
from lean_ops.operate.plan import HopPlan, PlannedBatch, RunPlan, TopicPlan
from lean_ops.operate.run import TopicOutcome
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Lease

STANDARDIZED, CURATED = ("events", Zone.STANDARDIZED), ("events", Zone.CURATED)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with capture_logs():
        yield Bench(tmp_path)


def curated_hop(*ends: int) -> HopPlan:
    return hop_of("events", *ends, zone=Zone.CURATED)


def only_curated(*ends: int) -> TopicPlan:
    """RAW is done; Curated is behind."""
    return TopicPlan("events", OPEN, (HopPlan(Zone.STANDARDIZED), curated_hop(*(ends or (901,)))))


def curated_follows(bench: Bench, *ends: int) -> TopicPlan:
    """A batch to standardize, after which the planner finds the given ones to curate."""
    bench.planner.hops["events"] = curated_hop(*(ends or (901,)))
    return TopicPlan("events", OPEN, (hop_of("events", 1), HopPlan(Zone.CURATED, follows=True)))


def curated_stands_alone(_: Bench) -> TopicPlan:
    """Both hops have batches, and Curated's are known already."""
    return TopicPlan("events", OPEN, (hop_of("events", 1), curated_hop(901)))


def outcomes_of(*hops: HopPlan) -> tuple[BatchOutcome, ...]:
    return tuple(BatchOutcome(one.batch.batch_id, hop.zone, COUNTS) for hop in hops for one in hop.batches)


def recorded(bench: Bench) -> list[tuple[str, str, str | None, str]]:
    return [(row["zone"], row["status"], row["batch_id"], row["reason"]) for row in bench.books.rows]


def first_id(hop: HopPlan) -> str:
    return hop.batches[0].batch.batch_id


# order


def test_curated_takes_what_the_hop_before_has_just_published(bench: Bench) -> None:
    plan, curated = curated_follows(bench), curated_hop(901)
    outcome = bench.run(plan)["events"]
    assert bench.planner.asked == [("events", Zone.CURATED, OPEN, 1)], "once, after the batch before it was done"
    assert bench.batches.ran == [*plan.hops[0].batches, *curated.batches]
    assert outcome == TopicOutcome("events", RunStatus.SUCCEEDED, None, outcomes_of(plan.hops[0], curated))
    assert bench.settled == ["events"]
    assert bench.books.rows == bench.books.alerts == []


def test_the_fresh_plan_of_a_hop_that_follows_takes_the_place_of_the_old_one(bench: Bench) -> None:
    hop, _ = curated_follows(bench, 902).hops
    bench.run(TopicPlan("events", OPEN, (hop, replace(curated_hop(901), follows=True))))
    assert bench.batches.ran == [*hop.batches, *curated_hop(902).batches]


def test_a_hop_that_follows_and_finds_nothing_is_done(bench: Bench) -> None:
    plan = curated_follows(bench)
    bench.planner.hops.clear()
    assert bench.run(plan)["events"] == TopicOutcome("events", RunStatus.SUCCEEDED, None, outcomes_of(plan.hops[0]))


def test_a_curated_hop_without_one_before_it_is_taken_as_it_was_planned(bench: Bench) -> None:
    plan = only_curated(901, 902)
    assert bench.run(plan)["events"] == TopicOutcome("events", RunStatus.SUCCEEDED, None, outcomes_of(plan.hops[1]))
    assert bench.batches.ran == batches_of(plan)
    assert bench.planner.asked == []


# failures


@pytest.mark.parametrize("planned", [curated_follows, curated_stands_alone])
def test_a_failing_standardized_hop_does_not_keep_curated_from_what_is_there(
    bench: Bench, planned: Callable[[Bench], TopicPlan]
) -> None:
    plan, curated = planned(bench), curated_hop(901)
    bench.batches.acts[STANDARDIZED] = fails(RuntimeError("fell over"))
    assert bench.run(plan)["events"] == TopicOutcome(
        "events", RunStatus.FAILED, "RuntimeError: fell over", outcomes_of(curated)
    )
    assert bench.batches.ran == [*plan.hops[0].batches, *curated.batches]
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (1, 0)
    assert recorded(bench) == [("standardized", "FAILED", first_id(plan.hops[0]), "RuntimeError: fell over")]


def test_a_failing_curated_hop_leaves_what_was_standardized_in_the_outcome(bench: Bench) -> None:
    plan = curated_follows(bench)
    bench.batches.acts[CURATED] = fails(TerminalError("it does not balance"))
    assert bench.run(plan)["events"] == TopicOutcome(
        "events", RunStatus.FAILED, "it does not balance", outcomes_of(plan.hops[0])
    )
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (0, 1)
    assert recorded(bench) == [("curated", "FAILED", first_id(curated_hop(901)), "it does not balance")]


def test_failures_of_both_hops_are_counted_recorded_and_told_apart(bench: Bench) -> None:
    plan = curated_follows(bench)
    bench.batches.acts = {STANDARDIZED: fails(OSError("no space")), CURATED: fails(TerminalError("it is damaged"))}
    assert bench.run(plan)["events"] == TopicOutcome(
        "events", RunStatus.FAILED, "standardized: OSError: no space; curated: it is damaged"
    )
    counted = {pipeline: found.failures for pipeline, found in bench.state.checkpoints().items()}
    assert counted == {"standardization_events": 1, "curated_events": 1}
    assert recorded(bench) == [
        ("standardized", "FAILED", first_id(plan.hops[0]), "OSError: no space"),
        ("curated", "FAILED", first_id(curated_hop(901)), "it is damaged"),
    ]
    assert [alert.message for alert in bench.books.alerts] == ["OSError: no space", "it is damaged"]
    assert len({alert.alert_id for alert in bench.books.alerts}) == 2


def test_a_reason_that_both_hops_share_is_said_once(bench: Bench) -> None:
    bench.batches.acts["events"] = fails(OSError("no space"))
    assert bench.run(curated_follows(bench))["events"].reason == "OSError: no space"
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (1, 1)


def test_the_failure_of_one_hop_is_told_before_the_skipping_of_the_other(bench: Bench) -> None:
    def overtaken(_: PlannedBatch, __: Lease) -> NoReturn:
        bench.batches.outdated.add("events")
        raise OSError("no space")

    bench.batches.acts[STANDARDIZED] = overtaken
    outcome = bench.run(curated_follows(bench))["events"]
    assert (outcome.status, outcome.reason) == (RunStatus.FAILED, "OSError: no space")
    assert [(zone, status) for zone, status, _, _ in recorded(bench)] == [
        ("standardized", "FAILED"),
        ("curated", "SKIPPED"),
    ]


def test_a_hop_that_was_skipped_makes_the_topics_outcome_skipped_and_keeps_what_was_done(bench: Bench) -> None:
    def overtaken(_: PlannedBatch, __: Lease) -> Counts:
        bench.batches.outdated.add("events")
        return COUNTS

    bench.batches.acts[STANDARDIZED] = overtaken
    plan = curated_follows(bench)
    outcome = bench.run(plan)["events"]
    assert (outcome.status, outcome.batches) == (RunStatus.SKIPPED, outcomes_of(plan.hops[0]))
    assert "another run was faster" in str(outcome.reason)
    assert [(zone, status) for zone, status, _, _ in recorded(bench)] == [("curated", "SKIPPED")]


def in_the_plan(_: Bench, problem: TerminalError) -> HopPlan:
    return HopPlan(Zone.CURATED, problem=problem)


def in_the_fresh_plan(bench: Bench, problem: TerminalError) -> HopPlan:
    bench.planner.hops["events"] = HopPlan(Zone.CURATED, problem=problem)
    return HopPlan(Zone.CURATED, follows=True)


@pytest.mark.parametrize("told", [in_the_plan, in_the_fresh_plan])
def test_a_curated_hop_that_could_not_be_planned_fails_alone(
    bench: Bench, told: Callable[[Bench, TerminalError], HopPlan]
) -> None:
    problem = TerminalError("its metadata file is damaged", where="db.events")
    hop = hop_of("events", 1)
    assert bench.run(TopicPlan("events", OPEN, (hop, told(bench, problem))))["events"] == TopicOutcome(
        "events", RunStatus.FAILED, str(problem), outcomes_of(hop)
    )
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (0, 1)
    assert recorded(bench) == [("curated", "FAILED", None, str(problem))]


def test_three_failures_of_the_curated_hop_pause_the_topic_although_standardizing_goes_well(bench: Bench) -> None:
    def closes(planned: PlannedBatch, lease: Lease) -> Counts:
        bench.state.close_batch(Intent(planned.batch, (), NOW.isoformat()), lease, NOW)
        return COUNTS

    bench.state.update_item("events", lambda _: RegistryItem("events", Status.READY, schema_version="1.0.0"))
    bench.batches.acts = {STANDARDIZED: closes, CURATED: fails(TerminalError("it does not balance"))}
    reasons = [bench.run(curated_follows(bench), run_id=f"run{number}")["events"].reason for number in (1, 2, 3)]
    item = bench.state.item("events")
    assert item is not None
    why = "3 failures in a row, the last: it does not balance"
    assert (item.flow, item.flow_reason) == (Flow.PAUSED, why)
    assert reasons[:2] == ["it does not balance"] * 2
    assert "paused after 3 failures in a row; `lean-ops resume events`" in str(reasons[2])
    assert [alert.kind for alert in bench.books.alerts] == ["JOB_FAILED"] * 3 + ["TOPIC_PAUSED"]
    assert len({alert.alert_id for alert in bench.books.alerts}) == 4
    assert bench.failures("events") == 0


def test_failures_of_different_hops_are_not_in_a_row(bench: Bench) -> None:
    bench.state.update_item("events", lambda _: RegistryItem("events", Status.READY, schema_version="1.0.0"))
    for hop in (STANDARDIZED, CURATED, STANDARDIZED, CURATED):
        bench.batches.acts = {hop: fails(OSError())}
        bench.run(curated_follows(bench))
    item = bench.state.item("events")
    assert item is not None
    assert item.flow is Flow.ENABLED
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (2, 2)


def break_gate(bench: Bench, act: Callable[[str], NoReturn]) -> None:
    bench.ask_gate = act


def break_settling(bench: Bench, act: Callable[[str], NoReturn]) -> None:
    bench.settle = act


@pytest.mark.parametrize("broken", [break_gate, break_settling])
@pytest.mark.parametrize("plan", [to_do("events"), only_curated()], ids=["standardized first", "curated only"])
def test_a_failure_before_the_first_hop_is_counted_and_recorded_under_it(
    bench: Bench, plan: TopicPlan, broken: Callable[[Bench, Callable[[str], NoReturn]], None]
) -> None:
    def act(_: str) -> NoReturn:
        raise TerminalError("its file is gone")

    broken(bench, act)
    hop = plan.work[0]
    assert bench.run(plan)["events"] == TopicOutcome("events", RunStatus.FAILED, "its file is gone")
    assert bench.failures("events", hop.zone) == 1
    assert recorded(bench) == [(hop.zone.value, "FAILED", first_id(hop), "its file is gone")]
    assert [alert.message for alert in bench.books.alerts] == ["its file is gone"]
    assert bench.batches.ran == []
    assert bench.is_free("events")


def test_a_failure_before_the_first_hop_keeps_no_other_topic_from_its_work(bench: Bench) -> None:
    def act(topic: str) -> Gate:
        if topic == "events":
            raise TerminalError("its file is gone")
        return OPEN

    bench.ask_gate = act
    outcomes = bench.run(to_do("events"), *(to_do(f"good_{number}") for number in range(4)))
    assert outcomes.pop("events").status is RunStatus.FAILED
    assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}


# what ends more than a hop


def test_a_lease_that_is_lost_in_the_standardized_hop_starts_no_curated_batch(bench: Bench) -> None:
    def loses(planned: PlannedBatch, lease: Lease) -> NoReturn:
        lose(bench, planned.batch.topic)
        raise LostLeaseError(lease)

    bench.batches.acts[STANDARDIZED] = loses
    plan = curated_follows(bench)
    outcome = bench.run(plan)["events"]
    assert outcome.status is RunStatus.FAILED
    assert "the lease was lost while working" in str(outcome.reason)
    assert bench.batches.ran == list(plan.hops[0].batches)
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (0, 0)


def test_when_spark_can_not_start_for_a_curated_hop_nobody_is_blamed_and_what_was_done_is_told(bench: Bench) -> None:
    bench.batches.acts[CURATED] = fails(SparkStartError("Spark could not be started", found="no Java"))
    plan = curated_follows(bench)
    outcome = bench.run(plan)["events"]
    assert (outcome.status, outcome.batches) == (RunStatus.FAILED, outcomes_of(plan.hops[0]))
    assert "no Java" in str(outcome.reason)
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (0, 0)
    assert bench.books.rows == bench.books.alerts == []


def test_a_gate_that_was_shut_since_the_plan_skips_both_hops_with_one_row(bench: Bench) -> None:
    bench.gates["events"] = Gate(open=False, reason="paused: night")
    plan = curated_follows(bench)
    assert bench.run(plan)["events"] == TopicOutcome("events", RunStatus.SKIPPED, "paused: night")
    assert recorded(bench) == [("standardized", "SKIPPED", first_id(plan.hops[0]), "paused: night")]
    assert bench.batches.ran == []


def test_a_schema_that_changed_since_the_plan_leaves_its_batches_to_the_next_run(bench: Bench) -> None:
    bench.gates["events"] = replace(OPEN, schema_version="1.1.0")
    outcome = bench.run(curated_stands_alone(bench))["events"]
    assert outcome == TopicOutcome(
        "events", RunStatus.SKIPPED, "its schema changed since the plan; the next run takes the new one"
    )
    assert [(zone, status) for zone, status, _, _ in recorded(bench)] == [
        ("standardized", "SKIPPED"),
        ("curated", "SKIPPED"),
    ]
    assert bench.batches.ran == []


def test_an_open_batch_is_finished_with_the_schema_that_it_began_with(bench: Bench) -> None:
    [planned] = curated_hop(901).batches
    resumed = replace(planned, batch=replace(planned.batch, schema_version="0.9.0"), resumes=True)
    outcome = bench.run(TopicPlan("events", OPEN, (HopPlan(Zone.CURATED, (resumed,)),)))["events"]
    assert outcome.status is RunStatus.SUCCEEDED
    assert bench.batches.ran == [resumed]


def test_a_topic_whose_lease_is_held_is_recorded_under_the_hop_that_was_next(bench: Bench) -> None:
    lose(bench, "events")
    plan = only_curated()
    reason = str(bench.run(plan)["events"].reason)
    assert "the lease is held by bob" in reason
    assert recorded(bench) == [("curated", "SKIPPED", first_id(plan.hops[1]), reason)]


@pytest.mark.parametrize("planned", [curated_follows, curated_stands_alone])
def test_an_interrupt_between_the_hops_starts_no_curated_batch(
    bench: Bench, planned: Callable[[Bench], TopicPlan]
) -> None:
    started = Event()

    def finishes(_: PlannedBatch, __: Lease) -> Counts:
        started.set()
        assert bench.cancelled.wait(30)
        return COUNTS

    bench.batches.acts[STANDARDIZED] = finishes
    plan = planned(bench)
    outcomes: Any = bench.new_run().execute(RunPlan((to_do("quick"), plan)))
    assert next(outcomes).topic == "quick"
    assert started.wait(30)
    interrupt(outcomes)
    assert [one for one in bench.batches.ran if one.batch.topic == "events"] == list(plan.hops[0].batches)
    assert bench.books.rows == bench.books.alerts == []
    assert (bench.failures("events"), bench.failures("events", Zone.CURATED)) == (0, 0)
    assert bench.is_free("events")


def test_a_topic_that_both_hops_pause_has_an_alert_of_each(bench: Bench) -> None:
    bench.batches.acts["events"] = fails(OSError("x"))
    for number in (1, 2, 3):
        bench.run(curated_follows(bench), run_id=f"run{number}")
    assert len({alert.alert_id for alert in bench.books.alerts}) == len(bench.books.alerts)


def test_a_failure_before_the_first_hop_of_an_interrupted_run_is_not_counted(bench: Bench) -> None:
    started = Event()

    def act(topic: str) -> None:
        if topic == "events":
            started.set()
            assert bench.cancelled.wait(30)
            raise OSError("disk")

    bench.settle = act
    outcomes = bench.new_run().execute(RunPlan((to_do("quick"), to_do("events"))))
    assert next(outcomes).topic == "quick"
    assert started.wait(30)
    interrupt(outcomes)
    assert bench.failures("events") == 0
    assert bench.books.rows == bench.books.alerts == []


WRITABLE = "Make the home a folder that you can write to."


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TerminalError("it broke", where="here"), "here: it broke"),
        (OSError("disk\nfull"), "OSError: disk"),
        (
            RuntimeError("calling o1.\n: java.lang.Error: no room\n\tat x"),
            "RuntimeError: calling o1. java.lang.Error: no room",
        ),
        (ValueError(), "ValueError:"),
        (
            RuntimeError("calling o1.\n: java.io.IOException: No space left on device\n\tat x"),
            "the disk is full; found [Errno 28] No space left on device. Free some room and do the same again.",
        ),
        (PermissionError(13, "no", "f"), "a file can't be written; found [Errno 13] no: 'f'. " + WRITABLE),
    ],
)
def test_an_error_is_told_in_a_line(error: Exception, words: str) -> None:
    assert in_words(error) == words
