"""The support functions on real servers: Glue, S3 and DynamoDB, from an upload to the books."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.aws.catalogs import Cloud, glue_cloud, strict_glue
from tests.servers.server import Server

from lean_ops.entrypoints import cli
from lean_ops.entrypoints.lambdas import (
    asked,
    check_schema,
    ensure_table,
    fetch_active_topics,
    get_all_checkpoints,
    health,
    schema_validator,
)
from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.shared import SharedTables
from lean_ops.model.batch import Counts, Zone
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.model.ledger import ledger_row
from lean_ops.model.registry import Status
from lean_ops.state.dynamodb_tables import DynamoTables, create_tables

__all__ = ["glue_cloud", "strict_glue"]

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)


class Call:
    """A call that may take ten minutes."""

    def get_remaining_time_in_millis(self) -> int:
        return 600_000


@dataclass(frozen=True, slots=True)
class Account:
    """An environment in an account, with its schema bucket."""

    cloud: Cloud
    s3: Any
    bucket: str

    def upload(self, key: str, content: bytes) -> dict[str, Any]:
        """Put an object; the event that S3 sends of it."""
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=content)
        s3 = {"bucket": {"name": self.bucket}, "object": {"key": key}}
        return {"Records": [{"eventName": "ObjectCreated:Put", "userIdentity": {"principalId": "ann"}, "s3": s3}]}

    def keys(self) -> list[str]:
        found = self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return sorted(entry["Key"].removeprefix("schemas/") for entry in found)

    def content(self, key: str) -> bytes:
        content: bytes = self.s3.get_object(Bucket=self.bucket, Key=f"schemas/{key}")["Body"].read()
        return content


@pytest.fixture
def account(glue_cloud: Cloud, dynamodb: Server, seaweed: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    dynamodb.use(monkeypatch)
    project, bucket, s3 = f"p{uuid.uuid4().hex[:8]}", f"schemas-{uuid.uuid4().hex[:12]}", seaweed.client("s3")
    create_tables(dynamodb.client("dynamodb"), DynamoTables.of(project, "test"))
    s3.create_bucket(Bucket=bucket)
    settings = glue_cloud.settings
    variables = {"PROJECT": project, "ENVIRONMENT": "test", "SCHEMA_BUCKET": bucket}
    variables |= {"WAREHOUSE": str(settings.warehouse), "DATABASE_PREFIX": settings.database_prefix}
    for name, value in variables.items():
        monkeypatch.setenv(f"LEAN_OPS_{name}", value)
    _forget_parts()
    yield Account(glue_cloud, s3, bucket)
    _forget_parts()


def _forget_parts() -> None:
    """What the functions keep from one call to the next belongs to another environment."""
    for kept in (asked.state, check_schema._catalog, ensure_table._lake, schema_validator._services, health._services):
        kept.cache_clear()


def schema(version: str = "1.0.0", **columns: dict[str, Any]) -> bytes:
    envelope = {"message_id": {"type": "STRING", "required": True}}
    document = {"schema_version": version, "table_name": "events", "envelope_columns": envelope}
    return json.dumps({**document, "payload_columns": {"user": {}, **columns}}).encode()


PENDING = "schemas/events/pending/schema.json"


def land(account: Account, rows: int) -> int:
    """Rows in RAW, as Firehose would commit them; the snapshot."""
    lake = account.cloud.lake()
    table = lake.ensure_raw("events")
    row = {"topic_name": "events", "publish_time": NOW, "ingestion_ts": 1, "json_payload": "{}"}
    found = [{**row, "message_id": str(number)} for number in range(rows)]
    return append_files(table, write_files(table, pa.Table.from_pylist(found, schema=table.schema().as_arrow())), {})


def test_from_an_upload_to_a_group_with_work(account: Account) -> None:
    account.cloud.make_databases()
    [judged] = schema_validator.handler(account.upload(PENDING, schema()), None)["results"]
    assert (judged["outcome"], judged["schema_version"], judged["change_class"]) == ("ACTIVE", "1.0.0", "NEW")
    assert account.keys() == ["events/active/schema.json"]
    assert fetch_active_topics.handler({}, None)["groups"] == [{"topics": ["events"]}]
    versions = account.cloud.names.ops("schema_versions")
    assert SharedTables(account.cloud.lake()).values(versions, "submitted_by", topic_name="events") == {"ann"}

    idle = check_schema.handler({"topics": ["events"]}, None)
    assert (idle["open"], idle["has_work"]) == (["events"], False)
    snapshot = land(account, 3)
    busy = check_schema.handler({"topics": ["events", "orders"]}, None)
    assert (busy["standardize"], busy["curate"], busy["shut"]) == (["events"], ["events"], ["orders"])
    assert busy["topics"][0]["standardized"]["records"] == 3
    assert get_all_checkpoints.handler({}, None) == {"checkpoints": [], "count": 0}
    assert snapshot == account.cloud.lake().load(account.cloud.names.raw("events")).metadata.current_snapshot_id


def test_an_event_that_comes_again_or_late_is_harmless(account: Account) -> None:
    account.cloud.make_databases()
    event = account.upload(PENDING, schema())
    assert schema_validator.handler(event, None)["results"][0]["outcome"] == "ACTIVE"
    item = asked.state().item("events")
    for _ in range(2):
        assert schema_validator.handler(event, None)["results"][0]["outcome"] == "NOTHING_PENDING"
    again = {"Records": [*account.upload(PENDING, schema())["Records"], *event["Records"]]}
    outcomes = [result["outcome"] for result in schema_validator.handler(again, None)["results"]]
    assert outcomes == ["ACTIVE_ALREADY", "NOTHING_PENDING"]
    assert asked.state().item("events") == item
    assert account.keys() == ["events/active/schema.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", schema("1.1.0", user={"type": "INT"}), schema("0.1.0")])
def test_a_bad_schema_is_an_answer_with_its_reasons_in_the_bucket(account: Account, content: bytes) -> None:
    account.cloud.make_databases()
    schema_validator.handler(account.upload(PENDING, schema()), None)
    [judged] = schema_validator.handler(account.upload(PENDING, content), None)["results"]
    assert judged["outcome"] == "REFUSED"
    assert judged["problems"]
    assert judged["error_file"] == f"s3://{account.bucket}/schemas/events/failed/error.json"
    assert account.content("events/failed/schema.json") == content
    assert json.loads(account.content("events/failed/error.json"))["errors"]
    assert account.content("events/active/schema.json") == schema()
    item = asked.state().item("events")
    assert item is not None
    assert (item.status, item.processing_enabled) == (Status.READY, True)
    assert item.error_path == judged["error_file"]


def test_a_first_schema_that_is_bad_leaves_the_gate_shut(account: Account) -> None:
    account.cloud.make_databases()
    schema_validator.handler(account.upload(PENDING, b"{"), None)
    item = asked.state().item("events")
    assert item is not None
    assert (item.status, item.processing_enabled) == (Status.ERROR, False)
    assert check_schema.handler({"topics": ["events"]}, None)["shut"] == ["events"]


def test_objects_that_are_no_pending_schema_are_ignored(account: Account) -> None:
    keys = ["schemas/events/pending/request.json", "schemas/events/active/schema.json", "other/x.json"]
    for key in keys:
        [judged] = schema_validator.handler(account.upload(key, schema()), None)["results"]
        assert judged == {"key": key, "outcome": "IGNORED"}
    foreign = account.upload(PENDING, schema())
    foreign["Records"][0]["s3"]["bucket"]["name"] = "another-bucket"
    assert schema_validator.handler(foreign, None)["results"][0]["outcome"] == "IGNORED"
    [judged] = schema_validator.handler(account.upload("schemas/Events/pending/schema.json", schema()), None)["results"]
    assert (judged["outcome"], judged["folder"]) == ("REFUSED", "Events")
    assert json.loads(account.content("Events/failed/error.json"))["errors"]


def test_tables_that_cant_be_made_leave_the_upload_where_it_is_for_the_next_event(account: Account) -> None:
    event = account.upload(PENDING, schema())
    with pytest.raises(TerminalError, match="Terraform"):
        schema_validator.handler(event, None)
    assert account.keys() == ["events/pending/schema.json"]
    account.cloud.make_databases()
    assert schema_validator.handler(event, None)["results"][0]["outcome"] == "ACTIVE"


def test_tables_of_topics_are_ensured_and_one_that_fails_stops_nobody(account: Account) -> None:
    with pytest.raises(TerminalError, match="Terraform"):
        ensure_table.handler({"topics": ["events"]}, None)
    account.cloud.make_databases()
    names = account.cloud.names
    raw = names.raw("broken")
    foreign: Any = {"Name": raw.table, "Parameters": {"table_type": "hive"}}
    account.cloud.server.client("glue").create_table(DatabaseName=raw.database, TableInput=foreign)
    for _ in range(2):
        answer = ensure_table.handler({"topics": ["events", "broken", "orders"]}, None)
        assert answer["ready"] == ["events", "orders"]
        [failed] = answer["failed"]
        assert (failed["topic"], failed["transient"]) == ("broken", False)
        assert "not an Iceberg table" in failed["error"]
    lake = account.cloud.lake()
    wanted = [names.of_zone(zone, topic) for zone in (Zone.RAW, Zone.STANDARDIZED) for topic in ("events", "orders")]
    assert all(lake.exists(name) for name in (*wanted, *names.shared))
    assert len(ensure_table.handler({}, None)["shared"]) == len(names.shared)
    with pytest.raises(WrongUseError, match="topics"):
        ensure_table.handler({"topics": ["Not A Topic"]}, None)


def test_health_tells_of_missing_parts_and_then_of_none(account: Account) -> None:
    parts = {part["name"]: part for part in health.handler({}, Call())["parts"]}
    assert (parts["state"]["ok"], parts["schemas"]["ok"], parts["catalog"]["ok"]) == (True, True, False)
    assert "Terraform" in parts["catalog"]["remedy"]
    account.cloud.make_databases()
    ensure_table.handler({}, None)
    answer = json.loads(json.dumps(health.handler({}, Call())))
    assert answer["ok"]
    assert answer["books"]["balanced"]


def test_health_finishes_schemas_that_were_left_half_done(account: Account) -> None:
    account.cloud.make_databases()
    ensure_table.handler({}, None)
    account.upload(PENDING, schema())
    account.upload("schemas/Nobody/pending/schema.json", schema())
    answer = health.handler({}, Call())
    assert answer["repaired"] == ["Nobody", "events"]
    assert answer["ok"]
    item = asked.state().item("events")
    assert item is not None
    assert item.processing_enabled
    assert "Nobody" not in asked.state().items()


def test_health_answers_with_the_variances_of_the_books(account: Account) -> None:
    account.cloud.make_databases()
    ensure_table.handler({"topics": ["events", "orders"]}, None)
    land(account, 3)
    row = ledger_row("events", Zone.STANDARDIZED, "b1", (None, 7), Counts(5, 4, 0, 1, 0, 0), NOW)
    SharedTables(account.cloud.lake()).append_rows(account.cloud.names.ops("reconciliation_log"), [row])
    books = health.handler({"topics": ["events", "orders"]}, Call())["books"]
    assert (books["balanced"], books["topics"], books["unchecked"]) == (False, 2, 0)
    [variance] = books["variances"]
    assert (variance["topic"], variance["zone"], variance["difference"]) == ("events", "standardized", 5)
    assert any("the table has 0 rows" in finding for finding in variance["findings"])
    assert health.handler({"topics": ["orders"]}, Call())["books"]["balanced"]


def alerts_of(account: Account) -> list[dict[str, Any]]:
    rows = account.cloud.lake().load(account.cloud.names.ops("alerts")).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["opened_at"], row["kind"]))


@pytest.fixture
def subscribed(moto: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """What came to a queue that has subscribed to the alerts."""
    sns, sqs, name = moto.client("sns"), moto.client("sqs"), f"alerts-{uuid.uuid4().hex[:8]}"
    arn, queue = sns.create_topic(Name=name)["TopicArn"], sqs.create_queue(QueueName=name)["QueueUrl"]
    wanted = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=wanted, Attributes={"RawMessageDelivery": "true"})
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", moto.url)
    monkeypatch.setenv("LEAN_OPS_ALERT_TOPIC_ARN", arn)
    health._services.cache_clear()

    def came() -> list[dict[str, Any]]:
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(message["Body"]) for message in found]

    return came


def test_health_tells_once_of_books_that_do_not_balance(
    account: Account, subscribed: Callable[[], list[dict[str, Any]]]
) -> None:
    account.cloud.make_databases()
    ensure_table.handler({"topics": ["events"]}, None)
    land(account, 3)
    assert health.handler({"topics": ["events"]}, Call())["alerts"]["books"] == {"opened": 0, "closed": 0}
    row = ledger_row("events", Zone.STANDARDIZED, "b1", (None, 7), Counts(5, 4, 0, 1, 0, 0), NOW)
    SharedTables(account.cloud.lake()).append_rows(account.cloud.names.ops("reconciliation_log"), [row])
    assert health.handler({"topics": ["events"]}, Call())["alerts"]["books"] == {"opened": 1, "closed": 0}
    assert health.handler({"topics": ["events"]}, Call())["alerts"]["books"] == {"opened": 0, "closed": 0}
    [alert] = alerts_of(account)
    assert (alert["kind"], alert["topic_name"], alert["closed_at"]) == ("BOOKS_UNBALANCED", "events", None)
    [told] = subscribed()
    assert (told["kind"], told["alert_id"]) == ("BOOKS_UNBALANCED", alert["alert_id"])


def test_health_tells_of_data_that_wait_and_of_drift_without_looking_at_the_books(
    account: Account, subscribed: Callable[[], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    account.cloud.make_databases()
    ensure_table.handler({"topics": ["events"]}, None)
    schema_validator.handler(account.upload(PENDING, schema()), None)
    land(account, 3)
    now = datetime.now(UTC)
    drift = {"topic_name": "events", "kind": "NEW_COLUMN", "records": 1}
    lines = [
        {**drift, "batch_id": batch, "column_name": batch, "json_pointer": f"/{batch}", "detected_at": now - ago}
        for batch, ago in (("b1", timedelta(hours=2)), ("b2", timedelta(hours=1)))
    ]
    SharedTables(account.cloud.lake()).append_rows(account.cloud.names.ops("drift_log"), lines)
    answer = health.handler({"books": False}, Call())
    assert answer["alerts"] == {"waiting": {"opened": 0, "closed": 0}, "drift": {"opened": 1}}
    assert answer["ok"]
    assert "books" not in answer
    monkeypatch.setattr(health._services(), "clock", lambda: now + timedelta(minutes=90))
    again = {"waiting": {"opened": 1, "closed": 0}, "drift": {"opened": 0}}
    assert health.handler({"books": False}, Call())["alerts"] == again
    asked.state().update_item("events", lambda item: item.paused("a person", now.isoformat()))
    over = {"waiting": {"opened": 0, "closed": 1}, "drift": {"opened": 0}}
    assert health.handler({"books": False}, Call())["alerts"] == over
    assert [(row["kind"], row["closed_at"] is None) for row in alerts_of(account)] == [
        ("DRIFT", False),
        ("DATA_WAITING", False),
    ]
    assert [told["severity"] for told in subscribed()] == ["info", "warning", "info"]
    with pytest.raises(WrongUseError, match="books"):
        health.handler({"books": "no"}, Call())


def test_health_says_what_it_had_no_time_for(account: Account) -> None:
    account.cloud.make_databases()
    ensure_table.handler({"topics": ["events"]}, None)

    class Late:
        def get_remaining_time_in_millis(self) -> int:
            return 1_000

    books = health.handler({"topics": ["events"]}, Late())["books"]
    assert (books["topics"], books["unchecked"]) == (0, 1)


def on_the_command_line(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        cli.main(["--profile", "aws", "--json", *arguments])
    return int(left.value.code or 0), json.loads(capsys.readouterr().out)


def test_the_command_line_sees_what_the_functions_see(
    account: Account, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAN_OPS_ARCHIVE_BUCKET", "archive-of-tests")
    account.cloud.make_databases()
    assert on_the_command_line(capsys, "init")[1]["warehouse"] == account.cloud.settings.warehouse
    (tmp_path / "schema.json").write_bytes(schema())
    code, submitted = on_the_command_line(capsys, "schema", "submit", "events", "schema.json")
    assert (code, submitted["activated"]) == (0, True)
    assert account.keys() == ["events/active/schema.json"]
    land(account, 3)
    [status] = on_the_command_line(capsys, "status")[1]
    assert (status["topic"], status["gate"], status["raw_rows"], status["pending"]) == ("events", "open", 3, 3)
    assert on_the_command_line(capsys, "doctor")[0] == 0
    assert on_the_command_line(capsys, "query", "SELECT count(*) AS n FROM raw.events")[1] == [{"n": 3}]
    assert [line["topic"] for line in on_the_command_line(capsys, "schema", "list")[1]] == ["events"]
    code, traced = on_the_command_line(capsys, "trace", "1")
    assert (code, [copy["fate"] for copy in traced["copies"]]) == (0, ["pending"])
    assert check_schema.handler({"topics": ["events"]}, None)["standardize"] == ["events"]
    assert [file.name for file in tmp_path.iterdir()] == ["schema.json"]
