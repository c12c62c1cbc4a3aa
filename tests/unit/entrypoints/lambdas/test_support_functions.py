"""The support functions without a network: what they answer, and what they say to events that can't be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.unit.operate.planned_home import NAMES, THREE, Home, metadata, published

from lean_ops.entrypoints.lambdas import asked, check_schema, fetch_active_topics, get_all_checkpoints, schema_validator
from lean_ops.lake.catalog_file import CatalogFile
from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.model.registry import RegistryItem, Status
from lean_ops.state.port import Lease
from lean_ops.state.sqlite import SqliteStateStore

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
BIG = 2**62 + 1


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROJECT": "lean-ops", "ENVIRONMENT": "test", "DATABASE_PREFIX": "dev_"}.items():
        monkeypatch.setenv(f"LEAN_OPS_{name}", value)
    monkeypatch.delenv("LEAN_OPS_GROUP_SIZE", raising=False)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStateStore:
    """The state store that the functions find."""
    store = SqliteStateStore(tmp_path / "state.db", 300, lambda _: False)
    for module in (check_schema, fetch_active_topics, get_all_checkpoints):
        monkeypatch.setattr(module, "state", lambda: store)
    return store


def register(store: SqliteStateStore, topic: str, **values: Any) -> None:
    ready = RegistryItem(topic, Status.READY, schema_version="1.0.0", curated=True)
    store.update_item(topic, lambda _: replace(ready, **values))


def close(store: SqliteStateStore, topic: str, zone: Zone, snapshot: int, **values: Any) -> None:
    lease = store.acquire(topic, "ann", NOW)
    assert isinstance(lease, Lease)
    intent = Intent(Batch(topic, zone, None, snapshot, "1.0.0"), (), NOW.isoformat())
    store.close_batch(replace(intent, **values), lease, NOW)
    store.release(lease)


def json_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer as Lambda hands it on: it must be plain JSON."""
    found: dict[str, Any] = json.loads(json.dumps(answer, allow_nan=False))
    return found


# get_all_checkpoints


def test_all_checkpoints_are_answered_with_snapshots_as_text(store: SqliteStateStore) -> None:
    close(store, "orders", Zone.STANDARDIZED, 7)
    close(store, "events", Zone.STANDARDIZED, BIG, last_ingestion_ts=77)

    answer = json_of(get_all_checkpoints.handler({}, None))

    assert [row["pipeline_id"] for row in answer["checkpoints"]] == ["standardization_events", "standardization_orders"]
    assert answer["count"] == 2
    assert answer["checkpoints"][0] == {
        "pipeline_id": "standardization_events",
        "last_snapshot_id": str(BIG),
        "last_ingestion_ts": 77,
        "open_batch": None,
        "failures": 0,
        "updated_at": NOW.isoformat(),
    }


def test_checkpoints_of_named_topics_are_those_of_hops_that_ever_ran(store: SqliteStateStore) -> None:
    for topic in ("events", "orders"):
        close(store, topic, Zone.STANDARDIZED, 7)
    close(store, "events", Zone.CURATED, 8)

    answer = get_all_checkpoints.handler({"topics": ["events", "nobody", "events"]}, None)
    assert [row["pipeline_id"] for row in answer["checkpoints"]] == ["curated_events", "standardization_events"]

    many = [f"t{number}" for number in range(60)]
    answer = get_all_checkpoints.handler({"topics": ["orders", *many]}, None)
    assert [row["pipeline_id"] for row in answer["checkpoints"]] == ["standardization_orders"]


def test_an_open_batch_is_shown_with_its_checkpoint(store: SqliteStateStore) -> None:
    lease = store.acquire("events", "ann", NOW)
    assert isinstance(lease, Lease)
    batch = Batch("events", Zone.STANDARDIZED, None, 7, "1.0.0")
    store.save_intent(Intent(batch, (), NOW.isoformat()), lease, NOW)

    [row] = get_all_checkpoints.handler({}, None)["checkpoints"]
    assert (row["last_snapshot_id"], row["open_batch"]) == (None, batch.batch_id)


# fetch_active_topics


def test_topics_with_an_open_gate_come_in_groups_by_name(store: SqliteStateStore) -> None:
    for number in (3, 1, 2, 5, 4):
        register(store, f"t{number}")
    register(store, "paused", flow=RegistryItem("x").paused("night", "now").flow)
    register(store, "none", status=Status.NO_SCHEMA)

    answer = json_of(fetch_active_topics.handler({"group_size": 2}, None))

    assert answer == {
        "groups": [{"topics": ["t1", "t2"]}, {"topics": ["t3", "t4"]}, {"topics": ["t5"]}],
        "topics": 5,
        "shut": 2,
    }
    assert fetch_active_topics.handler({"group_size": 2}, None) == answer


@pytest.mark.parametrize(("setting", "event", "size"), [(None, {}, 25), ("3", {}, 3), ("3", {"group_size": 1}, 1)])
def test_the_size_of_groups_is_the_events_else_the_settings_else_the_usual(
    store: SqliteStateStore, monkeypatch: pytest.MonkeyPatch, setting: str | None, event: dict[str, int], size: int
) -> None:
    if setting is not None:
        monkeypatch.setenv("LEAN_OPS_GROUP_SIZE", setting)
    for number in range(30):
        register(store, f"t{number:02}")

    groups = fetch_active_topics.handler(event, None)["groups"]
    assert [len(group["topics"]) for group in groups][:-1] == [size] * ((30 - 1) // size)


def test_no_topics_are_no_groups(store: SqliteStateStore) -> None:
    assert store.items() == {}
    assert fetch_active_topics.handler({}, None) == {"groups": [], "topics": 0, "shut": 0}


def test_more_topics_than_a_state_machine_takes_are_refused(
    store: SqliteStateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(store, "events")
    monkeypatch.setattr(fetch_active_topics, "_MOST_BYTES", 10)
    with pytest.raises(TerminalError, match="more topics"):
        fetch_active_topics.handler({}, None)


@pytest.mark.parametrize("setting", ["0", "201", "many", "-1", "1.5"])
def test_a_wrong_group_size_in_the_settings_is_named(
    store: SqliteStateStore, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    assert store is not None
    monkeypatch.setenv("LEAN_OPS_GROUP_SIZE", setting)
    with pytest.raises(WrongUseError, match="LEAN_OPS_GROUP_SIZE"):
        fetch_active_topics.handler({}, None)


# check_schema


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home(tmp_path / "home")
    monkeypatch.setattr(check_schema, "_catalog", lambda: CatalogFile(home.folder / "catalog.db", "lean_ops"))
    return home


def checked(*topics: str) -> dict[str, Any]:
    return json_of(check_schema.handler({"topics": list(topics)}, None))


def test_a_group_is_told_apart_by_gates_and_by_what_is_new(store: SqliteStateStore, home: Home) -> None:
    home.topic("fresh", THREE)
    home.topic("done", THREE, published(3), published(901), gate=None)
    home.topic("curate", THREE, published(3), None)
    home.topic("shut", THREE)
    home.topic("flat", THREE, published(3))
    for topic in ("fresh", "done", "curate"):
        register(store, topic)
    register(store, "flat", curated=False)
    for topic in ("done", "curate", "flat"):
        close(store, topic, Zone.STANDARDIZED, 3)
    close(store, "done", Zone.CURATED, 901)

    answer = checked("fresh", "done", "curate", "shut", "flat", "nobody")

    assert answer["open"] == ["fresh", "done", "curate", "flat"]
    assert answer["shut"] == ["shut", "nobody"]
    assert (answer["standardize"], answer["curate"]) == (["fresh"], ["fresh", "curate"])
    assert (answer["gate_open"], answer["has_work"], answer["curated_ready"]) == (True, True, True)
    lines = {line["topic"]: line for line in answer["topics"]}
    assert lines["fresh"]["standardized"] == {
        "pending": True,
        "follows": False,
        "batches": 1,
        "records": 23,
        "problem": None,
    }
    assert lines["fresh"]["curated"]["follows"]
    assert (lines["shut"]["gate"], lines["shut"]["reason"], lines["shut"]["waiting"]) == (
        "SHUT",
        "no schema deployed",
        23,
    )
    assert (lines["flat"]["is_curated"], lines["flat"]["curated"]["pending"]) == (False, False)
    assert not lines["done"]["standardized"]["pending"]


def test_a_group_without_work_says_so(store: SqliteStateStore, home: Home) -> None:
    home.topic("shut", THREE)
    answer = checked("shut")
    assert (answer["gate_open"], answer["has_work"], answer["curated_ready"]) == (False, False, False)
    home.topic("events", THREE, published(3), published(901))
    register(store, "events")
    close(store, "events", Zone.STANDARDIZED, 3)
    close(store, "events", Zone.CURATED, 901)
    answer = checked("shut", "events")
    assert (answer["gate_open"], answer["has_work"], answer["curated_ready"]) == (True, False, False)


def test_a_damaged_table_is_its_own_topics_problem(store: SqliteStateStore, home: Home) -> None:
    home.topic("broken", b"{")
    home.topic("events", metadata({"id": 1, "rows": 2}))
    for topic in ("broken", "events"):
        register(store, topic)

    answer = checked("broken", "events")

    assert answer["standardize"] == ["broken", "events"]
    lines = {line["topic"]: line for line in answer["topics"]}
    assert "damaged" in lines["broken"]["standardized"]["problem"]
    assert lines["events"]["standardized"]["problem"] is None


def test_only_tables_of_the_group_are_looked_up(
    store: SqliteStateStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("events", "orders"):
        home.topic(topic, THREE)
        register(store, topic)
    asked_for: list[str] = []
    catalog = CatalogFile(home.folder / "catalog.db", "lean_ops")
    look_up = catalog.location
    monkeypatch.setattr(catalog, "location", lambda name: (asked_for.append(str(name)), look_up(name))[1])
    monkeypatch.setattr(catalog, "locations", lambda _: pytest.fail("the whole database was listed"))
    monkeypatch.setattr(check_schema, "_catalog", lambda: catalog)

    assert checked("events")["standardize"] == ["events"]
    assert sorted(asked_for) == sorted(str(NAMES.of_zone(zone, "events")) for zone in Zone)


# events that can't be


HOSTILE: list[Any] = [
    None,
    [],
    "events",
    {"topics": "events"},
    {"topics": {"a": 1}},
    {"topics": [1]},
    {"topics": ["Events"]},
    {"topics": ["../events"]},
    {"topics": ["events; DROP TABLE x"]},
    {"topics": ["dlq"]},
    {"topics": ["t"] * 10_001},
]


@pytest.mark.parametrize("handler", [check_schema.handler, get_all_checkpoints.handler])
@pytest.mark.parametrize("event", HOSTILE, ids=lambda event: repr(event)[:30])
def test_an_event_that_cant_be_is_a_clear_error(
    handler: Callable[[Any, object], object], event: Any, store: SqliteStateStore
) -> None:
    assert store is not None
    with pytest.raises(WrongUseError, match="event"):
        handler(event, None)


@pytest.mark.parametrize("event", [{}, {"topics": []}, {"topics": None}])
def test_a_group_without_topics_is_a_clear_error(event: Any) -> None:
    with pytest.raises(WrongUseError, match="topics"):
        check_schema.handler(event, None)


@pytest.mark.parametrize(
    "event", [None, [], {"group_size": 0}, {"group_size": True}, {"group_size": "2"}, {"group_size": 201}]
)
def test_a_group_size_that_cant_be_is_a_clear_error(event: Any, store: SqliteStateStore) -> None:
    assert store is not None
    with pytest.raises(WrongUseError, match="event"):
        fetch_active_topics.handler(event, None)


def test_a_function_without_its_variables_says_which_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAN_OPS_ENVIRONMENT")
    asked.state.cache_clear()
    with pytest.raises(TerminalError, match="LEAN_OPS_ENVIRONMENT"):
        get_all_checkpoints.handler({}, None)


def s3_event(**changes: Any) -> dict[str, Any]:
    s3 = {"bucket": {"name": "schemas"}, "object": {"key": "schemas/my+topic/pending/schema.json"}}
    return {"Records": [{"userIdentity": {"principalId": "AWS:ann"}, "s3": {**s3, **changes}}]}


def test_uploads_are_read_from_events_of_s3_and_of_eventbridge() -> None:
    [direct] = schema_validator.uploads(s3_event())
    assert (direct.bucket, direct.key, direct.by) == ("schemas", "schemas/my topic/pending/schema.json", "AWS:ann")
    detail = {"bucket": {"name": "schemas"}, "object": {"key": "schemas/my topic/pending/schema.json"}}
    [bridged] = schema_validator.uploads({"source": "aws.s3", "detail": {**detail, "requester": "AWS:ann"}})
    assert bridged == direct
    assert schema_validator.uploads({"Service": "Amazon S3", "Event": "s3:TestEvent"}) == []


@pytest.mark.parametrize(
    "event",
    [
        None,
        {},
        {"Records": None},
        {"Records": "x"},
        {"Records": [{}]},
        {"Records": [{"s3": None}]},
        s3_event(object={"key": 7}),
        s3_event(bucket=None),
        {"source": "aws.s3"},
        {"source": "aws.s3", "detail": []},
        {"source": "aws.ec2", "detail": {}},
    ],
)
def test_an_event_that_is_not_about_an_upload_is_a_clear_error(event: Any) -> None:
    with pytest.raises(WrongUseError, match="event"):
        schema_validator.uploads(event)


# cold starts


LISTING = "import sys, lean_ops.entrypoints.lambdas.{0}; print(*sys.modules)"


@pytest.mark.parametrize("module", ["get_all_checkpoints", "fetch_active_topics", "check_schema"])
def test_a_light_function_carries_neither_arrow_nor_pydantic(module: str) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", LISTING.format(module)], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"pyspark", "pyarrow", "pyiceberg", "duckdb", "pandas", "numpy", "pydantic", "boto3", "structlog"}
    assert not heavy & set(listed.stdout.split())


@pytest.mark.parametrize("module", ["ensure_table", "schema_validator", "health"])
def test_no_support_function_loads_spark(module: str) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", LISTING.format(module)], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"pyspark", "pandas", "typer"} & set(listed.stdout.split())
