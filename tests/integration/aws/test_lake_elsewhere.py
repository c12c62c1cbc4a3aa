"""The lake on a catalog elsewhere keeps the promises that it keeps in a home; each test runs on Glue and on REST."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from threading import Barrier
from typing import Any

import pytest
from pydantic import SecretStr
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate
from requests.exceptions import ReadTimeout
from tests.integration.aws.catalogs import Cloud, cloud, glue_cloud, rest_cloud, strict_glue

from lean_ops.lake import retention
from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.catalog import Lake
from lean_ops.lake.query import QuerySession
from lean_ops.lake.rest_catalog import LakeRestCatalog
from lean_ops.lake.shared import SharedTables
from lean_ops.lake.snapshots import history_of
from lean_ops.lake.staging import Change, MainMovedError, append_nothing, open_branch, open_stage, publish
from lean_ops.ledger.reading import LedgerReader
from lean_ops.model.batch import Batch, Zone
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.model.tables import RAW, STANDARDIZED

__all__ = ["cloud", "glue_cloud", "rest_cloud", "strict_glue"]

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
JOBS = 30


@pytest.fixture
def lake(cloud: Cloud) -> Lake:
    cloud.make_databases()
    return cloud.lake()


def alert(number: int, topic: str = "events") -> dict[str, Any]:
    return {"alert_id": f"a{number}", "topic_name": topic, "kind": "JOB_FAILED", "opened_at": NOW}


def test_a_missing_database_is_an_error_that_says_who_makes_it(cloud: Cloud) -> None:
    for use in (cloud.lake().ensure_shared, lambda: cloud.lake().ensure_raw("events")):
        with pytest.raises(TerminalError, match="Terraform"):
            use()
    with pytest.raises(TerminalError, match="Terraform"):
        cloud.lake().file.locations(cloud.names.raw_database)


def test_tables_are_made_of_their_shapes_once(cloud: Cloud, lake: Lake) -> None:
    for _ in range(2):
        lake.ensure_shared()
        raw, standardized = lake.ensure_raw("events"), lake.ensure_standardized("events")
    assert [field.name for field in raw.schema().fields] == [column.name for column in RAW.columns]
    assert [field.name for field in standardized.schema().fields] == [column.name for column in STANDARDIZED.columns]
    assert str(raw.spec().fields[0].transform) == "day"
    assert raw.metadata.format_version == 2
    assert standardized.current_snapshot() is not None
    other = cloud.lake()
    assert other.load(cloud.names.raw("events")).metadata.table_uuid == raw.metadata.table_uuid
    assert all(other.exists(name) for name in cloud.names.shared)
    assert not other.exists(cloud.names.raw("nobody"))


def test_many_that_make_the_same_tables_at_once_get_the_same_tables(glue_cloud: Cloud) -> None:
    """On Glue alone: SeaweedFS' catalog takes two creations of one table at a time."""
    glue_cloud.make_databases()
    start = Barrier(4)

    def make(_: int) -> tuple[str, str]:
        own = glue_cloud.lake()
        start.wait(30)
        return str(own.ensure_raw("events").metadata.table_uuid), str(
            own.ensure_standardized("events").metadata.table_uuid
        )

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(make, range(4)))) == 1


def test_what_is_appended_is_there_for_every_reader(cloud: Cloud, lake: Lake) -> None:
    lake.ensure_shared()
    name = cloud.names.ops("alerts")
    shared = SharedTables(lake)
    shared.append_rows(name, [alert(1), alert(2), alert(3, "orders")])
    shared.append_rows(name, [alert(4)])
    other = SharedTables(cloud.lake())
    assert other.count(name, topic_name="events") == 3
    assert other.values(name, "alert_id", topic_name="orders") == {"a3"}
    query = QuerySession(cloud.names, cloud.lake().file)
    found = query.query("SELECT topic_name, count(*) AS n FROM ops.alerts GROUP BY ALL ORDER BY 1")
    assert found == [{"topic_name": "events", "n": 3}, {"topic_name": "orders", "n": 1}]
    assert LedgerReader(cloud.lake().file, cloud.names).errors(None).totals == []


def test_a_tables_history_is_the_same_through_the_reader(cloud: Cloud, lake: Lake) -> None:
    lake.ensure_shared()
    name = cloud.names.ops("alerts")
    assert lake.file.history(cloud.names.raw("events")) is None
    SharedTables(lake).append_rows(name, [alert(1)])
    reader, loaded = cloud.lake().file, history_of(cloud.lake().load(name))
    history = reader.history(name)
    assert history is not None
    assert (history.snapshots, history.refs) == (loaded.snapshots, loaded.refs)
    location = reader.location(name)
    assert location is not None
    assert reader.locations(name.database)[name.table] == location
    assert reader.outlines.outline(str(name), location) == history.outline()
    lake.ensure_raw("events")
    assert set(cloud.lake().file.raw_locations(cloud.names)) == {"events"}
    assert not reader.has_view(cloud.names.latest("events"))


def test_of_two_commits_on_the_same_state_the_second_is_refused(cloud: Cloud, lake: Lake) -> None:
    lake.ensure_standardized("events")
    first, second = (own.load(cloud.names.standardized("events")) for own in (cloud.lake(), cloud.lake()))
    seen = first.metadata.current_snapshot_id
    unmoved = AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": seen})
    first.append(first.schema().as_arrow().empty_table())
    with pytest.raises(CommitFailedException):
        second.catalog.commit_table(second, (unmoved,), (SetPropertiesUpdate(updates={"late": "yes"}),))
    assert "late" not in cloud.lake().load(cloud.names.standardized("events")).properties


def test_shared_tables_take_the_commits_of_thirty_jobs_at_once(cloud: Cloud, lake: Lake) -> None:
    lake.ensure_shared()
    name, start = cloud.names.ops("alerts"), Barrier(JOBS)

    def job(number: int) -> None:
        shared = SharedTables(cloud.lake())
        start.wait(120)
        shared.append_rows(name, [alert(number, f"topic_{number % 3}")])

    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(job, range(JOBS)))
    table = cloud.lake().load(name)
    ids = SharedTables(cloud.lake()).values(name, "alert_id")
    assert ids == {f"a{number}" for number in range(JOBS)}
    assert history_of(table).live_rows == JOBS


def test_a_batch_is_staged_and_published_or_refused_if_main_has_moved(cloud: Cloud, lake: Lake) -> None:
    lake.ensure_standardized("events")
    name, batch = cloud.names.standardized("events"), Batch("events", Zone.STANDARDIZED, None, 7, "1.0.0")
    stage, late = open_stage(lake, name, batch), cloud.lake()
    append_nothing(lake, stage, batch)
    head = history_of(lake.load(name)).refs[stage.branch]
    publish(lake, stage, head, {"lean-ops.rows": "0"})
    history = late.file.history(name)
    assert history is not None
    checkpoint = history.checkpoint()
    assert checkpoint is not None
    assert (history.head, checkpoint.to_snapshot, set(history.refs)) == (head, 7, {"main"})
    with pytest.raises(MainMovedError):
        publish(late, stage, head, {})


def test_a_branch_is_opened_although_others_commit_meanwhile(cloud: Cloud, lake: Lake) -> None:
    lake.ensure_standardized("events")
    name, turns = cloud.names.standardized("events"), iter(range(2))
    own = cloud.lake()

    def somebody_commits(_: object) -> Change:
        if next(turns, None) is not None:
            table = lake.load(name)
            table.append(table.schema().as_arrow().empty_table())
        return Change()

    stage = open_branch(own, name, "purpose", somebody_commits)
    history = history_of(lake.load(name))
    assert history.refs[stage.branch] == history.head == stage.base


def test_old_snapshots_of_shared_tables_are_forgotten(
    cloud: Cloud, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_MANY", 4)
    monkeypatch.setattr(retention, "_NEWEST_KEPT", 2)
    lake.ensure_shared()
    name, shared = cloud.names.ops("alerts"), SharedTables(lake)
    for number in range(6):
        shared.append_rows(name, [alert(number)])
    later = int(datetime.now(UTC).timestamp() * 1000) + 3_600_000
    assert retention.forget_old_snapshots(lake.load(name), later) == 4
    assert len(cloud.lake().load(name).metadata.snapshots) == 2
    assert SharedTables(cloud.lake()).count(name, topic_name="events") == 6


def commit_rows(lake: Lake, cloud: Cloud, number: int) -> int:
    import pyarrow as pa

    table = lake.load(cloud.names.ops("alerts"))
    rows = pa.Table.from_pylist([alert(number)], schema=table.schema().as_arrow())
    return append_files(table, write_files(table, rows), {})


def test_an_append_says_which_snapshot_it_made(cloud: Cloud, lake: Lake) -> None:
    lake.ensure_shared()
    made: Callable[[int], int] = lambda number: commit_rows(lake, cloud, number)  # noqa: E731  said twice below
    assert made(1) != made(2)
    assert history_of(cloud.lake().load(cloud.names.ops("alerts"))).live_rows == 2


def test_a_commit_to_a_rest_catalog_whose_answer_got_lost_is_in_once(
    rest_cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest_cloud.make_databases()
    lake, name = rest_cloud.lake(), rest_cloud.names.ops("alerts")
    lake.ensure_shared()
    catalog = lake.catalog
    assert isinstance(catalog, LakeRestCatalog)
    post = catalog._session.post

    def lost(*request: Any, **more: Any) -> Any:
        post(*request, **more)
        raise ReadTimeout("no answer")

    monkeypatch.setattr(catalog._session, "post", lost)
    SharedTables(lake).append_rows(name, [alert(1)])
    assert SharedTables(rest_cloud.lake()).count(name, topic_name="events") == 1

    monkeypatch.setattr(catalog._session, "post", lambda *_, **__: (_ for _ in ()).throw(ReadTimeout("never sent")))
    with pytest.raises(TransientError, match="did not answer"):
        SharedTables(lake).append_rows(name, [alert(2)])
    assert SharedTables(rest_cloud.lake()).count(name, topic_name="events") == 1


def test_a_rest_catalog_that_is_not_there_or_refuses_is_told_as_passing_or_not(rest_cloud: Cloud) -> None:
    nobody = replace(rest_cloud, settings=rest_cloud.settings.model_copy(update={"catalog_uri": "http://127.0.0.1:1"}))
    with pytest.raises(TransientError, match="127"):
        nobody.lake().ensure_shared()
    wrong = rest_cloud.settings.model_copy(update={"catalog_credential": SecretStr("nobody:nothing")})
    with pytest.raises(TerminalError, match="refused"):
        replace(rest_cloud, settings=wrong).lake().ensure_shared()
