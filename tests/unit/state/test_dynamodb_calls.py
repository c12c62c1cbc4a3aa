from __future__ import annotations

import socket
from collections.abc import Iterator

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import NoCredentialsError, ParamValidationError
from mypy_boto3_dynamodb import DynamoDBClient
from tests.unit.state.stubs import Script, Watch, scripted

from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError
from lean_ops.state.dynamodb_calls import ConditionFailedError, Dynamo, Patience

TABLE = "lean-ops-dev-locks"


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as script:
        yield script


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def dynamo(script: Script, watch: Watch) -> Dynamo:
    names = iter(f"token-{number}" for number in range(1000))
    return Dynamo(script.client, watch.patience(), lambda: next(names))


def get(client: DynamoDBClient) -> object:
    return client.get_item(TableName=TABLE, Key={"topic_name": {"S": "events"}})


def write(dynamo: Dynamo) -> None:
    dynamo.transact("a or b", [{"Delete": {"TableName": "a", "Key": {"id": {"S": "x"}}}}])


BUSY = [
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
]


# patience


def test_the_first_try_is_at_once_and_pauses_grow_to_a_bound(watch: Watch) -> None:
    tries = list(watch.patience(4).tries())
    assert tries == list(range(1, len(tries) + 1))
    assert watch.pauses == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1, 1]
    assert watch.time <= 4


def test_without_time_there_is_one_try(watch: Watch) -> None:
    assert list(watch.patience(0).tries()) == [1]
    assert watch.pauses == []


def test_pauses_differ_from_caller_to_caller(watch: Watch) -> None:
    shares = iter([0.5, 0.0, 0.25] * 10)
    patience = Patience(1, sleep=watch.sleep, elapsed=lambda: watch.time, share=lambda: next(shares))
    list(patience.tries())
    assert watch.pauses[:4] == [0.01, 0.0, 0.02, 0.08]


def test_time_spent_in_the_tries_themselves_counts(watch: Watch) -> None:
    tries = 0
    for tries in watch.patience(10).tries():  # noqa: B007  counted
        watch.time += 4
    assert tries == 3


# what passes


@pytest.mark.parametrize("code", BUSY)
def test_a_call_is_tried_again_while_dynamodb_is_busy(script: Script, dynamo: Dynamo, watch: Watch, code: str) -> None:
    script.refuse("get_item", code, times=3)
    script.answer("get_item", Item={"topic_name": {"S": "events"}})
    dynamo.do(TABLE, get)
    assert len(watch.pauses) == 3


@pytest.mark.parametrize("status", [500, 503])
def test_a_fault_of_the_server_passes_whatever_it_is_called(script: Script, dynamo: Dynamo, status: int) -> None:
    script.refuse("get_item", "SomethingNew", status=status)
    script.answer("get_item")
    dynamo.do(TABLE, get)
    script.stubber.assert_no_pending_responses()


@pytest.mark.parametrize("code", BUSY)
def test_a_call_that_stays_refused_is_told_with_table_tries_and_reason(
    script: Script, dynamo: Dynamo, watch: Watch, code: str
) -> None:
    script.refuse_for_ever("get_item", code)
    with pytest.raises(TransientError) as told:
        dynamo.do(TABLE, get)
    assert str(told.value).startswith(
        f"DynamoDB table {TABLE}: DynamoDB is busy: {len(script.asked)} tries in 10 seconds were refused;"
        f" found {code}: {code} it is."
    )
    assert watch.time <= 10
    assert len(script.asked) > 10


# what stays


@pytest.mark.parametrize(
    ("code", "what", "remedy"),
    [
        ("ResourceNotFoundException", "there is no such table", "Terraform"),
        ("AccessDeniedException", "does not allow this call", "role"),
        ("UnrecognizedClientException", "does not allow this call", "credentials"),
        ("ExpiredTokenException", "does not allow this call", "credentials"),
        ("ValidationException", "refused the call", "None"),
        ("SomethingNew", "refused the call", "None"),
    ],
)
def test_what_stays_refused_is_told_at_once(
    script: Script, dynamo: Dynamo, watch: Watch, code: str, what: str, remedy: str
) -> None:
    script.refuse("get_item", code)
    with pytest.raises(TerminalError, match=what) as told:
        dynamo.do(TABLE, get)
    assert told.value.where == f"DynamoDB table {TABLE}"
    assert told.value.found == f"{code}: {code} it is"
    assert remedy in str(told.value.remedy)
    assert watch.pauses == []


def test_a_condition_that_does_not_hold_brings_the_item_that_is_there(script: Script, dynamo: Dynamo) -> None:
    item = {"fence": {"N": "7"}}
    script.refuse("update_item", "ConditionalCheckFailedException", Item=item)
    with pytest.raises(ConditionFailedError) as refused:
        dynamo.do(TABLE, lambda client: client.update_item(TableName=TABLE, Key={"topic_name": {"S": "events"}}))
    assert refused.value.item == item


def test_a_server_that_can_not_be_reached_may_be_there_later(watch: Watch) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound, and nobody listens
        client = boto3.Session("key", "secret", region_name="eu-central-1").client(
            "dynamodb",
            endpoint_url=f"http://127.0.0.1:{nobody.getsockname()[1]}",
            config=Config(retries={"total_max_attempts": 1}, connect_timeout=5),
        )
        with pytest.raises(TransientError, match="can't be reached"):
            Dynamo(client, watch.patience()).do(TABLE, get)


@pytest.mark.parametrize(
    ("error", "what"),
    [(NoCredentialsError(), "no credentials"), (ParamValidationError(report="of what"), "can't be made")],
)
def test_a_call_that_never_left_is_told(script: Script, error: Exception, what: str) -> None:
    def call(_: DynamoDBClient) -> None:
        raise error

    with pytest.raises(TerminalError, match=what):
        Dynamo(script.client).do(TABLE, call)


def test_an_error_of_ours_inside_a_call_stays_what_it_is(script: Script) -> None:
    def call(_: DynamoDBClient) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Dynamo(script.client).do(TABLE, call)


# transactions


@pytest.mark.parametrize("codes", [("TransactionConflict", "None"), ("None", "ThrottlingError")])
def test_a_conflict_or_a_throttle_is_another_try_under_another_token(
    script: Script, dynamo: Dynamo, codes: tuple[str, str]
) -> None:
    script.cancel(*codes, times=2)
    script.answer("transact_write_items")
    write(dynamo)
    assert [asked["ClientRequestToken"] for asked in script.asked] == ["token-0", "token-1", "token-2"]


@pytest.mark.parametrize("code", ["TransactionInProgressException", "ThrottlingException", "InternalServerError"])
def test_a_try_whose_end_is_not_known_is_repeated_under_the_same_token(
    script: Script, dynamo: Dynamo, code: str
) -> None:
    """So that it happens once, if it had happened already."""
    script.refuse("transact_write_items", code, times=2)
    script.answer("transact_write_items")
    write(dynamo)
    assert [asked["ClientRequestToken"] for asked in script.asked] == ["token-0"] * 3


@pytest.mark.parametrize(
    "codes", [("ConditionalCheckFailed", "None"), ("ConditionalCheckFailed", "TransactionConflict")]
)
def test_a_condition_that_does_not_hold_is_final_whatever_else_stood_in_the_way(
    script: Script, dynamo: Dynamo, codes: tuple[str, str]
) -> None:
    script.cancel(*codes)
    with pytest.raises(ConditionFailedError):
        write(dynamo)


@pytest.mark.parametrize("codes", [("None", "ValidationError"), ("TransactionConflict", "ValidationError")])
def test_a_write_that_can_never_be_is_told_at_once(script: Script, dynamo: Dynamo, codes: tuple[str, str]) -> None:
    script.cancel(*codes)
    with pytest.raises(TerminalError, match=r"refused the call; found .*ValidationError"):
        write(dynamo)


def test_conflicts_without_end_are_told(script: Script, dynamo: Dynamo, watch: Watch) -> None:
    script.cancel("TransactionConflict", "None", times=100)
    with pytest.raises(TransientError, match="were refused; found TransactionConflict: ") as told:
        write(dynamo)
    assert isinstance(told.value, LeanOpsError)
    assert told.value.where == "DynamoDB table a or b"
    assert watch.time <= 10


def test_a_cancellation_without_reasons_is_told(script: Script, dynamo: Dynamo) -> None:
    script.refuse("transact_write_items", "TransactionCanceledException")
    with pytest.raises(TerminalError, match="TransactionCanceledException"):
        write(dynamo)
