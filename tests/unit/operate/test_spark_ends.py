"""Spark ends in the middle of a run: who is tried again, who is blamed, and what stopping waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from structlog.testing import capture_logs
from tests.unit.operate.run_bench import COUNTS, NOW, OPEN, Bench, fails, hop_of, to_do

from lean_ops.lake.spark import SparkEndedError
from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Counts, Zone
from lean_ops.operate.plan import HopPlan, PlannedBatch, RunPlan, TopicPlan
from lean_ops.operate.run import Run
from lean_ops.settings import Settings
from lean_ops.state.port import Lease

SETTINGS = Settings(spark_driver_memory="512m")


class EndingSpark:
    """An application that ends under the topics of `fatal` and is started anew for the next one."""

    def __init__(self, bench: Bench, *fatal: str, times: int = 100) -> None:
        self.bench, self.times, self.ended = bench, times, False
        for topic in fatal:
            bench.batches.acts[topic] = self.end
            bench.planner.hops[topic] = hop_of(topic, 1)

    def end(self, _: PlannedBatch, __: Lease) -> Counts:
        self.ended = self.times > 0
        self.times -= 1
        if self.ended:
            raise ConnectionError("Connection refused")
        return COUNTS

    def failure(self) -> SparkEndedError | None:
        ended, self.ended = self.ended, False
        return SparkEndedError(-9, SETTINGS) if ended else None

    def run(self) -> Run:
        run = self.bench.new_run(workers=1)
        run.parts = replace(run.parts, spark_failure=self.failure)
        return run


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with capture_logs():
        yield Bench(tmp_path)


def test_a_topic_that_spark_was_working_on_when_it_ended_is_tried_again_and_not_blamed(bench: Bench) -> None:
    spark = EndingSpark(bench, "a", times=1)
    outcomes = list(spark.run().execute(RunPlan((to_do("a"), to_do("b")))))
    assert [(outcome.topic, outcome.status) for outcome in outcomes] == [("b", "SUCCEEDED"), ("a", "SUCCEEDED")]
    assert bench.failures("a") == 0
    assert bench.books.rows == bench.books.alerts == []
    assert bench.is_free("a")


def test_a_topic_that_ends_spark_when_it_is_alone_has_failed(bench: Bench) -> None:
    spark = EndingSpark(bench, "a")
    *_, outcome = spark.run().execute(RunPlan((to_do("a"), to_do("b"))))
    assert (outcome.topic, outcome.status) == ("a", RunStatus.FAILED)
    assert "Spark ended while it worked; found its Java was ended by signal 9 (killed)" in str(outcome.reason)
    assert "`spark_driver_memory`, now 512m" in str(outcome.reason)
    assert (bench.failures("a"), bench.failures("b")) == (1, 0)
    assert [row["status"] for row in bench.books.rows] == ["FAILED"]


def test_what_was_done_before_spark_ended_stays_in_the_outcome(bench: Bench) -> None:
    spark = EndingSpark(bench, times=1)
    bench.batches.acts["a", Zone.CURATED] = spark.end
    curated = hop_of("a", 901, zone=Zone.CURATED)
    plan = TopicPlan("a", OPEN, (hop_of("a", 1), curated))
    (outcome,) = spark.run().execute(RunPlan((plan,)))
    assert [batch.zone for batch in outcome.batches][:1] == [Zone.STANDARDIZED]
    assert outcome.status is RunStatus.SUCCEEDED


def test_an_ordinary_failure_is_not_taken_for_an_end_of_spark(bench: Bench) -> None:
    spark = EndingSpark(bench)
    bench.batches.acts["a"] = fails(RuntimeError("fell over"))
    (outcome,) = spark.run().execute(RunPlan((to_do("a"),)))
    assert (outcome.reason, bench.failures("a")) == ("RuntimeError: fell over", 1)


def test_a_stopped_run_cancels_until_its_threads_have_ended(bench: Bench) -> None:
    cancelled = 0
    began, job = Event(), Event()

    def cancel() -> None:
        nonlocal cancelled
        cancelled += 1
        if cancelled == 3:  # the thread was between two jobs when the first two were cancelled
            job.set()

    def works(_: PlannedBatch, __: Lease) -> Counts:
        began.set()
        assert job.wait(30)
        raise RuntimeError("cancelled")

    bench.batches.acts["slow"] = works
    run = bench.new_run(workers=2)
    run.parts = replace(run.parts, cancel_jobs=cancel)
    outcomes = run.execute(RunPlan((to_do("slow"), to_do("quick"))))
    next(outcomes)
    assert began.wait(30)
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt())
    assert cancelled >= 3
    assert bench.failures("slow") == 0
    assert bench.is_free("slow")


def test_a_hop_without_a_plan_of_its_own_is_found_out_anew(bench: Bench) -> None:
    spark = EndingSpark(bench, "a", times=1)
    bench.planner.hops["a"] = HopPlan(Zone.STANDARDIZED)
    (outcome,) = spark.run().execute(RunPlan((to_do("a"),)))
    assert (outcome.status, outcome.batches) == (RunStatus.SUCCEEDED, ())
    assert bench.planner.asked == [("a", Zone.STANDARDIZED, OPEN, 1)]
    assert bench.state.acquire("a", "next", NOW)
