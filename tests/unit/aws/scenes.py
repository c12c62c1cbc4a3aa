"""Doubles of the services that refuse on command, and messages as Lambda hands them over."""

from __future__ import annotations

import json
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ReadTimeoutError

from lean_ops.aws.sending import Patience

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
ARN = "arn:aws:sqs:eu-west-1:123456789012:lean-ops-dev-{}"


def client_error(code: str, status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "op")


THROTTLED = client_error("ThrottlingException")
DENIED = client_error("AccessDeniedException", 403)
TIMED_OUT = ReadTimeoutError(endpoint_url="http://127.0.0.1")


class Watch:
    """Time that passes when somebody sleeps, or by a step each time it is looked at."""

    aws_request_id = "request-1"

    def __init__(self, seconds: float = 60.0, step: float = 0.0) -> None:
        self.left = seconds
        self.step = step
        self.slept: list[float] = []

    def seconds_left(self) -> float:
        left = self.left
        self.left -= self.step
        return left

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.left -= seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds_left() * 1000)

    def patience(self, chance: Callable[[], float] = lambda: 0.5) -> Patience:
        return Patience.of_call(self.seconds_left, 7.0, self.sleep, chance)


# A call's turn: an error, the positions in the call that are refused, or an error after everything was taken.
Turn = Exception | set[int] | tuple[Exception]


class FirehoseDouble:
    """A stream that goes through its turns call by call, then takes everything."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = deque(turns)
        self.calls: list[list[bytes]] = []
        self.taken: list[bytes] = []

    def put_record_batch(self, *, DeliveryStreamName: str, Records: list[dict[str, bytes]]) -> dict[str, Any]:  # noqa: N803
        assert DeliveryStreamName == "stream"
        data = [record["Data"] for record in Records]
        self.calls.append(data)
        turn = self.turns.popleft() if self.turns else set()
        if isinstance(turn, Exception):
            raise turn
        refused = set() if isinstance(turn, tuple) else turn
        self.taken += [record for position, record in enumerate(data) if position not in refused]
        if isinstance(turn, tuple):
            raise turn[0]
        answers = [
            {"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}
            if at in refused
            else {"RecordId": "r"}
            for at in range(len(data))
        ]
        return {"FailedPutCount": len(refused & set(range(len(data)))), "RequestResponses": answers}

    def message_ids(self) -> list[str]:
        return [json.loads(record)["message_id"] for record in self.taken]


class SqsDouble:
    """A dead letter queue that goes through its turns call by call, then takes everything."""

    def __init__(self, *turns: Turn, sender_fault: bool = False) -> None:
        self.turns = deque(turns)
        self.sender_fault = sender_fault
        self.calls: list[list[dict[str, Any]]] = []
        self.taken: list[dict[str, Any]] = []
        self.asked = 0

    def get_queue_url(self, *, QueueName: str) -> dict[str, str]:  # noqa: N803
        self.asked += 1
        return {"QueueUrl": f"http://127.0.0.1/{QueueName}"}

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "http://127.0.0.1/lean-ops-dev-dlq"
        assert len(Entries) <= 10
        assert len({entry["Id"] for entry in Entries}) == len(Entries)
        self.calls.append(Entries)
        turn = self.turns.popleft() if self.turns else set()
        if isinstance(turn, Exception):
            raise turn
        refused = set() if isinstance(turn, tuple) else turn
        taken = [entry for at, entry in enumerate(Entries) if at not in refused]
        self.taken += taken
        fault = {"Code": "InternalError", "Message": "no", "SenderFault": self.sender_fault}
        return {
            "Successful": [{"Id": entry["Id"]} for entry in taken],
            "Failed": [{"Id": entry["Id"], **fault} for entry in Entries if entry not in taken],
        }

    def attributes(self) -> list[dict[str, str]]:
        return [
            {name: value["StringValue"] for name, value in entry["MessageAttributes"].items()} for entry in self.taken
        ]

    def sqs_message_ids(self) -> list[str]:
        return [said["sqs_message_id"] for said in self.attributes()]


class Bodies:
    """Bodies in memory."""

    def __init__(self, error: Exception | None = None) -> None:
        self.kept: dict[str, bytes] = {}
        self.error = error

    def put(self, key: str, body: bytes) -> None:
        if self.error:
            raise self.error
        self.kept[key] = body


class MemoryDeliveries:
    """Remembers for ever, or fails."""

    def __init__(self, known: Collection[str] = (), error: Exception | None = None) -> None:
        self.known = set(known)
        self.error = error

    def seen(self, ids: Iterable[str], now: datetime) -> set[str]:
        self._fail(now)
        return self.known & set(ids)

    def remember(self, ids: Iterable[str], now: datetime) -> None:
        self._fail(now)
        self.known |= set(ids)

    def _fail(self, now: datetime) -> None:
        assert now == NOW
        if self.error:
            raise self.error


class Traffic:
    """What the breaker was told."""

    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[tuple[str, int, int, int]] = []
        self.error = error

    def record(self, topic: str, minute: int, received: int, failed: int) -> None:
        if self.error:
            raise self.error
        self.told.append((topic, minute, received, failed))


def good(message_id: str, payload: object = None) -> str:
    """A body that becomes a row."""
    return json.dumps({"message_id": message_id, "publish_time": "2026-02-03T10:15:30.120Z", "payload": payload})


def event(bodies: dict[str, str], queue: str = "events", count: int = 1) -> dict[str, Any]:
    """What Lambda calls the function with: bodies by their SQS message ids."""
    return {"Records": [record(sqs_message_id, body, queue, count) for sqs_message_id, body in bodies.items()]}


def record(sqs_message_id: str, body: str, queue: str = "events", count: int = 1) -> dict[str, Any]:
    return {
        "messageId": sqs_message_id,
        "receiptHandle": f"handle of {sqs_message_id}",
        "body": body,
        "attributes": {"ApproximateReceiveCount": str(count), "SentTimestamp": "1770113730120"},
        "messageAttributes": {"topic_name": {"stringValue": queue, "dataType": "String"}},
        "eventSource": "aws:sqs",
        "eventSourceARN": ARN.format(queue),
        "awsRegion": "eu-west-1",
    }
