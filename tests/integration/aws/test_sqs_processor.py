"""The SQS processor on real queues and tables, through real clients, with a stream that refuses."""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import boto3
import pytest
from tests.integration.aws.firehose_stand_in import FirehoseStandIn
from tests.servers.server import Server

from lean_ops.aws.clients import Limits, firehose_client
from lean_ops.aws.firehose import DeliveryStream
from lean_ops.aws.sending import Patience
from lean_ops.entrypoints.lambdas import sqs_processor
from lean_ops.state.dynamodb_tables import DynamoTables, create_tables

TIME = "2026-02-03T10:15:30.120Z"


class Context:
    """A minute, always."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@dataclass(frozen=True)
class Place:
    """A deployment of one test's own: a topic's queue, the dead letter queue, tables and a bucket."""

    project: str
    stream: FirehoseStandIn
    queue: str
    letters: str

    def send(self, bodies: list[str]) -> None:
        sqs = boto3.client("sqs")
        topic = {"topic_name": {"DataType": "String", "StringValue": "events"}}
        for body in bodies:
            sqs.send_message(QueueUrl=self.queue, MessageBody=body, MessageAttributes=topic)

    def receive(self, calls: int = 1) -> dict[str, Any]:
        """What Lambda's poller would call the function with."""
        found = [message for _ in range(calls) for message in received(self.queue)]
        return {"Records": [self._record(message) for message in found]}

    def _record(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "eventSourceARN": f"arn:aws:sqs:eu-central-1:000000000000:{self.queue.rpartition('/')[2]}",
        }

    def call(self, event: dict[str, Any]) -> set[str]:
        """Call the function and delete what it does not return, as Lambda's poller does; the ids returned."""
        answer = sqs_processor.handler(event, Context())
        returned = [str(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]
        assert set(returned) <= {record["messageId"] for record in event["Records"]}
        assert len(set(returned)) == len(returned)
        sqs = boto3.client("sqs")
        for record in event["Records"]:
            if record["messageId"] in returned:
                sqs.change_message_visibility(
                    QueueUrl=self.queue, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0
                )
            else:
                sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=record["receiptHandle"])
        return set(returned)

    def dead_letters(self) -> list[tuple[str, dict[str, str]]]:
        """The bodies in the dead letter queue, with what is said of them."""
        found = []
        while messages := received(self.letters):
            for message in messages:
                said = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
                found.append((message["Body"], said))
        return found


def received(queue: str) -> list[dict[str, Any]]:
    answer = boto3.client("sqs").receive_message(
        QueueUrl=queue,
        MaxNumberOfMessages=10,
        VisibilityTimeout=600,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["All"],
    )
    return list(answer.get("Messages", ()))


@pytest.fixture
def stream() -> Iterator[FirehoseStandIn]:
    with FirehoseStandIn() as stand_in:
        yield stand_in


@pytest.fixture
def place(
    stream: FirehoseStandIn, elasticmq: Server, dynamodb: Server, seaweed: Server, monkeypatch: pytest.MonkeyPatch
) -> Place:
    for server in (elasticmq, dynamodb, seaweed, stream):
        server.use(monkeypatch)
    # It keeps the credentials that it was first used with, by whichever test.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    project = f"t{uuid.uuid4().hex[:12]}"
    told = {"PROJECT": project, "ENVIRONMENT": "dev", "DELIVERY_STREAM": "raw", "ARCHIVE_BUCKET": project}
    for name, value in told.items():
        monkeypatch.setenv(f"LEAN_OPS_{name}", value)
    made = sqs_processor._processor.__wrapped__
    monkeypatch.setattr(sqs_processor, "_processor", cache(lambda: replace(made(), sleep=lambda _: None)))
    boto3.client("s3").create_bucket(Bucket=project)
    create_tables(boto3.client("dynamodb"), DynamoTables.of(project, "dev"))
    sqs = boto3.client("sqs")
    queues = [sqs.create_queue(QueueName=f"{project}-dev-{name}")["QueueUrl"] for name in ("events", "dlq")]
    return Place(project, stream, *queues)


def good(message_id: str, payload: object = None) -> str:
    return json.dumps({"message_id": message_id, "publish_time": TIME, "payload": payload})


def test_with_a_malformed_and_a_refused_one_in_a_batch_the_refused_one_stays_in_the_queue(place: Place) -> None:
    place.stream.refuses = lambda record: json.loads(record)["message_id"] == "m-refused"
    place.send([good("m-1"), "malformed", good("m-refused"), good("m-2")])
    event = place.receive()
    assert len(event["Records"]) == 4
    (returned,) = place.call(event)
    assert sorted(row["message_id"] for row in place.stream.rows()) == ["m-1", "m-2"]
    ((body, said),) = place.dead_letters()
    assert (body, said["error_type"], said["topic_name"]) == ("malformed", "MALFORMED_JSON", "events")
    place.stream.refuses = lambda _: False
    (again,) = place.receive()["Records"]
    assert again["messageId"] == returned
    assert json.loads(again["body"])["message_id"] == "m-refused"
    assert place.call({"Records": [again]}) == set()
    assert "m-refused" in {row["message_id"] for row in place.stream.rows()}


def test_nothing_is_lost_while_the_stream_refuses_throttles_and_hangs_up_at_random(place: Place) -> None:
    chance = random.Random(20260206)  # noqa: S311  the same refusals each time
    place.stream.refuses = lambda _: chance.random() < 0.85
    place.stream.fails = lambda: chance.random() < 0.2
    place.stream.breaks = lambda: chance.random() < 0.1
    bodies = [good(f"m-{number}", {"n": number}) if number % 7 else f"malformed {number}" for number in range(200)]
    place.send(bodies)
    received_, returned = 0, 0
    for _ in range(200):
        event = place.receive(calls=3)
        if not event["Records"]:
            break
        received_ += len(event["Records"])
        returned += len(place.call(event))
    assert received_ - returned == len(bodies)
    assert returned > 0
    landed = Counter(row["message_id"] for row in place.stream.rows())
    assert set(landed) == {f"m-{number}" for number in range(200) if number % 7}
    assert sorted(body for body, _ in place.dead_letters()) == sorted(body for body in bodies if body[0] == "m")


def test_a_call_that_hangs_ends_by_its_timeout_and_goes_again(place: Place) -> None:
    place.stream.hangs = lambda: place.stream.calls == 1
    client = firehose_client(Limits(connect_seconds=5, read_seconds=4, attempts=1))
    patience = Patience.of_call(lambda: 60, 1.5, lambda _: None, lambda: 0.0)
    assert DeliveryStream(client, "raw").put([b"a", b"b"], patience) == {}
    assert place.stream.calls == 2
    assert Counter(place.stream.taken) == {b"a": 2, b"b": 2}


def test_the_same_delivery_twice_lands_once(place: Place) -> None:
    place.send([good("m-1"), "malformed"])
    event = place.receive()
    for _ in range(2):
        assert sqs_processor.handler(event, Context()) == {"batchItemFailures": []}
    assert [row["message_id"] for row in place.stream.rows()] == ["m-1"]
    assert len(place.dead_letters()) == 1


def test_a_body_that_is_too_large_for_the_stream_and_to_travel_is_kept_in_the_bucket(place: Place) -> None:
    body = good("m-large", "x" * (1024 * 1024 - 100 - len(good("m-large", ""))))
    place.send([body])
    event = place.receive()
    assert place.call(event) == set()
    ((beginning, said),) = place.dead_letters()
    assert (said["error_type"], said["message_id"]) == ("OVERSIZED", "m-large")
    assert beginning == body[: 64 * 1024]
    kept = boto3.client("s3").get_object(Bucket=place.project, Key=said["body_ref"])["Body"].read()
    assert kept.decode() == body


def test_a_large_body_that_fits_travels_whole_in_a_batch_with_others(place: Place) -> None:
    large = [good(f"m-{number}", "x" * 1_024_000) for number in range(3)]
    place.send([*large, "malformed"])
    while (event := place.receive())["Records"]:
        assert place.call(event) == set()
    assert sorted(body for body, _ in place.dead_letters()) == sorted([*large, "malformed"])


def test_ingestion_goes_on_while_the_tables_are_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
    place.send([good("m-1"), "malformed"])
    assert place.call(place.receive()) == set()
    assert [row["message_id"] for row in place.stream.rows()] == ["m-1"]
    assert len(place.dead_letters()) == 1


def test_without_a_dead_letter_queue_what_is_refused_stays_where_it_is(place: Place) -> None:
    boto3.client("sqs").delete_queue(QueueUrl=place.letters)
    place.send([good("m-1"), "malformed"])
    event = place.receive()
    returned = place.call(event)
    assert {record["body"] for record in event["Records"] if record["messageId"] in returned} == {"malformed"}
    assert [row["message_id"] for row in place.stream.rows()] == ["m-1"]


def test_the_breaker_s_table_has_the_topic_s_minute(place: Place) -> None:
    place.send([good("m-1"), "malformed"])
    place.call(place.receive())
    (item,) = boto3.client("dynamodb").scan(TableName=f"{place.project}-dev-circuit_breaker")["Items"]
    assert (item["topic_name"]["S"], item["received"]["N"], item["failed"]["N"]) == ("events", "2", "1")
