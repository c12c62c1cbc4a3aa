"""Reading the dead-letter queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from lean_ops.aws.queues import DeadLetterQueue, letter_of_event
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.model.letter import ReceivedLetter

URL = "https://sqs.eu-central-1.amazonaws.com/000000000000/lean-ops-dev-dlq"
SENT = datetime(2026, 2, 3, 10, 15, 30, 123000, tzinfo=UTC)
SYSTEM = {"SentTimestamp": str(int(SENT.timestamp() * 1000)), "ApproximateReceiveCount": "2", "SenderId": "x"}


@pytest.fixture
def sqs() -> Any:
    return boto3.Session("key", "secret", region_name="eu-central-1").client("sqs")


def test_messages_come_with_what_is_said_of_them(sqs: Any) -> None:
    message = {
        "MessageId": "d-1",
        "ReceiptHandle": "h-1",
        "Body": "junk",
        "Attributes": {**SYSTEM, "DeadLetterQueueSourceArn": "arn:orders"},
        "MessageAttributes": {
            "error_type": {"DataType": "String", "StringValue": "UNKNOWN"},
            "binary": {"DataType": "Binary", "BinaryValue": b"x"},
        },
    }
    with Stubber(sqs) as stub:
        stub.add_response("get_queue_url", {"QueueUrl": URL}, {"QueueName": "lean-ops-dev-dlq"})
        for answer in ({"Messages": [message]}, {}):
            stub.add_response(
                "receive_message",
                answer,
                {
                    "QueueUrl": URL,
                    "MaxNumberOfMessages": 10,
                    "WaitTimeSeconds": 3,
                    "MessageAttributeNames": ["All"],
                    "MessageSystemAttributeNames": ["All"],
                },
            )
        queue = DeadLetterQueue(sqs, "lean-ops-dev-dlq")
        ((letter, handle),) = queue.receive(3)
        assert queue.receive(3) == []
    assert handle == "h-1"
    assert letter == ReceivedLetter("d-1", "junk", SENT, 2, {"error_type": "UNKNOWN"}, "arn:orders")


def test_a_record_of_an_event_is_the_same_letter() -> None:
    record = {
        "messageId": "d-1",
        "body": "junk",
        "attributes": SYSTEM,
        "messageAttributes": {
            "error_type": {"stringValue": "UNKNOWN", "dataType": "String"},
            "b": {"binaryValue": "eA=="},
        },
    }
    assert letter_of_event(record) == ReceivedLetter("d-1", "junk", SENT, 2, {"error_type": "UNKNOWN"})
    assert letter_of_event({**record, "messageAttributes": {}}).attributes == {}


def test_deliveries_are_deleted_ten_at_a_time_and_those_that_were_not_are_told(sqs: Any) -> None:
    handles = [f"h-{number}" for number in range(12)]
    with Stubber(sqs) as stub:
        stub.add_response("get_queue_url", {"QueueUrl": URL})
        failed = {"Id": "7", "SenderFault": False, "Code": "InternalError", "Message": "oh"}
        for group, answer in ((range(10), [failed]), (range(10, 12), [])):
            entries = [{"Id": str(place), "ReceiptHandle": f"h-{number}"} for place, number in enumerate(group)]
            stub.add_response(
                "delete_message_batch", {"Successful": [], "Failed": answer}, {"QueueUrl": URL, "Entries": entries}
            )
        assert DeadLetterQueue(sqs, "q").delete(handles) == {"h-7": "InternalError: oh"}
        stub.assert_no_pending_responses()


def test_nothing_is_asked_to_delete_nothing(sqs: Any) -> None:
    with Stubber(sqs):
        assert DeadLetterQueue(sqs, "q").delete([]) == {}


@pytest.mark.parametrize(
    ("code", "error"),
    [("AWS.SimpleQueueService.NonExistentQueue", TerminalError), ("ThrottlingException", TransientError)],
)
def test_a_queue_that_does_not_answer_is_named(sqs: Any, code: str, error: type[Exception]) -> None:
    with Stubber(sqs) as stub:
        stub.add_client_error("get_queue_url", code, expected_params={"QueueName": ANY})
        with pytest.raises(error, match="queue lean-ops-dev-dlq"):
            DeadLetterQueue(sqs, "lean-ops-dev-dlq").receive()
