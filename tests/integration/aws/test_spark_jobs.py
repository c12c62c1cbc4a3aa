"""The Spark jobs on a catalog and a store elsewhere: the same tables, books and checkpoints as in a home."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.integration.aws.catalogs import Cloud, glue_cloud, rest_cloud, strict_glue
from tests.integration.aws.job_scene import Account, account_on, report
from tests.servers.server import Server

from lean_ops.lake.jars import AWS_JARS, jar_files
from lean_ops.lake.java import find_java
from lean_ops.lake.kernel_jar import spark_jars
from lean_ops.settings import load_settings

__all__ = ["glue_cloud", "rest_cloud", "strict_glue"]

pytestmark = pytest.mark.timeout(1800)  # a test starts up to five jobs one after the other

GOOD = '{"user": "u-1", "amount": "1.50"}'
NEWER = '{"user": "u-1", "amount": "2.50"}'


@pytest.fixture
def account(
    glue_cloud: Cloud, dynamodb: Server, seaweed: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Account:
    return account_on(glue_cloud, dynamodb, seaweed, tmp_path / "home", monkeypatch)


@pytest.fixture
def rest_account(
    rest_cloud: Cloud, dynamodb: Server, seaweed: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Account:
    return account_on(rest_cloud, dynamodb, seaweed, tmp_path / "home", monkeypatch)


def test_two_jobs_bring_what_is_new_to_curated_and_a_second_pair_goes_on_from_there(account: Account) -> None:
    account.submit("events")
    account.submit("orders", zones=["standardized"])
    account.land("events", [("m1", "k1", GOOD), ("m1", "k1", GOOD), ("m2", "k2", "{"), ("m3", "k3", '{"amount": 1}')])
    account.land("orders", [("o1", "a", '{"deep": {"er": 1.10}}')])
    account.land("nobody", [("n1", "a", GOOD)])

    first = report(account.job("standardized", ["events", "orders", "nobody"]))
    assert {topic["topic"]: topic["status"] for topic in first["topics"]} == {
        "events": "SUCCEEDED",
        "orders": "SUCCEEDED",
    }, first["topics"]
    assert [waiting["topic"] for waiting in first["waiting"]] == ["nobody"]
    assert account.query("SELECT deep_er FROM standardized.orders") == [{"deep_er": "1.10"}]
    view = athena_view(account, "orders")
    assert view["columns"][-1] == {"name": "deep_er", "type": "varchar"}
    assert '"deep_er"' in view["originalSql"]
    second = report(account.job("curated", ["events", "orders"]))
    assert [topic["topic"] for topic in second["topics"]] == ["events"]
    assert account.query('SELECT idempotency_key, "user", amount::VARCHAR AS amount FROM curated.events') == [
        {"idempotency_key": "k1", "user": "u-1", "amount": "1.50"}
    ]

    account.land("events", [("m4", "k1", NEWER)])
    assert report(account.job("standardized", ["events"]))["topics"][0]["status"] == "SUCCEEDED"
    report(account.job("curated", ["events"]))
    assert account.query("SELECT amount::VARCHAR AS amount FROM curated.events") == [{"amount": "2.50"}]
    books = account.query(
        "SELECT zone, records_in, inserted, updated, duplicates, errors FROM ops.reconciliation_log"
        " WHERE topic_name = 'events' ORDER BY recorded_at"
    )
    assert [tuple(row.values()) for row in books] == [
        ("standardized", 4, 2, 0, 1, 1),
        ("curated", 2, 1, 0, 0, 1),
        ("standardized", 1, 1, 0, 0, 0),
        ("curated", 1, 0, 1, 0, 0),
    ]
    history = account.query("SELECT status, count(*) AS n FROM ops.job_run_history GROUP BY ALL")
    assert history == [{"status": "SUCCEEDED", "n": 5}]
    with account.services() as services:
        moved = services.state.checkpoint("standardization_events")
        assert (
            moved.last_snapshot_id
            == account.cloud.lake().load(account.cloud.names.raw("events")).metadata.current_snapshot_id
        )

    nothing = report(account.job("curated", ["events"]))
    assert (nothing["run_id"], nothing["topics"]) == (None, [])


def athena_view(account: Account, topic: str) -> dict[str, Any]:
    """What Athena reads of a view in Glue."""
    name = account.cloud.names.latest(topic)
    entry = account.cloud.server.client("glue").get_table(DatabaseName=name.database, Name=name.table)["Table"]
    assert (entry["TableType"], entry["Parameters"]["presto_view"]) == ("VIRTUAL_VIEW", "true")
    text = entry["ViewOriginalText"].removeprefix("/* Presto View: ").removesuffix(" */")
    found: dict[str, Any] = json.loads(base64.b64decode(text))
    return found


def test_the_jobs_work_on_a_rest_catalog_which_may_have_no_views(rest_account: Account) -> None:
    account = rest_account
    account.submit("events")
    account.land("events", [("m1", "k1", GOOD), ("m2", "k2", "{")])
    for name in ("standardized", "curated"):
        done = report(account.job(name, ["events"]))
        assert [topic["status"] for topic in done["topics"]] == ["SUCCEEDED"], done
    assert account.query("SELECT amount::VARCHAR AS amount FROM curated.events") == [{"amount": "1.50"}]
    assert account.query("SELECT message_id FROM standardized.events_latest") == [{"message_id": "m1"}]


def test_under_spark_submit_the_same_job_uses_the_spark_it_was_started_in(account: Account) -> None:
    account.submit("events")
    account.land("events", [("m1", "k1", GOOD)])
    cache = load_settings({"profile": "aws"}).settings.cache_dir
    java = find_java(cache, os.environ)
    jars = (*jar_files(cache, java, jars=AWS_JARS), *spark_jars(cache, java, lambda _: None))
    without = account.submitted("standardized", ["events"], jars[:-1])
    assert without.returncode == 1
    assert "without our jar" in without.stdout  # spark-submit sends all that Python says there
    done = account.submitted("standardized", ["events"], jars)
    assert report(done)["topics"][0]["status"] == "SUCCEEDED", done.stderr[-3000:]
    assert account.query("SELECT message_id FROM standardized.events") == [{"message_id": "m1"}]


def test_a_topic_that_fails_is_told_and_stops_no_other(account: Account) -> None:
    account.submit("events")
    account.submit("orders")
    for topic in ("events", "orders"):
        account.land(topic, [("m1", "k1", GOOD)])
    lost = next(iter(account.cloud.lake().load(account.cloud.names.raw("orders")).scan().plan_files())).file.file_path
    account.cloud.lake().load(account.cloud.names.raw("orders")).io.delete(lost)
    done = account.job("standardized", ["events", "orders"])
    assert done.returncode == 1
    assert "1 of 2 topics failed: orders: " in done.stderr
    outcomes = {topic["topic"]: topic["status"] for topic in report(done)["topics"]}
    assert outcomes == {"events": "SUCCEEDED", "orders": "FAILED"}
    assert account.query("SELECT topic_name, status FROM ops.job_run_history ORDER BY 1") == [
        {"topic_name": "events", "status": "SUCCEEDED"},
        {"topic_name": "orders", "status": "FAILED"},
    ]
    alerts = account.query("SELECT topic_name, severity FROM ops.alerts")
    assert alerts == [{"topic_name": "orders", "severity": "critical"}]


@pytest.mark.parametrize("catalog", ["account", "rest_account"])
def test_the_rebuild_job_restores_what_was_deleted_and_one_topic_stops_no_other(
    catalog: str, request: pytest.FixtureRequest
) -> None:
    account: Account = request.getfixturevalue(catalog)
    account.submit("events")
    account.land("events", [("m1", "k1", GOOD), ("m2", "k2", "{"), ("m3", "k3", '{"amount": 1}'), ("m4", "k4", NEWER)])
    for name in ("standardized", "curated"):
        report(account.job(name, ["events"]))
    first_seen = account.query("SELECT first_seen_ts FROM curated.events ORDER BY idempotency_key")
    lake = account.cloud.lake()
    lake.load(lake.names.standardized("events")).delete("message_id = 'm4'")

    done = account.job("rebuild", ["nobody", "events"])
    assert done.returncode == 1
    assert "1 of 2 topics failed: nobody: rebuild: " in done.stderr
    nobody, events = report(done)["topics"]
    assert (nobody["status"], events["status"], events["published"]) == ("FAILED", "SUCCEEDED", True), events
    assert [zone["rows"]["new"] for zone in events["zones"]] == [1, 0]
    assert account.query("SELECT message_id FROM standardized.events ORDER BY 1") == [
        {"message_id": name} for name in ("m1", "m3", "m4")
    ]
    assert account.query("SELECT first_seen_ts FROM curated.events ORDER BY idempotency_key") == first_seen
    assert account.query("SELECT message_id FROM standardized.parse_errors") == [{"message_id": "m2"}]
    account.land("events", [("m5", "k1", NEWER)])
    for name in ("standardized", "curated"):
        assert report(account.job(name, ["events"]))["topics"][0]["status"] == "SUCCEEDED"
    with account.services() as services:
        [books] = services.reconciler(services.state).reconcile(["events"])
        assert [finding.message for zone in books.zones[1:] for finding in zone.findings] == []
        assert services.state.rebuild_note("events") is None
