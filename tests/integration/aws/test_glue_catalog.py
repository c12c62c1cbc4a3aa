"""Commits to Glue whose answers get lost, and what else only Glue does."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate
from tests.integration.aws.catalogs import Cloud, glue_cloud, strict_glue

from lean_ops.aws import glue_catalog
from lean_ops.lake import append
from lean_ops.lake.catalog import Lake
from lean_ops.lake.shared import SharedTables
from lean_ops.lake.snapshots import history_of
from lean_ops.lake.staging import append_nothing, open_stage, publish
from lean_ops.model.batch import Batch, Zone
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.model.tables import RAW, TableName

__all__ = ["glue_cloud", "strict_glue"]

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
Update = Callable[..., Any]


@pytest.fixture
def lake(glue_cloud: Cloud) -> Lake:
    glue_cloud.make_databases()
    lake = glue_cloud.lake()
    lake.ensure_shared()
    return lake


@pytest.fixture
def alerts(glue_cloud: Cloud) -> TableName:
    return glue_cloud.names.ops("alerts")


@pytest.fixture
def through(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Update], Update]], None]:
    """Put something between the lake and Glue's update of tables."""
    catalog = lake.catalog
    assert isinstance(catalog, glue_catalog.LakeGlueCatalog)
    update = catalog.glue.update_table

    def put(between: Callable[[Update], Update]) -> None:
        monkeypatch.setattr(catalog.glue, "update_table", between(update))

    return put


def append_one(lake: Lake, alerts: TableName) -> None:
    row = {"alert_id": "a", "topic_name": "events", "opened_at": NOW}
    SharedTables(lake).append_rows(alerts, [row])


def answer_lost_and_asked_again(update: Update) -> Update:
    """What the client itself does when an answer does not come: the second attempt finds a newer version."""

    def twice(**request: Any) -> Any:
        update(**request)
        return update(**request)

    return twice


def answer_lost(update: Update) -> Update:
    def once(**request: Any) -> Any:
        update(**request)
        raise ReadTimeoutError(endpoint_url="glue")

    return once


@pytest.mark.parametrize("lost", [answer_lost_and_asked_again, answer_lost])
def test_a_commit_whose_answer_got_lost_is_in_once_and_whole(
    glue_cloud: Cloud, lake: Lake, alerts: TableName, through: Any, lost: Callable[[Update], Update]
) -> None:
    through(lost)
    for _ in range(3):
        append_one(lake, alerts)
    table = glue_cloud.lake().load(alerts)
    assert [snapshot.summary["added-records"] for snapshot in table.metadata.snapshots if snapshot.summary] == ["1"] * 3
    assert SharedTables(glue_cloud.lake()).count(alerts, topic_name="events") == 3


@pytest.mark.parametrize("lost", [answer_lost_and_asked_again, answer_lost])
def test_a_batch_whose_publication_got_no_answer_is_published_and_not_taken_for_somebody_elses(
    glue_cloud: Cloud, lake: Lake, through: Any, lost: Callable[[Update], Update]
) -> None:
    name, batch = glue_cloud.names.standardized("events"), Batch("events", Zone.STANDARDIZED, None, 7, "1.0.0")
    lake.ensure_standardized("events")
    through(lost)
    stage = open_stage(lake, name, batch)
    append_nothing(lake, stage, batch)
    head = history_of(lake.load(name)).refs[stage.branch]
    publish(lake, stage, head, {})
    history = history_of(glue_cloud.lake().load(name))
    assert (history.head, set(history.refs)) == (head, {"main"})


def test_a_commit_that_others_followed_before_it_was_looked_up_counts_as_made(
    glue_cloud: Cloud, lake: Lake, alerts: TableName, through: Any
) -> None:
    others = glue_cloud.lake()

    def overtaken(update: Update) -> Update:
        def once(**request: Any) -> Any:
            update(**request)
            append_one(others, alerts)
            append_one(others, alerts)
            raise ReadTimeoutError(endpoint_url="glue")

        return once

    through(overtaken)
    append_one(lake, alerts)
    assert SharedTables(glue_cloud.lake()).count(alerts, topic_name="events") == 3


def test_a_commit_that_so_many_followed_that_no_log_has_it_is_known_by_its_snapshot(
    glue_cloud: Cloud, lake: Lake, alerts: TableName, through: Any
) -> None:
    others = glue_cloud.lake()
    table = lake.load(alerts)
    with table.transaction() as transaction:
        transaction.set_properties({"write.metadata.previous-versions-max": "1"})

    def overtaken(update: Update) -> Update:
        def once(**request: Any) -> Any:
            update(**request)
            for _ in range(3):
                append_one(others, alerts)
            raise ReadTimeoutError(endpoint_url="glue")

        return once

    through(overtaken)
    append_one(lake, alerts)
    assert len(glue_cloud.lake().load(alerts).metadata.metadata_log) == 1
    assert SharedTables(glue_cloud.lake()).count(alerts, topic_name="events") == 4


def test_a_commit_that_never_arrived_is_not_taken_for_one_that_did(
    glue_cloud: Cloud, lake: Lake, alerts: TableName, through: Any
) -> None:
    def swallowed(_: Update) -> Update:
        def never(**_: Any) -> Any:
            raise ReadTimeoutError(endpoint_url="glue")

        return never

    through(swallowed)
    with pytest.raises(TransientError):
        append_one(lake, alerts)
    assert glue_cloud.lake().load(alerts).current_snapshot() is None


def test_a_lost_race_is_tried_again_until_it_wins(
    glue_cloud: Cloud, lake: Lake, alerts: TableName, through: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append.time, "sleep", lambda _: None)
    others, losses = glue_cloud.lake(), iter(range(8))

    def others_first(update: Update) -> Update:
        def late(**request: Any) -> Any:
            if next(losses, None) is not None:
                append_one(others, alerts)
            return update(**request)

        return late

    through(others_first)
    append_one(lake, alerts)
    assert history_of(glue_cloud.lake().load(alerts)).live_rows == 9


def test_a_requirement_that_does_not_hold_is_refused_before_anything_is_written(
    glue_cloud: Cloud, lake: Lake, alerts: TableName, through: Any
) -> None:
    append_one(lake, alerts)
    table = lake.load(alerts)
    through(lambda _: pytest.fail)
    moved = AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": 7})
    with pytest.raises(CommitFailedException):
        table.catalog.commit_table(table, (moved,), (SetPropertiesUpdate(updates={"late": "yes"}),))
    assert "late" not in glue_cloud.lake().load(alerts).properties


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ThrottlingException", 400, TransientError),
        ("InternalServiceException", 500, TransientError),
        ("AccessDeniedException", 400, TerminalError),
    ],
)
def test_what_glue_refuses_is_told_as_passing_or_not(
    lake: Lake, alerts: TableName, monkeypatch: pytest.MonkeyPatch, code: str, status: int, kind: type[Exception]
) -> None:
    catalog = lake.catalog
    assert isinstance(catalog, glue_catalog.LakeGlueCatalog)

    def refuse(**_: Any) -> Any:
        answer: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(answer, "GetTable")

    monkeypatch.setattr(catalog.glue, "get_table", refuse)
    for use in (lambda: lake.load(alerts), lambda: lake.file.location(alerts)):
        with pytest.raises(kind, match="alerts"):
            use()


def test_a_table_that_was_dropped_by_hand_is_not_made_anew(glue_cloud: Cloud, lake: Lake) -> None:
    name = glue_cloud.names.standardized("events")
    location = lake.ensure_standardized("events").metadata_location
    glue_cloud.server.client("glue").delete_table(DatabaseName=name.database, Name=name.table)
    with pytest.raises(TerminalError, match="files are still there") as refused:
        glue_cloud.lake().ensure_standardized("events")
    assert refused.value.found is not None
    assert refused.value.found.endswith(location.rpartition("/")[2]) or "00001-" in refused.value.found


def test_a_creation_that_was_interrupted_is_done_again(glue_cloud: Cloud, lake: Lake) -> None:
    name = glue_cloud.names.raw("events")
    lake.ensure(name, RAW)
    glue_cloud.server.client("glue").delete_table(DatabaseName=name.database, Name=name.table)
    assert glue_cloud.lake().ensure(name, RAW).current_snapshot() is None


def test_a_table_of_another_kind_is_refused_and_not_listed(glue_cloud: Cloud, lake: Lake) -> None:
    name = glue_cloud.names.raw("events")
    foreign = {"Name": name.table, "Parameters": {"table_type": "hive"}, "StorageDescriptor": {"Location": "s3://x/y"}}
    glue_cloud.server.client("glue").create_table(DatabaseName=name.database, TableInput=foreign)
    with pytest.raises(TerminalError, match="not an Iceberg table"):
        lake.ensure_raw("events")
    assert name.table not in lake.file.locations(name.database)
    assert lake.file.location(name) is None


def test_a_metadata_file_that_is_gone_is_named(glue_cloud: Cloud, lake: Lake, alerts: TableName) -> None:
    location = lake.file.location(alerts)
    assert location is not None
    bucket, _, key = location.removeprefix("s3://").partition("/")
    import boto3

    boto3.client("s3").delete_object(Bucket=bucket, Key=key)
    for use in (lambda: glue_cloud.lake().load(alerts), lambda: glue_cloud.lake().file.history(alerts)):
        with pytest.raises(TerminalError, match="metadata file is missing"):
            use()


def test_tables_lie_in_the_warehouse_as_in_a_home(glue_cloud: Cloud, lake: Lake, alerts: TableName) -> None:
    assert lake.load(alerts).location() == f"{glue_cloud.settings.warehouse}/{alerts.database}/{alerts.table}"
