from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.unit.operate.run_bench import COUNTS, NOW, OPEN, Bench, batches_of, fails, interrupt, lose, succeeded, to_do

from lean_ops.lake.spark import SparkStartError
from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Counts, Intent, Zone
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.model.registry import Flow, Gate, RegistryItem, Status
from lean_ops.operate.leases import LeaseKeeper
from lean_ops.operate.plan import HopPlan, PlannedBatch, RunPlan, TopicPlan
from lean_ops.operate.room import SMALL_PER_WORKER
from lean_ops.operate.run import TopicOutcome
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Held, Lease


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with capture_logs():
        yield Bench(tmp_path)


def test_each_topics_batches_are_done_in_order_and_its_lease_is_given_back(bench: Bench) -> None:
    events, orders = to_do("events", 1, 2, 3), to_do("orders")
    assert bench.run(events, orders) == {"events": succeeded(events), "orders": succeeded(orders)}
    assert [one for one in bench.batches.ran if one.batch.topic == "events"] == batches_of(events)
    assert sorted(bench.settled) == ["events", "orders"]
    assert bench.books.rows == bench.books.alerts == []
    assert bench.is_free("events")
    assert bench.is_free("orders")


def test_nothing_planned_is_nothing_done(bench: Bench) -> None:
    assert list(bench.new_run().execute(RunPlan((TopicPlan("events", OPEN, (HopPlan(Zone.STANDARDIZED),)),)))) == []


def test_outcomes_come_as_the_topics_finish(bench: Bench) -> None:
    go_on = Event()

    def waits(_: PlannedBatch, __: Lease) -> Counts:
        assert go_on.wait(30)
        return COUNTS

    bench.batches.acts["slow"] = waits
    outcomes = bench.new_run().execute(RunPlan((to_do("slow"), to_do("quick"), to_do("quicker"))))
    first = {next(outcomes).topic, next(outcomes).topic}
    assert first == {"quick", "quicker"}
    go_on.set()
    assert [outcome.topic for outcome in outcomes] == ["slow"]


def test_a_failing_topic_does_not_stop_the_others(bench: Bench) -> None:
    bench.batches.acts["bad"] = fails(RuntimeError("the job\nfell over"))
    bad, others = to_do("bad"), [to_do(f"good_{number}") for number in range(5)]
    outcomes = bench.run(bad, *others)
    assert outcomes.pop("bad") == TopicOutcome("bad", RunStatus.FAILED, "RuntimeError: the job")
    assert list(outcomes.values()).count(succeeded(others[0])) == 1
    assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}
    assert bench.failures("bad") == 1
    assert bench.is_free("bad")


def test_when_spark_can_not_start_the_run_ends_and_no_topic_is_blamed(bench: Bench) -> None:
    bench.batches.acts["a"] = fails(SparkStartError("Spark could not be started", found="no Java"))
    outcomes = bench.run(to_do("a"), to_do("b"), workers=1)
    assert {topic: outcome.status for topic, outcome in outcomes.items()} == {
        "a": RunStatus.FAILED,
        "b": RunStatus.SKIPPED,
    }
    assert "no Java" in str(outcomes["a"].reason)
    assert bench.failures("a") == bench.failures("b") == 0
    assert bench.books.alerts == []


def test_a_failure_leaves_a_history_row_and_an_alert(bench: Bench) -> None:
    bench.batches.acts["bad"] = fails(TerminalError("it does not balance", remedy="Look at it."))
    plan = to_do("bad")
    bench.run(plan)
    [row] = bench.books.rows
    assert (row["run_id"], row["topic_name"], row["zone"]) == ("run", "bad", "standardized")
    assert (row["status"], row["reason"]) == ("FAILED", "it does not balance. Look at it.")
    assert (row["batch_id"], row["records_in"]) == (batches_of(plan)[0].batch.batch_id, None)
    [alert] = bench.books.alerts
    assert (alert.topic, alert.kind, alert.severity) == ("bad", "JOB_FAILED", "critical")
    assert alert.message == row["reason"]


def test_a_topic_that_could_not_be_planned_fails_with_the_plans_problem(bench: Bench) -> None:
    problem = TerminalError("its metadata file is damaged", where="db.bad_staging")
    outcomes = bench.run(TopicPlan("bad", OPEN, (HopPlan(Zone.STANDARDIZED, problem=problem),)), to_do("good"))
    assert outcomes["bad"] == TopicOutcome("bad", RunStatus.FAILED, str(problem))
    assert outcomes["good"].status is RunStatus.SUCCEEDED
    assert bench.failures("bad") == 1
    assert bench.books.rows[0]["batch_id"] is None


def test_a_failure_in_the_second_batch_is_recorded_under_that_batch_and_the_first_is_told(bench: Bench) -> None:
    plan = to_do("events", 1, 2)
    first, second = batches_of(plan)

    def second_fails(planned: PlannedBatch, _: Lease) -> Counts:
        if planned is second:
            raise RuntimeError("fell over")
        return COUNTS

    bench.batches.acts["events"] = second_fails
    outcome = bench.run(plan)["events"]
    assert [row["batch_id"] for row in bench.books.rows] == [second.batch.batch_id]
    assert (outcome.status, outcome.reason) == (RunStatus.FAILED, "RuntimeError: fell over")
    assert [one.batch_id for one in outcome.batches] == [first.batch.batch_id]


def test_three_failures_in_a_row_pause_the_topic_with_reason_and_alert(bench: Bench) -> None:
    bench.state.update_item("bad", lambda _: RegistryItem("bad", Status.READY, schema_version="1.0.0"))
    bench.batches.acts["bad"] = fails(TerminalError("it does not balance"))
    reasons = []
    for number in (1, 2, 3):
        item = bench.state.item("bad")
        assert item is not None
        assert item.processing_enabled
        reasons.append(bench.run(to_do("bad"), run_id=f"run{number}")["bad"].reason)
    why = "3 failures in a row, the last: it does not balance"
    assert bench.state.item("bad") == RegistryItem(
        "bad", Status.READY, Flow.PAUSED, why, "1.0.0", updated_at=NOW.isoformat()
    )
    assert reasons[:2] == ["it does not balance"] * 2
    assert "paused after 3 failures in a row; `lean-ops resume bad`" in str(reasons[2])
    assert [(row["run_id"], row["status"]) for row in bench.books.rows] == [(f"run{n}", "FAILED") for n in (1, 2, 3)]
    assert [alert.kind for alert in bench.books.alerts] == ["JOB_FAILED"] * 3 + ["TOPIC_PAUSED"]
    assert bench.books.alerts[-1].message == why
    assert len({alert.alert_id for alert in bench.books.alerts}) == 4


def test_a_success_between_failures_starts_the_count_again(bench: Bench) -> None:
    def closes(planned: PlannedBatch, lease: Lease) -> Counts:
        bench.state.close_batch(Intent(planned.batch, (), NOW.isoformat()), lease, NOW)
        return COUNTS

    for act in (fails(OSError()), fails(OSError()), closes, fails(OSError()), fails(OSError())):
        bench.batches.acts["events"] = act
        bench.run(to_do("events"))
    assert bench.failures("events") == 2
    assert bench.state.item("events") is None


def test_a_lost_lease_is_told_and_not_counted_as_a_failure(bench: Bench) -> None:
    def loses(planned: PlannedBatch, lease: Lease) -> Counts:
        lose(bench, planned.batch.topic)
        raise LostLeaseError(lease)

    bench.batches.acts["lost"] = loses
    outcomes = bench.run(to_do("lost"), to_do("good"))
    assert outcomes["lost"].status is RunStatus.FAILED
    assert "the lease was lost while working" in str(outcomes["lost"].reason)
    assert outcomes["good"].status is RunStatus.SUCCEEDED
    assert bench.failures("lost") == 0
    assert bench.books.alerts == []
    assert isinstance(bench.state.acquire("lost", "cy", NOW), Held)


def test_a_failure_after_the_lease_was_lost_is_not_counted_and_does_not_stop_the_others(bench: Bench) -> None:
    def loses(planned: PlannedBatch, _: Lease) -> Counts:
        lose(bench, planned.batch.topic)
        raise TransientError("main moved while this batch was written")

    bench.batches.acts["lost"] = loses
    outcomes = bench.run(to_do("lost"), *(to_do(f"good_{number}") for number in range(4)))
    assert outcomes.pop("lost").status is RunStatus.FAILED
    assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}
    assert bench.failures("lost") == 0


def test_a_topic_whose_failure_can_not_be_recorded_does_not_stop_the_others(bench: Bench) -> None:
    bench.batches.acts["bad"] = fails(RuntimeError("fell over"))
    bench.books.broken_for = {"bad"}
    outcomes = bench.run(to_do("bad"), *(to_do(f"good_{number}") for number in range(4)))
    assert outcomes["bad"].status is RunStatus.FAILED
    assert "fell over" in str(outcomes.pop("bad").reason)
    assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}
    assert bench.failures("bad") == 1


def test_a_topic_whose_skipping_can_not_be_recorded_does_not_stop_the_others(bench: Bench) -> None:
    lose(bench, "held")
    bench.books.broken_for = {"held"}
    outcomes = bench.run(to_do("held"), *(to_do(f"good_{number}") for number in range(4)))
    outcomes.pop("held")
    assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}


def test_a_topic_whose_lease_can_not_be_asked_for_does_not_stop_the_others(bench: Bench) -> None:
    class Stumbling(LeaseKeeper):
        def lease(self, topic: str) -> Any:
            if topic == "bad":
                raise OSError("disk I/O error")
            return super().lease(topic)

    bench.keeper = Stumbling
    outcomes = bench.run(to_do("bad"), *(to_do(f"good_{number}") for number in range(4)))
    assert outcomes["bad"].status is RunStatus.FAILED
    assert "disk I/O error" in str(outcomes.pop("bad").reason)
    assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}


def test_a_topic_whose_lease_is_held_is_skipped_with_the_holders_name(bench: Bench) -> None:
    taken = lose(bench, "events")
    outcome = bench.run(to_do("events"))["events"]
    reason = "the lease is held by bob until 2026-02-03T11:05:00+00:00"
    assert outcome == TopicOutcome("events", RunStatus.SKIPPED, reason)
    assert bench.batches.ran == bench.settled == []
    assert [(row["status"], row["reason"]) for row in bench.books.rows] == [("SKIPPED", reason)]
    assert bench.books.alerts == []
    assert bench.state.acquire("events", "cy", NOW) == Held(taken)


def test_a_gate_that_was_shut_since_the_plan_skips_the_topic(bench: Bench) -> None:
    bench.gates["events"] = Gate(open=False, reason="paused: night")
    assert bench.run(to_do("events"))["events"] == TopicOutcome("events", RunStatus.SKIPPED, "paused: night")
    assert bench.batches.ran == []
    assert bench.failures("events") == 0


def test_a_batch_that_another_run_has_done_meanwhile_is_skipped(bench: Bench) -> None:
    bench.batches.outdated.add("events")
    outcome = bench.run(to_do("events"))["events"]
    assert (outcome.status, outcome.batches) == (RunStatus.SKIPPED, ())
    assert "another run was faster" in str(outcome.reason)
    assert bench.batches.ran == []


def test_a_second_batch_that_another_run_has_done_keeps_the_first_in_the_outcome(bench: Bench) -> None:
    plan = to_do("events", 1, 2)

    def overtaken(_: PlannedBatch, __: Lease) -> Counts:
        bench.batches.outdated.add("events")
        return COUNTS

    bench.batches.acts["events"] = overtaken
    outcome = bench.run(plan)["events"]
    assert outcome.status is RunStatus.SKIPPED
    assert [one.batch_id for one in outcome.batches] == [batches_of(plan)[0].batch.batch_id]


def test_small_files_are_looked_after_once_when_all_topics_are_done_also_failed_ones(bench: Bench) -> None:
    bench.batches.acts["b"] = fails(TerminalError("no"))
    bench.run(to_do("a", 1, 2), to_do("b"), run_id="r1")
    assert bench.tidied == [("r1", 3)]


def test_whoever_leaves_early_is_not_kept_by_small_files(bench: Bench) -> None:
    outcomes = bench.new_run(workers=1).execute(RunPlan((to_do("a"), to_do("b"))))
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert bench.tidied == []


# interrupts


def leave(outcomes: Iterator[TopicOutcome]) -> None:
    """What happens when whoever reads the outcomes goes away."""
    generator: Any = outcomes
    generator.close()


@pytest.mark.parametrize(
    ("workers", "topics", "waits"),
    [
        (1, 60, False),
        (2, 4 * SMALL_PER_WORKER, False),
        (2, 4 * SMALL_PER_WORKER + 1, True),
        (2, 60, True),
    ],
)
def test_rows_wait_for_those_of_others_only_while_there_are_many_to_come(
    bench: Bench, workers: int, topics: int, waits: bool
) -> None:
    bench.run(*(to_do(f"t{number}") for number in range(topics)), workers=workers)
    assert len(bench.gathered) == waits


@pytest.mark.parametrize("stop", [interrupt, leave])
@pytest.mark.parametrize(("topics", "rows", "at_work"), [(6, 10**6, 2), (60, 0, 2 * SMALL_PER_WORKER)])
def test_an_interrupt_cancels_running_jobs_and_starts_no_other_topic(
    bench: Bench, stop: Callable[[Iterator[TopicOutcome]], None], topics: int, rows: int, at_work: int
) -> None:
    started = Event()

    def until_cancelled(_: PlannedBatch, __: Lease) -> Counts:
        started.set()
        assert bench.cancelled.wait(30)
        raise RuntimeError("the job was cancelled")

    bench.batches.acts = {f"slow_{number}": until_cancelled for number in range(topics)}
    plans = [to_do("quick"), *(replace(to_do(name), merged_into=rows) for name in bench.batches.acts)]
    outcomes = bench.new_run().execute(RunPlan(tuple(plans)))
    assert next(outcomes).topic == "quick"
    assert started.wait(30)
    stop(outcomes)
    assert bench.cancelled.is_set()
    assert len(bench.batches.ran) <= 1 + at_work
    assert bench.books.rows == bench.books.alerts == []
    for planned in bench.batches.ran:
        assert bench.failures(planned.batch.topic) == 0
        assert bench.is_free(planned.batch.topic)


def test_an_interrupt_lets_the_running_batch_finish_and_starts_no_next_one(bench: Bench) -> None:
    started = Event()

    def finishes(_: PlannedBatch, __: Lease) -> Counts:
        started.set()
        assert bench.cancelled.wait(30)
        return COUNTS

    bench.batches.acts["slow"] = finishes
    slow = to_do("slow", 1, 2)
    outcomes = bench.new_run().execute(RunPlan((to_do("quick"), slow)))
    assert next(outcomes).topic == "quick"
    assert started.wait(30)
    interrupt(outcomes)
    assert [one for one in bench.batches.ran if one.batch.topic == "slow"] == batches_of(slow)[:1]
    assert bench.is_free("slow")
