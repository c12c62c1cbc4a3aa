"""What a function is told, and the names that follow from it."""

from __future__ import annotations

import pytest

from lean_ops.aws.environment import Deployment, ProcessorEnvironment, TransformEnvironment, queue_of_arn
from lean_ops.model.errors import TerminalError, WrongUseError

VARIABLES = {
    "LEAN_OPS_PROJECT": "lean-ops",
    "LEAN_OPS_ENVIRONMENT": "dev",
    "LEAN_OPS_DELIVERY_STREAM": "lean-ops-dev-raw",
    "LEAN_OPS_ARCHIVE_BUCKET": "archive",
}
DEPLOYMENT = Deployment("lean-ops", "dev")


def test_the_processor_is_told_by_variables() -> None:
    assert ProcessorEnvironment.of(VARIABLES) == ProcessorEnvironment(DEPLOYMENT, "lean-ops-dev-raw", "archive")


def test_the_transform_needs_no_prefix() -> None:
    assert TransformEnvironment.of(VARIABLES) == TransformEnvironment(DEPLOYMENT, "")
    told = TransformEnvironment.of({**VARIABLES, "LEAN_OPS_DATABASE_PREFIX": "dev_"})
    assert told.database_prefix == "dev_"


@pytest.mark.parametrize("name", VARIABLES)
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_variable_is_named(name: str, value: str | None) -> None:
    variables = {**VARIABLES, name: value} if value is not None else {n: v for n, v in VARIABLES.items() if n != name}
    with pytest.raises(TerminalError, match=name):
        ProcessorEnvironment.of(variables)


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(TerminalError) as error:
        ProcessorEnvironment.of({})
    assert all(name in str(error.value) for name in VARIABLES)


@pytest.mark.parametrize("name", ["LEAN_OPS_PROJECT", "LEAN_OPS_ENVIRONMENT"])
def test_a_name_that_no_queue_could_have_is_refused(name: str) -> None:
    with pytest.raises(WrongUseError, match=name):
        Deployment.of({**VARIABLES, name: "a b"})


def test_names_begin_with_project_and_environment() -> None:
    assert DEPLOYMENT.queue("user_events") == "lean-ops-dev-user_events"
    assert DEPLOYMENT.dead_letter_queue == "lean-ops-dev-dlq"
    assert DEPLOYMENT.table("idempotency_keys") == "lean-ops-dev-idempotency_keys"


@pytest.mark.parametrize(
    ("queue", "topic"),
    [
        ("lean-ops-dev-user_events", "user_events"),
        ("lean-ops-dev-User-Events", "user_events"),
        ("lean-ops-dev-dev-x", "dev_x"),
        ("lean-ops-dev-lean-ops-dev-x", "lean_ops_dev_x"),
    ],
)
def test_a_queue_says_its_topic(queue: str, topic: str) -> None:
    assert DEPLOYMENT.topic_of_queue(queue_of_arn(f"arn:aws:sqs:eu-west-1:123456789012:{queue}")) == topic


@pytest.mark.parametrize(
    "queue",
    [
        "",
        "events",
        "lean-ops-prod-events",
        "lean-ops-dev",
        "lean-ops-dev-",
        "lean-ops-dev-9x",
        "lean-ops-dev-dlq",
        "lean-ops-dev-x_staging",
    ],
)
def test_a_queue_without_a_topic_is_refused(queue: str) -> None:
    with pytest.raises(WrongUseError):
        DEPLOYMENT.topic_of_queue(queue)
