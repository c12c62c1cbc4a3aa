"""Dead letters through the function on real servers: SQS, S3, DynamoDB, the Glue catalog and SNS."""

from __future__ import annotations

import json
from datetime import timedelta

import boto3
import pytest
from tests.integration.aws.catalogs import strict_glue
from tests.integration.aws.letters_scene import Context, Deployed, deploy
from tests.servers.server import Server

from lean_ops.aws.letters import Letter
from lean_ops.entrypoints.lambdas import dlq_processor
from lean_ops.model.envelope import DeadLetter, Refusal
from lean_ops.wiring import utc_now

__all__ = ["strict_glue"]

REASON = DeadLetter(Refusal.MALFORMED_JSON, "not a JSON object: é\u0000", "m-1")


@pytest.fixture
def deployed(
    strict_glue: Server, elasticmq: Server, dynamodb: Server, seaweed: Server, monkeypatch: pytest.MonkeyPatch
) -> Deployed:
    return deploy(strict_glue, (elasticmq, dynamodb, seaweed), monkeypatch)


def letter(number: int, body: str = "junk", reason: DeadLetter = REASON) -> Letter:
    return Letter(f"s-{number}", "events", reason, body, 1)


def archived(deployed: Deployed, path: str) -> dict[str, object]:
    found: dict[str, object] = json.load(boto3.client("s3").get_object(Bucket=deployed.project, Key=path)["Body"])
    return found


def test_what_the_processor_refuses_ends_in_the_archive_the_tracker_and_the_table(deployed: Deployed) -> None:
    deployed.send(letter(1), letter(2, "more junk"))
    event = deployed.event()
    assert dlq_processor.handler(event, Context()) == {"batchItemFailures": []}
    rows = {row["body"]: row for row in deployed.rows}
    assert set(rows) == {"junk", "more junk"}
    row = rows["junk"]
    assert (row["topic_name"], row["error_type"], row["message_id"]) == ("events", "MALFORMED_JSON", "m-1")
    assert (row["source"], row["receive_count"], row["replay_status"]) == ("sqs", 1, "NEW")
    assert row["archive_path"].startswith("dlq-archive/events/")
    assert row["archive_path"].endswith("/s-1.json")
    assert archived(deployed, row["archive_path"])["body"] == "junk"
    tracked = deployed.services._letters.tracker.newest("events", utc_now())
    assert {error.error_id: error.archive_path for error in tracked}["s-1"] == row["archive_path"]


def test_an_event_that_comes_again_changes_nothing(deployed: Deployed) -> None:
    deployed.send(letter(1), letter(2))
    event = deployed.event()
    for _ in range(2):
        assert dlq_processor.handler(event, Context()) == {"batchItemFailures": []}
    assert len(deployed.rows) == 2


def test_a_message_that_its_queue_gave_up_on_is_its_topics(deployed: Deployed) -> None:
    policy = json.dumps({"deadLetterTargetArn": deployed.arn("dlq"), "maxReceiveCount": "1"})
    events = deployed.queue("events", RedrivePolicy=policy, VisibilityTimeout="0")
    body = json.dumps({"message_id": "m-9", "publish_time": "2026-02-03T10:15:30Z", "payload": {"a": 1}})
    said = {"topic_name": {"DataType": "String", "StringValue": "events"}}
    boto3.client("sqs").send_message(QueueUrl=events, MessageBody=body, MessageAttributes=said)
    deployed.received("events")
    assert dlq_processor.handler(deployed.event(), Context()) == {"batchItemFailures": []}
    (row,) = deployed.rows
    assert (row["topic_name"], row["error_type"], row["message_id"]) == ("events", "UNKNOWN", "m-9")
    assert row["body"] == body


def test_a_body_that_is_too_large_to_travel_arrives_whole(deployed: Deployed) -> None:
    body = '{"message_id": "m-1", "payload": "' + "é" * 600_000 + '"}'
    deployed.send(letter(1, body, DeadLetter(Refusal.OVERSIZED, "too large", "m-1")))
    assert dlq_processor.handler(deployed.event(), Context()) == {"batchItemFailures": []}
    (row,) = deployed.rows
    assert archived(deployed, row["archive_path"])["body"] == body
    assert body.startswith(row["body"])


def test_the_queue_is_drained_on_request(deployed: Deployed) -> None:
    deployed.send(*(letter(number) for number in range(35)))
    answer = dlq_processor.handler({"drain": True}, Context())
    assert (answer["taken"], answer["failed"]) == (35, 0)
    assert len(deployed.rows) == 35
    assert dlq_processor.handler({"drain": True}, Context()) == {"taken": 0, "failed": 0, "oldest": None}


def test_a_letter_that_waited_long_is_told_once(deployed: Deployed) -> None:
    deployed.send(letter(1))
    event = deployed.event()
    deployed.services.clock = lambda: utc_now() + timedelta(minutes=20)
    for _ in range(2):
        dlq_processor.handler(event, Context())
    (alert,) = deployed.table("alerts")
    assert (alert["kind"], alert["topic_name"], alert["threshold"]) == ("DLQ_AGE", "dlq", 15.0)
    (told,) = deployed.told()
    assert told["alert_id"] == alert["alert_id"]
    assert told["subject"].startswith("[warning] DLQ_AGE dlq: a dead letter waited 20 minutes")


def test_letters_that_can_not_be_archived_stay_in_the_queue(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.send(letter(1), letter(2))
    event = deployed.event()
    monkeypatch.setattr(deployed.services._letters.archive.client, "put_object", _refuse)
    answer = dlq_processor.handler(event, Context())
    assert {failure["itemIdentifier"] for failure in answer["batchItemFailures"]} == {
        record["messageId"] for record in event["Records"]
    }
    assert deployed.rows == []


def _refuse(**_: object) -> None:
    from botocore.exceptions import ClientError

    raise ClientError({"Error": {"Code": "SlowDown", "Message": "please"}}, "PutObject")


def test_dead_letters_are_replayed_from_the_bucket(deployed: Deployed) -> None:
    body = json.dumps({"message_id": "m-9", "publish_time": "2026-02-03T10:15:30Z", "payload": {"a": 1}})
    deployed.send(letter(1), letter(2, body))
    dlq_processor.handler(deployed.event(), Context())
    replayed = deployed.services.dlq_replay().replay("events")
    assert (replayed.landed, len(replayed.refused), replayed.unreadable) == (1, 1, [])
    names = deployed.services.lake.names
    (row,) = deployed.services.lake.load(names.raw("events")).scan().to_arrow().to_pylist()
    assert (row["message_id"], row["json_payload"]) == ("m-9", '{"a": 1}')
    assert sorted(row["replay_status"] for row in deployed.rows) == ["FAILED", "FIXED"]
    again = deployed.services.dlq_replay().replay("events")
    assert (again.landed, again.already, len(again.refused)) == (0, 0, 1)
    statuses = {
        error.error_id: error.status for error in deployed.services._letters.tracker.newest("events", utc_now())
    }
    assert statuses == {"s-1": "FAILED", "s-2": "FIXED"}
