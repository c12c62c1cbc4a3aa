"""The topics' queues: what each answer of SQS means for each message."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from botocore.stub import Stubber

from lean_ops.aws.environment import Deployment
from lean_ops.aws.topic_queues import QueueGoneError, TopicQueues, Verdict, attribute_bytes, sqs_client
from lean_ops.model.errors import TerminalError, TransientError

URL = "https://sqs.eu-central-1.amazonaws.com/1/lean-ops-dev-events"


@pytest.fixture(scope="module")
def client() -> Any:
    return boto3.Session("key", "not-a-secret", region_name="eu-central-1").client("sqs")


@pytest.fixture
def sqs(client: Any) -> Iterator[Stubber]:
    with Stubber(client) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def queues(client: Any) -> TopicQueues:
    return TopicQueues(client, Deployment("lean-ops", "dev"))


def taken(entry_id: int, body: str) -> dict[str, str]:
    digest = hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
    return {"Id": str(entry_id), "MessageId": "m", "MD5OfMessageBody": digest}


def asked(*bodies: str) -> dict[str, Any]:
    attributes = {"topic_name": {"DataType": "String", "StringValue": "events"}}
    return {
        "QueueUrl": URL,
        "Entries": [
            {"Id": str(at), "MessageBody": body, "MessageAttributes": attributes} for at, body in enumerate(bodies)
        ],
    }


def test_a_queue_is_found_by_its_name(queues: TopicQueues, sqs: Stubber) -> None:
    sqs.add_response("get_queue_url", {"QueueUrl": URL}, {"QueueName": "lean-ops-dev-events"})
    assert queues.url("events") == URL


@pytest.mark.parametrize("code", ["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"])
def test_a_queue_that_is_not_there_is_told_apart(queues: TopicQueues, sqs: Stubber, code: str) -> None:
    sqs.add_client_error("get_queue_url", code, http_status_code=400)
    with pytest.raises(QueueGoneError, match="lean-ops-dev-events"):
        queues.url("events")
    sqs.add_client_error("send_message_batch", code, http_status_code=400)
    with pytest.raises(QueueGoneError):
        queues.send(URL, "events", ["a"])


def test_each_message_has_its_own_verdict_whatever_the_order_of_the_answer(queues: TopicQueues, sqs: Stubber) -> None:
    answer = {
        "Successful": [taken(3, "d"), taken(0, "ä")],
        "Failed": [
            {"Id": "2", "Code": "InternalError", "Message": "busy", "SenderFault": False},
            {"Id": "1", "Code": "InvalidMessageContents", "SenderFault": True},
        ],
    }
    sqs.add_response("send_message_batch", answer, asked("ä", "b", "c", "d"))
    assert queues.send(URL, "events", ["ä", "b", "c", "d"]) == [
        Verdict(taken=True),
        Verdict(taken=False, reason="InvalidMessageContents: ", for_good=True),
        Verdict(taken=False, reason="InternalError: busy"),
        Verdict(taken=True),
    ]


def test_a_message_that_the_answer_does_not_name_is_not_taken(queues: TopicQueues, sqs: Stubber) -> None:
    answer = {"Successful": [taken(0, "a"), taken(7, "b")], "Failed": []}
    sqs.add_response("send_message_batch", answer, asked("a", "b"))
    assert [verdict.taken for verdict in queues.send(URL, "events", ["a", "b"])] == [True, False]


def test_a_confirmation_of_another_body_is_none(queues: TopicQueues, sqs: Stubber) -> None:
    sqs.add_response("send_message_batch", {"Successful": [taken(0, "other")], "Failed": []})
    (verdict,) = queues.send(URL, "events", ["a"])
    assert (verdict.taken, verdict.for_good) == (False, False)
    assert "another body" in verdict.reason


@pytest.mark.parametrize(
    "code", ["RequestThrottled", "ThrottlingException", "KmsThrottled", "InternalError", "ServiceUnavailable"]
)
def test_what_passes_is_transient(queues: TopicQueues, sqs: Stubber, code: str) -> None:
    sqs.add_client_error("send_message_batch", code, http_status_code=400)
    with pytest.raises(TransientError, match=code):
        queues.send(URL, "events", ["a"])


@pytest.mark.parametrize("code", ["AccessDenied", "KmsDisabled", "InvalidClientTokenId"])
def test_what_does_not_pass_is_terminal_and_says_where_to_look(queues: TopicQueues, sqs: Stubber, code: str) -> None:
    sqs.add_client_error("send_message_batch", code, http_status_code=403)
    with pytest.raises(TerminalError, match="role") as error:
        queues.send(URL, "events", ["a"])
    assert not isinstance(error.value, QueueGoneError)


def test_a_call_without_an_answer_is_transient(queues: TopicQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (ReadTimeoutError(endpoint_url=URL), EndpointConnectionError(endpoint_url=URL)):

        def fails(error: Exception = error, **_: Any) -> Any:
            raise error

        monkeypatch.setattr(queues.client, "send_message_batch", fails)
        with pytest.raises(TransientError):
            queues.send(URL, "events", ["a"])


def test_one_message_that_spoils_the_call_is_found_and_its_neighbours_go_through(
    queues: TopicQueues, sqs: Stubber
) -> None:
    sqs.add_client_error("send_message_batch", "InvalidMessageContents", http_status_code=400)
    sqs.add_response("send_message_batch", {"Successful": [taken(0, "a")], "Failed": []}, asked("a"))
    sqs.add_client_error("send_message_batch", "InvalidMessageContents", http_status_code=400)
    sqs.add_response("send_message_batch", {"Successful": [taken(0, "c")], "Failed": []}, asked("c"))
    verdicts = queues.send(URL, "events", ["a", "b", "c"])
    assert [(verdict.taken, verdict.for_good) for verdict in verdicts] == [(True, False), (False, True), (True, False)]


def test_a_client_makes_one_attempt_within_its_time_and_has_a_connection_for_each_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    config = sqs_client(8, 24).meta.config
    assert (config.read_timeout, config.connect_timeout, config.max_pool_connections) == (8, 4, 24)
    assert config.retries["total_max_attempts"] == 1


def test_the_attribute_counts_as_sqs_counts_it() -> None:
    assert attribute_bytes("events") == len("topic_name") + len("String") + len("events")
