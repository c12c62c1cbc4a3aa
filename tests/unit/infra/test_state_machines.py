"""What every state machine must have, whatever else changes in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.aws_local.state_machines import MACHINES, VARIABLES, hastened, render, template

State = dict[str, Any]
VALUES: dict[str, str | int] = {
    **{name: f"arn:aws:lambda:eu-central-1:123456789012:function:{name}" for name in VARIABLES},
    "map_concurrency": 17,
}
TRANSIENT = {
    "lambda:invoke": {
        "Lambda.ServiceException",
        "Lambda.AWSLambdaException",
        "Lambda.SdkClientException",
        "Lambda.TooManyRequestsException",
        "TransientError",
    },
    "glue:startJobRun.sync": {"Glue.ConcurrentRunsExceededException", "Glue.ResourceNumberLimitExceededException"},
    "sns:publish": {"SNS.ThrottledException", "SNS.InternalErrorException"},
    "aws-sdk:sfn:listExecutions": {"Sfn.ThrottlingException"},
}
# An error of the product's own that no other attempt would change, and the end of a job that has done what it could.
FOR_GOOD = {"TerminalError", "WrongUseError", "States.ALL", "States.TaskFailed"}


def machine(name: str) -> State:
    found: State = json.loads(render(name, VALUES))
    return found


def scopes(definition: State) -> Iterator[State]:
    """The machine itself and the workflows of its maps."""
    yield definition
    for state in definition["States"].values():
        if state["Type"] == "Map":
            yield from scopes(state["ItemProcessor"])


def all_states(name: str) -> list[tuple[str, State, State]]:
    """Every state with its name and the workflow that it belongs to."""
    return [(title, state, scope) for scope in scopes(machine(name)) for title, state in scope["States"].items()]


def tasks(name: str) -> list[tuple[str, State, State]]:
    return [found for found in all_states(name) if found[1]["Type"] == "Task"]


def resource(state: State) -> str:
    return str(state["Resource"]).removeprefix("arn:aws:states:::")


def next_states(state: State) -> set[str]:
    choices = state.get("Choices", [])
    found = [state.get("Next"), state.get("Default"), *(choice["Next"] for choice in choices)]
    return {*filter(None, found), *(catcher["Next"] for catcher in state.get("Catch", []))}


def reachable(scope: State, start: str) -> set[str]:
    """All states that can come after a state, itself included."""
    seen, ahead = set[str](), [start]
    while ahead:
        title = ahead.pop()
        if title not in seen:
            seen.add(title)
            ahead += next_states(scope["States"][title])
    return seen


def alert_of(scope: State) -> str:
    """The one state of a workflow that tells of errors."""
    (found,) = [name for name, state in scope["States"].items() if resource_or_none(state) == "sns:publish"]
    return str(found)


def resource_or_none(state: State) -> str | None:
    return resource(state) if state["Type"] == "Task" else None


# the texts


def test_every_value_that_terraform_gives_is_known_and_each_template_asks_for_no_other() -> None:
    asked = {found for name in MACHINES for found in re.findall(r"\$\{([^}]*)\}", template(name))}

    assert asked <= VARIABLES
    assert {"state_machine_arn", "map_concurrency", "alert_topic_arn", "rebuild_job", "health_arn"} <= asked


@pytest.mark.parametrize("text", ["${unknown}", "${ check_schema_arn }", "%{ if true }"])
def test_a_value_that_nobody_gives_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.aws_local.state_machines.template", lambda _: text)

    with pytest.raises(ValueError, match="nothing that a template may ask for"):
        render("master", VALUES)


def test_an_escaped_mark_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.aws_local.state_machines.template", lambda _: "$${a} %%{b} ${map_concurrency}")

    assert render("master", VALUES) == "${a} %{b} 17"


def test_only_pauses_are_shorter_in_a_hastened_machine() -> None:
    longer, shorter = machine("master"), json.loads(hastened(render("master", VALUES)))

    def without_pauses(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {name: one for name, one in value.items() if name not in ("IntervalSeconds", "MaxDelaySeconds")}
            return {name: without_pauses(one) for name, one in kept.items()}
        return [without_pauses(one) for one in value] if isinstance(value, list) else value

    assert longer != shorter
    assert without_pauses(longer) == without_pauses(shorter)


# every machine


@pytest.mark.parametrize("name", MACHINES)
def test_names_of_states_are_unique_in_the_whole_machine(name: str) -> None:
    titles = [title for title, _, _ in all_states(name)]

    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", MACHINES)
def test_every_state_can_be_reached_and_leads_to_one_that_is_there(name: str) -> None:
    for scope in scopes(machine(name)):
        assert reachable(scope, scope["StartAt"]) == set(scope["States"])


@pytest.mark.parametrize("name", MACHINES)
def test_every_task_has_its_time_attempts_for_what_is_transient_and_a_catch_of_all(name: str) -> None:
    for title, state, _ in tasks(name):
        retried = {error for retrier in state["Retry"] for error in retrier["ErrorEquals"]}
        assert retried >= TRANSIENT[resource(state)], title
        assert not retried & FOR_GOOD, title
        assert 0 < state["TimeoutSeconds"] < machine(name)["TimeoutSeconds"], title
        for retrier in state["Retry"]:
            assert retrier["JitterStrategy"] == "FULL", title
            assert retrier["BackoffRate"] > 1, title
            assert 1 <= retrier["IntervalSeconds"] < retrier["MaxDelaySeconds"], title
            assert 1 <= retrier["MaxAttempts"] <= 10, title
        assert [catcher["ErrorEquals"] for catcher in state["Catch"]] == [["States.ALL"]], title


@pytest.mark.parametrize("name", MACHINES)
def test_a_job_that_ran_too_long_is_not_started_again(name: str) -> None:
    for title, state, _ in tasks(name):
        retried = {error for retrier in state["Retry"] for error in retrier["ErrorEquals"]}
        assert ("States.Timeout" in retried) == (resource(state) != "glue:startJobRun.sync"), title


@pytest.mark.parametrize("name", MACHINES)
def test_every_error_is_kept_under_its_states_name(name: str) -> None:
    for title, state, _ in all_states(name):
        for catcher in state.get("Catch", []):
            assert catcher["ResultPath"] == f"$.errors.{title}"


@pytest.mark.parametrize("name", MACHINES)
def test_every_catch_leads_to_the_alert_and_from_there_only_to_failure(name: str) -> None:
    for scope in scopes(machine(name)):
        alert = alert_of(scope)
        for title, state in scope["States"].items():
            for catcher in state.get("Catch", []):
                ahead = reachable(scope, catcher["Next"])
                assert title == alert or alert in ahead, title
        after = {scope["States"][title]["Type"] for title in reachable(scope, alert) - {alert}}
        assert after == {"Fail"}


@pytest.mark.parametrize("name", MACHINES)
def test_no_way_from_an_error_ends_well(name: str) -> None:
    for scope in scopes(machine(name)):
        for title, state in scope["States"].items():
            for catcher in state.get("Catch", []):
                assert set(ends_after_error(scope, catcher["Next"])) == {"Fail"}, title


def ends_after_error(scope: State, start: str) -> Iterator[str]:
    """How a workflow can end from a state on when there is an error: a choice that looks for one finds it."""
    state = scope["States"][start]
    if state["Type"] in ("Fail", "Succeed"):
        yield state["Type"]
        return
    for title in ahead_with_error(state):
        yield from ends_after_error(scope, title)


def ahead_with_error(state: State) -> set[str]:
    if state["Type"] != "Choice":
        return next_states(state)
    found = set()
    for choice in state["Choices"]:
        found.add(choice["Next"])
        if (choice.get("Variable"), choice.get("IsPresent")) == ("$.errors", True):
            return found
    return {*found, state["Default"]}


@pytest.mark.parametrize("name", MACHINES)
def test_every_failure_says_what_it_is_and_why(name: str) -> None:
    failures = [state for _, state, _ in all_states(name) if state["Type"] == "Fail"]

    assert failures
    assert all(state["Error"] and len(state["Cause"]) > 40 for state in failures)


@pytest.mark.parametrize("name", MACHINES)
def test_an_alert_is_what_sns_takes_and_says_where_and_what(name: str) -> None:
    for scope in scopes(machine(name)):
        asked = scope["States"][alert_of(scope)]["Parameters"]
        assert asked["TopicArn"] == VALUES["alert_topic_arn"]
        assert len(asked["Subject"]) < 100
        assert asked["Subject"].isascii()
        assert asked["Message"]["execution.$"] == "$$.Execution.Id"
        assert asked["Message"]["errors.$"] == "$.errors"
        assert set(asked["MessageAttributes"]) == {"kind", "severity"}


@pytest.mark.parametrize(("name", "concurrency"), [("master", VALUES["map_concurrency"]), ("maintenance", 5)])
def test_groups_run_distributed_and_none_stops_another(name: str, concurrency: int) -> None:
    (found,) = [state for _, state, _ in all_states(name) if state["Type"] == "Map"]

    assert found["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert found["MaxConcurrency"] == concurrency
    assert found["ToleratedFailurePercentage"] == 100
    assert found["ResultPath"] is None
    assert found["Label"]


@pytest.mark.parametrize("name", MACHINES)
def test_a_job_gets_its_topics_as_json_text(name: str) -> None:
    for title, state, _ in tasks(name):
        if resource(state) == "glue:startJobRun.sync":
            assert state["Parameters"]["Arguments"]["--topics.$"].startswith("States.JsonToString("), title
            assert state["ResultPath"] is None, title


# the master


def test_a_group_has_the_states_of_the_specification_in_their_order() -> None:
    group = next(state for _, state, _ in all_states("master") if state["Type"] == "Map")["ItemProcessor"]
    states = group["States"]

    assert group["StartAt"] == "CheckSchemaExists"
    assert states["CheckSchemaExists"]["Next"] == "SchemaGate"
    assert next_states(states["SchemaGate"]) == {
        "SkipNoSchema",
        "SkipNothingNew",
        "EnsureStandardizedTable",
        "CheckCuratedReady",
    }
    assert states["EnsureStandardizedTable"]["Next"] == "RunStandardized"
    assert next_states(states["RunStandardized"]) == {"CheckCuratedReady"}
    assert states["CheckCuratedReady"]["Next"] == "CuratedSchemaChoice"
    assert next_states(states["CuratedSchemaChoice"]) == {"RunCurated", "SuccessStandardizedOnly", "HandleError"}
    assert reachable(group, "RunCurated") >= {"SuccessFull", "HandleError"}


def test_an_execution_looks_for_an_older_one_before_it_does_anything() -> None:
    master = machine("master")
    states = master["States"]

    assert resource(states[master["StartAt"]]) == "aws-sdk:sfn:listExecutions"
    assert states[master["StartAt"]]["Parameters"] == {
        "StateMachineArn": VALUES["state_machine_arn"],
        "StatusFilter": "RUNNING",
    }
    assert states["IsOldest"]["Default"] == "SkipOverlap"
    assert states["SkipOverlap"]["Type"] == "Succeed"
