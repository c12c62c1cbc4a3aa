"""Topic discovery against a Pub/Sub that is a real server: the command and the daily function."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.pubsub_v1 import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from tests.servers.server import Server

from lean_ops.bridge.discovery import FoundTopic
from lean_ops.bridge.pubsub_topics import _RETRY, PubSubTopics
from lean_ops.entrypoints.cli import main
from lean_ops.entrypoints.lambdas import discovery
from lean_ops.model.errors import TerminalError, TransientError, WrongUseError

Publish = Callable[..., None]


@pytest.fixture
def project() -> str:
    return f"project-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def make_topics(pubsub: Server, project: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Publish]:
    for name, value in pubsub.endpoints.items():
        monkeypatch.setenv(name, value)
    with grpc.insecure_channel(pubsub.address) as channel:
        client = PublisherClient(transport=PublisherGrpcTransport(channel=channel))

        def make(*names: str, **labels: str) -> None:
            for name in names:
                client.create_topic(request={"name": f"projects/{project}/topics/{name}", "labels": labels})

        yield make


def test_topics_are_listed_over_pages(
    pubsub: Server, project: str, make_topics: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lean_ops.bridge.pubsub_topics._PAGE", 7)
    make_topics(*(f"topic-{number:02d}" for number in range(20)))
    make_topics("labelled", lake="yes")
    found = PubSubTopics(pubsub.address).list(project)
    assert len(found) == 21
    assert FoundTopic(f"projects/{project}/topics/labelled", {"lake": "yes"}) in found
    monkeypatch.setattr("lean_ops.bridge.pubsub_topics._MOST_TOPICS", 20)
    with pytest.raises(TerminalError, match="at most 20"):
        PubSubTopics(pubsub.address).list(project)


def test_a_pub_sub_that_is_not_there_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lean_ops.bridge.pubsub_topics._CALL_SECONDS", 0.5)
    monkeypatch.setattr("lean_ops.bridge.pubsub_topics._RETRY", _RETRY.with_timeout(1.0))
    with pytest.raises(TransientError, match="Pub/Sub can't be reached"):
        PubSubTopics("127.0.0.1:1").list("project-x")


def test_the_command_shows_what_is_new_and_asks_for_the_apply_once(
    project: str,
    make_topics: Publish,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make_topics("events", "Meter-Readings", "other-thing")

    def discover(*more: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["discover", "--gcp-project", project, "--home", str(tmp_path / "home"), *more])
        return (int(left.value.code or 0), *capsys.readouterr())

    code, out, _ = discover("--prefix", "M")
    assert (code, "new: meter_readings" in out, "events" in out) == (0, True, False)
    code, out, _ = discover("--json")
    document = json.loads(out)
    assert (code, document["new"], document["added"]) == (0, ["events", "other_thing"], ["events", "other_thing"])
    assert json.loads((tmp_path / "topics.auto.tfvars.json").read_text()) == {
        "topics": ["events", "meter_readings", "other_thing"]
    }
    code, out, _ = discover()
    assert (code, "3 topics, 0 new" in out, "has them all" in out) == (0, True, True)
    make_topics("meter.readings")
    code, out, _ = discover()
    assert code == 1
    assert f"refused: projects/{project}/topics/meter.readings" in out
    sql = "SELECT topic_name, max_by(status, last_seen_at) AS status, max(queue) AS queue FROM ops.topic_registry"
    with pytest.raises(SystemExit):
        main(["query", f"{sql} GROUP BY 1 ORDER BY 1", "--json", "--home", str(tmp_path / "home")])
    rows = json.loads(capsys.readouterr().out)
    assert [row["topic_name"] for row in rows] == ["events", "meter_readings", "other_thing"]
    assert rows[1] == {"topic_name": "meter_readings", "queue": "lean-ops-dev-meter_readings", "status": "ACTIVE"}


@pytest.mark.parametrize(
    ("option", "value", "words"), [("--label", "x", "KEY=VALUE"), ("--environment", "a/b", "LEAN_OPS_ENVIRONMENT")]
)
def test_what_can_not_be_is_wrong_use(
    option: str, value: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["discover", "--gcp-project", "p", option, value, "--home", str(tmp_path / "home")])
    assert left.value.code == 2
    assert words in capsys.readouterr().err


# the daily function


@pytest.fixture
def account(moto: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A deployment of its own: buckets, databases and a topic for alerts."""
    name = f"d{uuid.uuid4().hex[:8]}"
    for variable, value in {**moto.environ(), "AWS_ENDPOINT_URL": moto.url}.items():
        monkeypatch.setenv(variable, value)
    s3, glue, sns = (moto.client(service) for service in ("s3", "glue", "sns"))
    for bucket in (f"{name}-lake", f"{name}-schemas"):
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    prefix = f"{name}_"
    for database in ("iceberg_raw_db", "iceberg_standardized_db", "iceberg_curated_db", "ops_db"):
        glue.create_database(DatabaseInput={"Name": f"{prefix}{database}"})
    settings = {
        "LEAN_OPS_PROJECT": "lean-ops",
        "LEAN_OPS_ENVIRONMENT": name,
        "LEAN_OPS_WAREHOUSE": f"s3://{name}-lake/warehouse",
        "LEAN_OPS_SCHEMA_BUCKET": f"{name}-schemas",
        "LEAN_OPS_DATABASE_PREFIX": prefix,
        "LEAN_OPS_ALERT_TOPIC_ARN": sns.create_topic(Name=f"{name}-alerts")["TopicArn"],
    }
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    discovery._services.cache_clear()
    yield settings
    discovery._services.cache_clear()


def test_the_daily_function_keeps_registry_and_variables_and_tells_what_is_new(
    project: str, make_topics: Publish, account: dict[str, str], moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topics("events", "Meter-A")
    monkeypatch.setenv("LEAN_OPS_BRIDGE_GCP_PROJECT", project)
    first = discovery.handler({}, None)
    assert (first["active"], first["new"], first["added"]) == (2, ("events", "meter_a"), ("events", "meter_a"))
    s3 = moto.client("s3")

    def variables() -> Any:
        place = {"Bucket": account["LEAN_OPS_SCHEMA_BUCKET"], "Key": first["variables"]}
        return json.loads(s3.get_object(**place)["Body"].read())

    assert variables() == {"topics": ["events", "meter_a"]}
    again = discovery.handler({"gcp_project": project}, None)
    assert (again["new"], again["added"], again["gone"]) == ((), (), ())
    make_topics("orders")
    assert discovery.handler({}, None)["added"] == ("orders",)
    assert variables() == {"topics": ["events", "meter_a", "orders"]}
    services = discovery._services()
    alerts = services.lake.load(services.lake.names.ops("alerts")).scan().to_arrow().to_pylist()
    assert sorted(alert["value"] for alert in alerts) == [1.0, 2.0]
    assert all("Apply Terraform with s3://" in alert["message"] for alert in alerts)
    registry = services.lake.load(services.lake.names.ops("topic_registry")).scan().to_arrow().to_pylist()
    assert {row["queue"] for row in registry} == {
        f"lean-ops-{account['LEAN_OPS_ENVIRONMENT']}-{topic}" for topic in ("events", "meter_a", "orders")
    }


@pytest.mark.parametrize("event", [{}, [], {"gcp_project": 3}, {"gcp_project": "p", "label": "x"}])
def test_an_event_that_says_nothing_useful_is_wrong_use(event: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAN_OPS_BRIDGE_GCP_PROJECT", raising=False)
    with pytest.raises(WrongUseError):
        discovery.handler(event, None)
