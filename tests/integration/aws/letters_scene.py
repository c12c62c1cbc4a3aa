"""A deployment of one test's own for dead letters and the breaker: queues, tables, buckets, a lake and who is told."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
import pytest
from tests.servers.server import ACCOUNT, REGION, Server

from lean_ops.aws.clients import s3_client, sqs_client
from lean_ops.aws.letters import BucketBodies, Letter, LetterBox
from lean_ops.aws.sending import Patience
from lean_ops.entrypoints.lambdas import circuit_breaker, dlq_processor
from lean_ops.settings import load_settings
from lean_ops.state.dynamodb_tables import DynamoTables, create_tables
from lean_ops.wiring import Services


class Context:
    """A minute, always."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


@dataclass(frozen=True)
class Deployed:
    """The deployment, and the servers that stand for AWS."""

    project: str
    services: Services
    aws: Server
    told_queue: str

    @property
    def name(self) -> str:
        return f"{self.project}-dev"

    def arn(self, topic: str) -> str:
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self.name}-{topic}"

    def queue(self, topic: str, **attributes: str) -> str:
        url: str = boto3.client("sqs").create_queue(QueueName=f"{self.name}-{topic}", Attributes=attributes)["QueueUrl"]
        return url

    def send(self, *letters: Letter) -> None:
        """As the SQS processor sends them."""
        box = LetterBox(sqs_client(), f"{self.name}-dlq", BucketBodies(s3_client(), self.project))
        assert box.send(letters, Patience(lambda: 30.0, 0.0, lambda _: None, random.random)) == {}

    def event(self) -> dict[str, Any]:
        """What Lambda's poller would call the function with; the messages stay invisible."""
        return {"Records": [_record(message) for message in self.received("dlq")]}

    def received(self, topic: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while messages := self._receive(topic):
            found += messages
        return found

    def _receive(self, topic: str) -> list[dict[str, Any]]:
        answer = boto3.client("sqs").receive_message(
            QueueUrl=self.queue(topic),
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        return list(answer.get("Messages", ()))

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.table("dlq_errors")

    def table(self, name: str) -> list[dict[str, Any]]:
        names = self.services.lake.names
        place = names.dlq_errors if name == "dlq_errors" else names.ops(name)
        rows: list[dict[str, Any]] = self.services.lake.load(place).scan().to_arrow().to_pylist()
        return rows

    def told(self) -> list[dict[str, Any]]:
        """What subscribers were told."""
        answer = self.aws.client("sqs").receive_message(QueueUrl=self.told_queue, MaxNumberOfMessages=10)
        notices = [json.loads(message["Body"]) for message in answer.get("Messages", ())]
        return [{"subject": notice["Subject"], **json.loads(notice["Message"])} for notice in notices]


def _record(message: dict[str, Any]) -> dict[str, Any]:
    said = {
        name: {"stringValue": value["StringValue"], "dataType": "String"}
        for name, value in message.get("MessageAttributes", {}).items()
    }
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": said,
    }


def deploy(aws: Server, others: tuple[Server, ...], monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """Make a deployment; `aws` stands for whatever the others do not."""
    for server in (aws, *others):
        server.use(monkeypatch)
    # It keeps the credentials that it was first used with, by whichever test.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    project = f"t{uuid.uuid4().hex[:12]}"
    topic = aws.client("sns").create_topic(Name=project)["TopicArn"]
    variables = {
        "PROJECT": project,
        "ENVIRONMENT": "dev",
        "WAREHOUSE": f"s3://{project}/warehouse",
        "ARCHIVE_BUCKET": project,
        "DATABASE_PREFIX": f"{project}_",
        "ALERT_TOPIC_ARN": topic,
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"LEAN_OPS_{name}", value)
    boto3.client("s3").create_bucket(Bucket=project)
    create_tables(boto3.client("dynamodb"), DynamoTables.of(project, "dev"))
    services = Services(load_settings({"profile": "aws"}, aws_needs=dlq_processor.NEEDS))
    for database in services.lake.names.databases:
        boto3.client("glue").create_database(DatabaseInput={"Name": database})
    services.lake.ensure_shared()
    for module in (dlq_processor, circuit_breaker):
        monkeypatch.setattr(module, "_services", cache(lambda: services))
    deployed = Deployed(project, services, aws, _subscribed(aws, topic, project))
    deployed.queue("dlq")
    return deployed


def _subscribed(aws: Server, topic: str, name: str) -> str:
    sqs = aws.client("sqs")
    url: str = sqs.create_queue(QueueName=f"told-{name}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    aws.client("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return url
