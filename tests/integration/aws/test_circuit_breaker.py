"""The circuit breaker on real servers: DynamoDB for traffic, Lambda's mappings, the Glue catalog and SNS for alerts."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.integration.aws.catalogs import strict_glue
from tests.integration.aws.letters_scene import Context, Deployed, deploy
from tests.servers.server import Server

from lean_ops.entrypoints.lambdas import circuit_breaker
from lean_ops.model.errors import TransientError
from lean_ops.wiring import utc_now

__all__ = ["strict_glue"]


@dataclass
class Scene:
    """A deployment whose topics are read by a function, and a clock that moves by minutes."""

    deployed: Deployed
    client: Any
    now: datetime

    @property
    def function(self) -> str:
        return f"{self.deployed.name}-sqs-processor"

    def read_queue(self, topic: str, **options: Any) -> None:
        """Let the function read a topic's queue, which for that must be known to the server that has the function."""
        sqs = self.deployed.aws.client("sqs")
        url = sqs.create_queue(QueueName=f"{self.deployed.name}-{topic}")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self.client.create_event_source_mapping(EventSourceArn=arn, FunctionName=self.function, **options)

    def mapping(self, topic: str) -> dict[str, Any]:
        mappings = self.client.list_event_source_mappings(FunctionName=self.function)["EventSourceMappings"]
        (found,) = [each for each in mappings if each["EventSourceArn"].endswith(f"-{topic}")]
        return dict(found)

    def traffic(self, topic: str, received: int, failed: int) -> None:
        minute = int(self.now.timestamp()) // 60
        self.deployed.services._letters.circuits.record(topic, minute, received, failed)

    def look(self, minutes: float = 1) -> dict[str, str]:
        self.now += timedelta(minutes=minutes)
        return circuit_breaker.handler({}, Context())


@pytest.fixture
def scene(
    strict_glue: Server, elasticmq: Server, dynamodb: Server, seaweed: Server, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    deployed = deploy(strict_glue, (elasticmq, dynamodb, seaweed), monkeypatch)
    scene = Scene(deployed, strict_glue.client("lambda"), utc_now())
    deployed.services.clock = lambda: scene.now
    _make_function(strict_glue, scene.function)
    return scene


def _make_function(aws: Server, name: str) -> None:
    policy = {"Version": "2012-10-17", "Statement": []}
    role = aws.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(policy))["Role"]["Arn"]
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as file:
        file.writestr("main.py", "def handler(event, context): ...")
    aws.client("lambda").create_function(
        FunctionName=name, Runtime="python3.13", Role=role, Handler="main.handler", Code={"ZipFile": package.getvalue()}
    )


def test_an_outage_turns_a_queue_off_on_trial_and_on_again(scene: Scene) -> None:
    scene.read_queue("events", ScalingConfig={"MaximumConcurrency": 20})
    scene.read_queue("orders")
    orders = scene.mapping("orders")
    scene.traffic("events", 30, 20)
    scene.traffic("orders", 30, 2)
    assert scene.look() == {"events": "OPEN"}
    assert scene.mapping("events")["State"] == "Disabled"
    assert scene.look() == {}
    assert scene.look(5) == {"events": "HALF_OPEN"}
    assert scene.mapping("events")["State"] == "Enabled"
    assert scene.mapping("events")["ScalingConfig"] == {"MaximumConcurrency": 2}
    scene.traffic("events", 12, 1)
    assert scene.look() == {"events": "CLOSED"}
    assert scene.look() == {}
    assert (scene.mapping("events")["State"], scene.mapping("events")["ScalingConfig"]) == (
        "Enabled",
        {"MaximumConcurrency": 20},
    )
    assert scene.mapping("orders") == orders


def test_the_beginning_and_the_end_of_an_outage_are_told_once_each(scene: Scene) -> None:
    scene.read_queue("events")
    scene.traffic("events", 30, 20)
    for minutes in (1, 1, 5, 1):
        scene.look(minutes)
    scene.traffic("events", 12, 1)
    for _ in range(3):
        scene.look()
    alerts = sorted((alert["kind"], alert["topic_name"], alert["severity"]) for alert in scene.deployed.table("alerts"))
    assert alerts == [("CIRCUIT_CLOSED", "events", "info"), ("CIRCUIT_OPEN", "events", "critical")]
    assert sorted(told["kind"] for told in scene.deployed.told()) == ["CIRCUIT_CLOSED", "CIRCUIT_OPEN"]


def test_what_else_the_function_reads_is_none_of_the_breakers(scene: Scene) -> None:
    scene.read_queue("dlq")
    scene.read_queue("events")
    scene.traffic("dlq", 100, 100)
    assert scene.look() == {}
    assert scene.mapping("dlq")["State"] == "Enabled"


def test_a_topic_that_can_not_be_looked_after_fails_the_call_and_leaves_the_others(
    scene: Scene, dynamodb: Server
) -> None:
    for topic in ("events", "orders"):
        scene.read_queue(topic)
        scene.traffic(topic, 30, 30)
    dynamodb.client("dynamodb").put_item(
        TableName=f"{scene.deployed.name}-circuit_breaker",
        Item={"topic_name": {"S": "events"}, "item": {"S": "state"}, "phase": {"S": "AJAR"}},
    )
    with pytest.raises(TransientError, match="events"):
        scene.look()
    assert scene.mapping("orders")["State"] == "Disabled"
    assert scene.mapping("events")["State"] == "Enabled"
