"""The three state machines as they are deployed, executed on the local cloud; only pauses are shorter."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.aws_local.cloud_server import start_cloud
from tests.integration.aws.cloud_scene import Deployed, at_once, wait_until
from tests.integration.aws.machines_scene import Machines

CONCURRENCY = 3


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    folder, home = tmp_path_factory.mktemp("cloud"), tmp_path_factory.mktemp("home")
    cloud = start_cloud(folder, options=["--calls-at-a-time", "2", "--jobs-at-a-time", str(CONCURRENCY + 1)])
    made = Machines(Deployed(cloud, folder, objects=cloud), home, CONCURRENCY)
    made.make()
    yield made
    cloud.stop()


@pytest.fixture
def machines(deployed: Machines) -> Machines:
    deployed.clear()
    return deployed


# the master


def test_groups_go_all_the_way(machines: Machines) -> None:
    machines.grouped(["events", "orders"], ["payments"])
    machines.has("raw", "events", "orders", "payments")

    done = machines.execute("master")

    assert done["status"] == "SUCCEEDED", done
    assert machines.found("curated") == ["events", "orders", "payments"]
    asked = sorted(machines.calls("ensure_table"), key=str)
    assert asked == [{"topics": ["events", "orders"]}, {"topics": ["payments"]}]
    given = {tuple(run["topics"]): run["given"] for run in machines.runs("standardized")}
    job = f"{machines.deployed.name}-standardized"
    assert given[("events", "orders")] == {"--JOB_NAME": job, "--topics": '["events","orders"]'}
    assert machines.map_counts(done) == {"total": 2, "succeeded": 2, "failed": 0}
    assert machines.alerts() == []


def test_a_group_without_an_open_gate_starts_nothing(machines: Machines) -> None:
    machines.grouped(["events"])
    machines.has("raw", "events")
    machines.has("shut", "events")

    done = machines.execute("master")

    assert done["status"] == "SUCCEEDED"
    assert machines.map_counts(done)["succeeded"] == 1
    assert machines.calls("ensure_table") == machines.runs("standardized") == machines.runs("curated") == []


def test_a_group_with_nothing_new_starts_nothing(machines: Machines) -> None:
    machines.grouped(["events", "orders"])

    done = machines.execute("master")

    assert machines.map_counts(done) == {"total": 1, "succeeded": 1, "failed": 0}
    assert len(machines.calls("check_schema")) == 1
    assert machines.calls("ensure_table") == machines.runs("standardized") == machines.runs("curated") == []


def test_a_group_whose_schemas_end_at_standardized_starts_no_second_job(machines: Machines) -> None:
    machines.grouped(["events"])
    machines.has("raw", "events")
    machines.has("standardized_only", "events")

    done = machines.execute("master")

    assert machines.map_counts(done)["succeeded"] == 1
    assert machines.found("standardized") == ["events"]
    assert machines.runs("curated") == []


def test_what_an_earlier_run_has_standardized_is_curated_without_a_first_job(machines: Machines) -> None:
    machines.grouped(["events"])
    machines.has("standardized", "events")

    machines.execute("master")

    assert machines.found("curated") == ["events"]
    assert machines.runs("standardized") == machines.calls("ensure_table") == []


def test_a_topic_that_fails_stops_neither_its_group_nor_the_others_and_is_told_of(machines: Machines) -> None:
    machines.grouped(["events", "orders"], ["payments"])
    machines.has("raw", "events", "orders", "payments")
    machines.has("broken", "orders")

    done = machines.execute("master")

    assert done["status"] == "SUCCEEDED"
    assert machines.found("curated") == ["events", "payments"]
    assert machines.found("raw") == ["orders"]
    assert machines.map_counts(done) == {"total": 2, "succeeded": 1, "failed": 1}
    (alert,) = machines.alerts()
    assert alert["Subject"] == "[critical] JOB_FAILED: a group of topics failed"
    assert alert["MessageAttributes"]["severity"]["Value"] == "critical"
    told = json.loads(alert["Message"])
    assert told["topics"] == ["events", "orders"]
    assert told["execution"] == done["executionArn"]
    assert list(told["errors"]) == ["RunStandardized"]
    assert "exit code 1: failed: orders" in told["errors"]["RunStandardized"]["Cause"]


def test_a_second_job_that_fails_is_told_of_beside_the_first(machines: Machines) -> None:
    machines.grouped(["events", "orders", "payments"])
    machines.has("raw", "events", "orders")
    machines.has("standardized", "payments")
    machines.has("broken", "orders", "payments")

    machines.execute("master")

    assert machines.found("curated") == ["events"]
    (alert,) = machines.alerts()
    assert sorted(json.loads(alert["Message"])["errors"]) == ["RunCurated", "RunStandardized"]


@pytest.mark.parametrize("function", ["check_schema", "ensure_table"])
def test_a_function_that_fails_for_good_ends_its_group_with_an_alert(machines: Machines, function: str) -> None:
    machines.grouped(["events"])
    machines.has("raw", "events")
    machines.has("once", f"{function}.TerminalError")

    done = machines.execute("master")

    assert machines.map_counts(done)["failed"] == 1
    (alert,) = machines.alerts()
    (error,) = json.loads(alert["Message"])["errors"].values()
    assert error["Error"] == "TerminalError"
    assert len(machines.calls(function)) == 1
    assert machines.found("raw") == ["events"]


def test_a_function_that_fails_for_now_is_tried_again(machines: Machines) -> None:
    machines.grouped(["events"])
    machines.has("raw", "events")
    for function in ("fetch_active_topics", "check_schema", "ensure_table"):
        machines.has("once", f"{function}.TransientError")

    done = machines.execute("master")

    assert machines.found("curated") == ["events"]
    assert machines.map_counts(done)["failed"] == 0
    counted = {name: len(machines.calls(name)) for name in ("fetch_active_topics", "check_schema", "ensure_table")}
    assert counted == {"fetch_active_topics": 2, "check_schema": 3, "ensure_table": 2}
    assert machines.alerts() == []


def test_a_run_that_finds_an_older_one_at_work_does_nothing(machines: Machines) -> None:
    machines.grouped(["events"])
    machines.has("raw", "events")
    machines.has("wait", "standardized")
    first = machines.start("master")
    wait_until(lambda: len(machines.calls("ensure_table")) == 1)

    second = machines.execute("master")
    (machines.home / "wait" / "standardized").unlink()

    assert second["status"] == "SUCCEEDED"
    assert machines.passed(second)[-1] == "SkipOverlap"
    assert machines.ended(first)["status"] == "SUCCEEDED"
    assert len(machines.calls("fetch_active_topics")) == 1
    assert machines.passed(machines.execute("master"))[-1] == "AllGroupsTaken"


def test_without_an_active_topic_there_is_nothing_to_do(machines: Machines) -> None:
    machines.grouped()

    assert machines.passed(machines.execute("master"))[-1] == "NothingActive"


def test_a_run_that_fails_itself_is_told_of(machines: Machines) -> None:
    machines.has("once", "fetch_active_topics.TerminalError")

    done = machines.execute("master")

    assert (done["status"], done["error"]) == ("FAILED", "RunFailed")
    assert "Nothing is lost" in done["cause"]
    (alert,) = machines.alerts()
    assert list(json.loads(alert["Message"])["errors"]) == ["FetchActiveTopics"]


def test_no_more_groups_are_at_work_than_the_concurrency_allows(machines: Machines) -> None:
    topics = [f"topic_{number}" for number in range(2 * CONCURRENCY)]
    machines.grouped(*([topic] for topic in topics))
    machines.has("raw", *topics)
    machines.has("standardized_only", *topics)
    (machines.home / "seconds").write_text("2")

    machines.execute("master")

    spans = [run["span"] for run in machines.runs("standardized")]
    assert len(spans) == len(topics)
    assert at_once(CONCURRENCY, spans)
    assert not at_once(1, spans)


def test_a_stopped_run_ends_its_jobs(machines: Machines) -> None:
    machines.grouped(["events"])
    machines.has("raw", "events")
    machines.has("wait", "standardized")
    execution = machines.start("master")
    job = f"{machines.deployed.name}-standardized"

    def newest() -> str:
        runs = machines.deployed.glue.get_job_runs(JobName=job)["JobRuns"]
        return str(max(runs, key=lambda run: run["StartedOn"])["JobRunState"])

    wait_until(lambda: newest() == "RUNNING")

    machines.states.stop_execution(executionArn=execution)

    wait_until(lambda: newest() == "STOPPED")
    assert machines.ended(execution)["status"] == "ABORTED"


# the rebuilder


def test_a_topic_is_rebuilt_and_its_books_are_looked_at(machines: Machines) -> None:
    done = machines.execute("rebuilder", {"topic": "events"})

    assert done["status"] == "SUCCEEDED", done
    assert machines.passed(done)[-1] == "Rebuilt"
    assert [run["given"]["--topics"] for run in machines.runs("rebuild")] == ['["events"]']
    assert machines.calls("health") == [{"topics": ["events"]}]


@pytest.mark.parametrize("given", [{}, {"topics": ["events"]}, {"topic": 7}])
def test_a_rebuild_of_nothing_says_what_it_needs(machines: Machines, given: dict[str, object]) -> None:
    done = machines.execute("rebuilder", given)

    assert (done["status"], done["error"]) == ("FAILED", "BadInput")
    assert '{"topic": "events"}' in done["cause"]
    assert machines.calls("check_schema") == machines.runs("rebuild") == []


def test_a_rebuild_of_a_topic_with_a_shut_gate_is_refused(machines: Machines) -> None:
    machines.has("shut", "events")

    done = machines.execute("rebuilder", {"topic": "events"})

    assert (done["status"], done["error"]) == ("FAILED", "GateShut")
    assert machines.runs("rebuild") == []


def test_a_rebuild_that_fails_is_told_of(machines: Machines) -> None:
    machines.has("broken", "events")

    done = machines.execute("rebuilder", {"topic": "events"})

    assert (done["status"], done["error"]) == ("FAILED", "RebuildFailed")
    assert machines.calls("health") == []
    (alert,) = machines.alerts()
    told = json.loads(alert["Message"])
    assert (told["topics"], list(told["errors"])) == (["events"], ["RunRebuild"])


def test_a_rebuild_whose_books_do_not_balance_is_told_of(machines: Machines) -> None:
    (machines.home / "unbalanced").touch()

    done = machines.execute("rebuilder", {"topic": "events"})

    assert done["error"] == "RebuildFailed"
    (alert,) = machines.alerts()
    assert json.loads(alert["Message"])["errors"]["BooksBalance"]["Error"] == "BooksDoNotBalance"


# maintenance


def test_each_group_is_maintained_by_the_cadence_and_a_failure_is_told_of(machines: Machines) -> None:
    machines.grouped(["events", "orders"], ["payments"])
    machines.has("broken", "payments")

    done = machines.execute("maintenance", {"cadence": "weekly"})

    assert done["status"] == "SUCCEEDED", done
    given = sorted((run["given"]["--topics"], run["given"]["--cadence"]) for run in machines.runs("maintenance"))
    assert given == [('["events","orders"]', "weekly"), ('["payments"]', "weekly")]
    assert machines.map_counts(done) == {"total": 2, "succeeded": 1, "failed": 1}
    (alert,) = machines.alerts()
    told = json.loads(alert["Message"])
    assert (told["topics"], told["cadence"], list(told["errors"])) == (["payments"], "weekly", ["RunMaintenance"])


@pytest.mark.parametrize("given", [{}, {"cadence": "hourly"}])
def test_maintenance_without_a_cadence_says_what_it_needs(machines: Machines, given: dict[str, object]) -> None:
    done = machines.execute("maintenance", given)

    assert (done["status"], done["error"]) == ("FAILED", "BadInput")
    assert '{"cadence": "daily"}' in done["cause"]
    assert machines.calls("fetch_active_topics") == []
