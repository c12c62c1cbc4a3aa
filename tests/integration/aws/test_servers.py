"""The servers that other tests stand on: they answer, keep to loopback, and never outlive the tests."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from tests.integration.aws.lone_pytest import eventually, lone_pytest, lone_test, run_pytest
from tests.servers import seaweed as seaweed_module
from tests.servers.server import Server
from tests.servers.sockets import children, is_alive, listening_addresses

LONGEST_BODY = 1024 * 1024
S3_PORT = 6  # where it stands among SeaweedFS's ports
ONLY_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:12]}"


# ElasticMQ for SQS


@pytest.fixture
def queue(elasticmq: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    elasticmq.use(monkeypatch)
    return str(boto3.client("sqs").create_queue(QueueName=unique("queue"))["QueueUrl"])


def test_a_queue_hands_out_what_was_sent_with_its_attributes(queue: str) -> None:
    sqs = boto3.client("sqs")
    topic = {"topic_name": {"DataType": "String", "StringValue": "events"}}
    sqs.send_message(QueueUrl=queue, MessageBody='{"a": 1}', MessageAttributes=topic)
    got = sqs.receive_message(
        QueueUrl=queue, WaitTimeSeconds=5, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
    )["Messages"][0]
    assert got["Body"] == '{"a": 1}'
    assert got["MessageAttributes"]["topic_name"]["StringValue"] == "events"
    assert got["Attributes"]["ApproximateReceiveCount"] == "1"
    assert int(got["Attributes"]["SentTimestamp"]) > 0


def test_a_body_of_a_mebibyte_passes_and_a_byte_more_is_refused(queue: str) -> None:
    sqs = boto3.client("sqs")
    sqs.send_message(QueueUrl=queue, MessageBody="x" * LONGEST_BODY)
    assert len(sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"][0]["Body"]) == LONGEST_BODY
    with pytest.raises(ClientError):
        sqs.send_message(QueueUrl=queue, MessageBody="x" * (LONGEST_BODY + 1))


def test_a_message_received_too_often_is_moved_to_the_dead_letter_queue(queue: str) -> None:
    sqs = boto3.client("sqs")
    letters = sqs.create_queue(QueueName=unique("dlq"))["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=letters, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": policy})
    sqs.send_message(QueueUrl=queue, MessageBody="poison")
    for expected in (1, 1, 1, 0):  # the fourth time it is not handed out but moved
        got = sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0).get("Messages", [])
        assert len(got) == expected
    assert [letter["Body"] for letter in sqs.receive_message(QueueUrl=letters, WaitTimeSeconds=5)["Messages"]] == [
        "poison"
    ]


# DynamoDB Local


@pytest.fixture
def table(dynamodb: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    dynamodb.use(monkeypatch)
    client = boto3.client("dynamodb")
    name = unique("table")
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield name
    client.delete_table(TableName=name)


def test_of_many_conditional_writes_at_once_one_wins(table: str) -> None:
    client = boto3.client("dynamodb")

    def write(owner: int) -> bool:
        item = {"id": {"S": "lease"}, "owner": {"N": str(owner)}}
        try:
            client.put_item(TableName=table, Item=item, ConditionExpression="attribute_not_exists(id)")
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(8) as racers:
        winners = [owner for owner, won in enumerate(racers.map(write, range(32))) if won]
    assert len(winners) == 1
    kept = client.get_item(TableName=table, Key={"id": {"S": "lease"}}, ConsistentRead=True)["Item"]
    assert kept["owner"]["N"] == str(winners[0])


# SeaweedFS for S3


@pytest.fixture
def bucket(seaweed: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    seaweed.use(monkeypatch)
    name = unique("bucket")
    boto3.client("s3").create_bucket(Bucket=name)
    return name


def test_a_bucket_keeps_objects_and_lists_them_by_prefix(bucket: str) -> None:
    s3 = boto3.client("s3")
    s3.put_object(Bucket=bucket, Key="dlq-archive/events/a.json", Body=b"first\nsecond")
    s3.put_object(Bucket=bucket, Key="other/b.json", Body=b"")
    assert s3.get_object(Bucket=bucket, Key="dlq-archive/events/a.json")["Body"].read() == b"first\nsecond"
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="dlq-archive/")["Contents"]
    assert [entry["Key"] for entry in listed] == ["dlq-archive/events/a.json"]


def test_an_object_is_not_written_over_when_the_writer_asks_for_that(bucket: str) -> None:
    s3 = boto3.client("s3")
    s3.put_object(Bucket=bucket, Key="once", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.put_object(Bucket=bucket, Key="once", Body=b"second", IfNoneMatch="*")
    assert s3.get_object(Bucket=bucket, Key="once")["Body"].read() == b"first"


def test_a_bucket_that_nobody_made_is_missing(bucket: str) -> None:
    with pytest.raises(ClientError, match="NoSuchBucket"):
        boto3.client("s3").put_object(Bucket=f"{bucket}-not", Key="key", Body=b"")


def test_a_port_that_another_process_took_meanwhile_is_given_up_for_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_ports, asked = seaweed_module.free_ports, list[list[int]]()
    with socket.create_server(("127.0.0.1", 0)) as other:

        def ports(count: int) -> list[int]:
            asked.append(free_ports(count))
            if len(asked) == 1:
                asked[0][S3_PORT] = other.getsockname()[1]
            return asked[-1]

        monkeypatch.setattr(seaweed_module, "free_ports", ports)
        server = seaweed_module.start_seaweed(tmp_path, tmp_path)
        server.stop()
    assert len(asked) >= 2  # somebody may have taken one of the second's, too
    assert server.port == asked[-1][S3_PORT] != asked[0][S3_PORT]


# pstest for Pub/Sub


def test_a_subscription_hands_out_what_was_published_and_again_when_it_is_not_acknowledged(
    pubsub: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.cloud import pubsub_v1

    pubsub.use(monkeypatch)
    with pubsub_v1.SubscriberClient() as subscriber:
        publisher = pubsub_v1.PublisherClient()
        topic = publisher.topic_path("lean-ops-tests", unique("topic"))
        subscription = subscriber.subscription_path("lean-ops-tests", unique("subscription"))
        publisher.create_topic(request={"name": topic})
        subscriber.create_subscription(request={"name": subscription, "topic": topic})
        message_id = publisher.publish(topic, b'{"a": 1}', kind="test").result(timeout=30)
        publisher.stop()
        first = subscriber.pull(subscription=subscription, max_messages=1, timeout=30).received_messages[0]
        assert (first.message.message_id, first.message.data) == (message_id, b'{"a": 1}')
        assert first.message.attributes["kind"] == "test"
        subscriber.modify_ack_deadline(subscription=subscription, ack_ids=[first.ack_id], ack_deadline_seconds=0)
        again = subscriber.pull(subscription=subscription, max_messages=1, timeout=30).received_messages[0]
        assert again.message.message_id == message_id
        subscriber.acknowledge(subscription=subscription, ack_ids=[again.ack_id])


# moto for the rest


def test_moto_answers_for_services_without_a_server_and_leaves_the_others_to_theirs(
    moto: Server, elasticmq: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    elasticmq.use(monkeypatch)
    moto.use(monkeypatch)
    topic = boto3.client("sns").create_topic(Name=unique("alerts"))["TopicArn"]
    assert topic in [each["TopicArn"] for each in moto.client("sns").list_topics()["Topics"]]
    name = unique("queue")
    url = boto3.client("sqs").create_queue(QueueName=name)["QueueUrl"]
    assert url == elasticmq.client("sqs").get_queue_url(QueueName=name)["QueueUrl"]
    assert "QueueUrls" not in moto.client("sqs").list_queues(QueueNamePrefix=name)


# Where they listen, and how they end


@ONLY_LINUX
@pytest.mark.parametrize("name", ["elasticmq", "dynamodb", "seaweed", "pubsub", "moto"])
def test_a_server_listens_on_loopback_alone(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(name)
    listening = listening_addresses(server.process.guard.pid)
    assert (server.host, server.port) in listening
    assert {host for host, _ in listening} == {"127.0.0.1"}


@ONLY_LINUX
@pytest.mark.parametrize("name", ["pubsub", "elasticmq"])
def test_a_server_ends_when_its_pytest_is_killed(name: str, tmp_path: Path) -> None:
    with lone_pytest(name, tmp_path) as (pytest_process, guard):
        processes = [guard, *children(guard)]
        assert len(processes) == 2
        pytest_process.send_signal(signal.SIGKILL)
        pytest_process.wait(timeout=30)
        assert eventually(lambda: not any(map(is_alive, processes)))


def test_folders_of_tests_that_ask_for_the_same_server_share_it(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "conftest.py").write_text("from tests.servers.fixtures import pubsub\n", encoding="utf-8")
        test = f"def test_port(pubsub):\n    open({str(tmp_path / 'ports')!r}, 'a').write(f'{{pubsub.port}} ')\n"
        (folder / f"test_{folder.name}.py").write_text(test, encoding="utf-8")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
    first, second = (tmp_path / "ports").read_text(encoding="ascii").split()
    assert first == second


@ONLY_LINUX
def test_a_server_ends_when_its_guard_is_killed(tmp_path: Path) -> None:
    with lone_pytest("pubsub", tmp_path) as (_, guard):
        (server,) = children(guard)
        os.kill(guard, signal.SIGKILL)
        assert eventually(lambda: not is_alive(server))


# Where a server is missing


def test_without_its_jars_a_test_fails_and_says_what_to_do(tmp_path: Path) -> None:
    done = run_pytest(lone_test("elasticmq", tmp_path), LEAN_OPS_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "elasticmq is not on this machine" in done.stdout
    assert "make servers" in done.stdout


def test_without_its_jars_a_test_is_skipped_in_plain_sight_if_that_was_asked_for(tmp_path: Path) -> None:
    environ = {"LEAN_OPS_CACHE_DIR": str(tmp_path / "cache"), "LEAN_OPS_TESTS_WITHOUT_SERVERS": "1"}
    done = run_pytest(lone_test("elasticmq", tmp_path), **environ)
    assert done.returncode == 0
    assert "SKIPPED [1]" in done.stdout
    assert "LEAN_OPS_TESTS_WITHOUT_SERVERS=1 and" in done.stdout
    assert "make servers" in done.stdout
