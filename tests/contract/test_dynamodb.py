"""What holds for the cloud's stores alone: their tables, what lies in them, and what is told when they fail."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError
from tests.contract.bench import AHEAD, BIG, END, INTENT, NOW, PIPELINE, TICK, Bench, dynamodb_client, taken

from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.state.dynamodb import DynamoStateStore
from lean_ops.state.dynamodb_tables import DynamoTables, create_tables
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Checkpoint, Held, Lease, TrackedError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOWHERE = Bench("dynamodb", "nowhere")


@pytest.fixture
def bench(on_dynamodb: Bench) -> Bench:
    return on_dynamodb


def stored(table: str, **key: str) -> dict[str, dict[str, object]]:
    """An item as it lies in the table."""
    names = {name: {"S": text} for name, text in key.items()}
    answer = dynamodb_client().get_item(TableName=table, Key=names, ConsistentRead=True)
    return dict(answer["Item"])


# tables


def test_tables_are_named_after_project_and_environment() -> None:
    tables = DynamoTables.of("lean-ops", "dev")
    assert tables.checkpoints == "lean-ops-dev-checkpoints"
    assert {field.name for field in fields(tables)} == {
        "checkpoints",
        "locks",
        "schema_registry",
        "idempotency_keys",
        "error_tracker",
        "circuit_breaker",
    }


@pytest.mark.parametrize(
    ("name", "keys", "forgets"),
    [
        ("checkpoints", ["pipeline_id"], False),
        ("locks", ["topic_name"], False),
        ("schema_registry", ["topic_name"], False),
        ("idempotency_keys", ["id"], True),
        ("error_tracker", ["error_id"], True),
        ("circuit_breaker", ["topic_name", "item"], True),
    ],
)
def test_tables_are_paid_by_request_and_only_what_ages_out_is_deleted(
    bench: Bench, name: str, keys: list[str], forgets: bool
) -> None:
    table, client = getattr(bench.tables, name), dynamodb_client()
    shape = client.describe_table(TableName=table)["Table"]
    assert [key["AttributeName"] for key in shape["KeySchema"]] == keys
    assert shape["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    to_live = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    expected = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    assert to_live == (expected if forgets else {"TimeToLiveStatus": "DISABLED"})


def test_making_tables_again_changes_nothing(bench: Bench) -> None:
    lease = taken(bench.open())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: create_tables(dynamodb_client(), bench.tables), range(4)))
    assert bench.open().acquire(lease.topic, "bob", NOW) == Held(lease)


# what lies in them


def test_a_lock_says_who_has_it_until_when_and_keeps_its_fence_when_it_is_given_back(bench: Bench) -> None:
    store = bench.open()
    lease = taken(store)
    found = stored(bench.tables.locks, topic_name="events")
    assert (found["owner"], found["fence"]) == ({"S": "ann"}, {"N": "1"})
    assert found["expires_at"] == {"S": "2026-02-03T10:20:30.000000+00:00"}
    store.release(lease)
    assert stored(bench.tables.locks, topic_name="events") == {"topic_name": {"S": "events"}, "fence": {"N": "1"}}


def test_checkpoints_and_settlements_lie_beside_each_other_under_their_types(bench: Bench) -> None:
    store = bench.open()
    store.close_batch(replace(INTENT, last_ingestion_ts=77), taken(store), NOW)
    store.settle_up_to("events", BIG)
    assert stored(bench.tables.checkpoints, pipeline_id=PIPELINE) == {
        "pipeline_id": {"S": PIPELINE},
        "checkpoint_type": {"S": "iceberg_snapshot"},
        "last_snapshot_id": {"N": str(BIG)},
        "last_ingestion_ts": {"N": "77"},
        "updated_at": {"S": NOW.isoformat()},
    }
    settled = stored(bench.tables.checkpoints, pipeline_id="settlement#events")
    assert (settled["checkpoint_type"], settled["last_snapshot_id"]) == ({"S": "settlement"}, {"N": str(BIG)})


def test_the_registry_says_whether_the_gate_is_open(bench: Bench) -> None:
    store = bench.open()
    store.update_item("events", lambda item: replace(item, status=Status.READY))
    found = stored(bench.tables.schema_registry, topic_name="events")
    assert (found["processing_enabled"], found["revision"]) == ({"BOOL": True}, {"N": "1"})
    store.update_item("events", lambda item: replace(item, flow=Flow.PAUSED))
    found = stored(bench.tables.schema_registry, topic_name="events")
    assert (found["processing_enabled"], found["revision"]) == ({"BOOL": False}, {"N": "2"})


def test_an_update_that_changes_nothing_writes_nothing(bench: Bench) -> None:
    store = bench.open()
    store.update_item("events", lambda item: item)
    store.update_item("events", lambda item: item)
    store.claim_name("events", "events", NOW)
    assert stored(bench.tables.schema_registry, topic_name="events")["revision"] == {"N": "1"}


def test_an_item_that_somebody_wrote_by_hand_can_be_changed(bench: Bench) -> None:
    by_hand: dict[str, Any] = {"topic_name": {"S": "events"}, "status": {"S": "READY"}, "note": {"L": []}}
    dynamodb_client().put_item(TableName=bench.tables.schema_registry, Item=by_hand)
    store = bench.open()
    ready = RegistryItem("events", Status.READY)
    assert store.items() == {"events": ready}
    assert store.update_item("events", lambda item: replace(item, curated=True)) == replace(ready, curated=True)
    assert store.item("events") == replace(ready, curated=True)


@pytest.mark.parametrize("spoilt", [{"status": {"S": "SOON"}}, {"curated": {"S": ""}, "flow": {"N": "1"}}])
def test_an_item_that_makes_no_sense_is_named(bench: Bench, spoilt: dict[str, dict[str, str]]) -> None:
    item: dict[str, Any] = {"topic_name": {"S": "events"}, **spoilt}
    dynamodb_client().put_item(TableName=bench.tables.schema_registry, Item=item)
    with pytest.raises(TerminalError, match="can't be read") as told:
        bench.open().items()
    assert told.value.where == "topic_name 'events'"


def test_what_ages_out_says_when_in_whole_seconds(bench: Bench) -> None:
    bench.deliveries().remember(["a"], AHEAD)
    bench.errors().put(TrackedError("e1", "events", None, "UNKNOWN", "path", "NEW", AHEAD))
    a_day, days = int(AHEAD.timestamp()) + 86_400, int(AHEAD.timestamp()) + 90 * 86_400
    assert stored(bench.tables.idempotency_keys, id="a")["expires_at"] == {"N": str(a_day)}
    assert stored(bench.tables.error_tracker, error_id="e1")["expires_at"] == {"N": str(days)}


# size


def test_an_intent_of_a_thousand_long_declared_columns_is_stored(bench: Bench) -> None:
    declared = tuple(f"/{'section/' * 50}column_{number}" for number in range(1000))
    intent, store = replace(INTENT, declared=declared), bench.open()
    store.save_intent(intent, taken(store), NOW)
    assert store.checkpoint(PIPELINE) == Checkpoint(PIPELINE, intent=intent, updated_at=NOW.isoformat())


def test_an_intent_that_no_item_can_hold_is_refused_and_said_so(bench: Bench) -> None:
    random, store = Random(1), bench.open()  # noqa: S311  the same each time
    declared = tuple(random.randbytes(500).hex() for _ in range(2000))
    with pytest.raises(TerminalError, match="maximum allowed size"):
        store.save_intent(replace(INTENT, declared=declared), taken(store), NOW)
    assert store.checkpoints() == {}


def copy_under(table: str, key: str, original: str, names: list[str]) -> None:
    """Copies of an item; one by one the store would take long."""
    item, client = stored(table, **{key: original}), dynamodb_client()
    puts: list[Any] = [{"PutRequest": {"Item": {**item, key: {"S": name}}}} for name in names]
    for start in range(0, len(puts), 25):
        left = client.batch_write_item(RequestItems={table: puts[start : start + 25]})
        assert left["UnprocessedItems"] == {}


def test_700_topics_are_listed(bench: Bench) -> None:
    store = bench.open()
    store.close_batch(INTENT, taken(store), NOW)
    known = store.update_item("events", lambda item: replace(item, last_error="x" * 2000))
    topics = [f"topic_{number:03}" for number in range(699)]
    pipelines = [f"standardization_{topic}" for topic in topics]
    copy_under(bench.tables.schema_registry, "topic_name", "events", topics)
    copy_under(bench.tables.checkpoints, "pipeline_id", PIPELINE, pipelines)
    expected = {topic: replace(known, topic_name=topic) for topic in ["events", *topics]}
    assert list(store.items().items()) == list(expected.items())
    found = store.checkpoints()
    assert set(found) == {PIPELINE, *pipelines}
    assert {checkpoint.last_snapshot_id for checkpoint in found.values()} == {BIG}


# faults


@pytest.mark.parametrize(
    ("use", "table"),
    [
        (lambda: NOWHERE.open().checkpoint(PIPELINE), "bench-nowhere-checkpoints"),
        (lambda: NOWHERE.open().checkpoints(), "bench-nowhere-checkpoints"),
        (lambda: NOWHERE.open().items(), "bench-nowhere-schema_registry"),
        (lambda: NOWHERE.open().claim_name("events", "events", NOW), "bench-nowhere-schema_registry"),
        (lambda: NOWHERE.open().acquire("events", "ann", NOW), "bench-nowhere-locks"),
        (lambda: NOWHERE.deliveries().seen(["a"], NOW), "bench-nowhere-idempotency_keys"),
        (lambda: NOWHERE.deliveries().remember(["a"], NOW), "bench-nowhere-idempotency_keys"),
        (lambda: NOWHERE.errors().newest("events", NOW), "bench-nowhere-error_tracker"),
    ],
)
@pytest.mark.usefixtures("on_dynamodb")
def test_a_missing_table_is_named_with_what_makes_it(use: Callable[[], object], table: str) -> None:
    with pytest.raises(TerminalError, match="there is no such table") as told:
        use()
    assert told.value.where == f"DynamoDB table {table}"
    assert "Terraform" in str(told.value.remedy)


def test_a_write_under_a_lease_names_both_tables_if_one_is_missing(on_own_tables: Bench) -> None:
    store, tables = on_own_tables.open(), on_own_tables.tables
    lease = taken(store)
    dynamodb_client().delete_table(TableName=tables.checkpoints)
    with pytest.raises(TerminalError, match="there is no such table") as told:
        store.save_intent(INTENT, lease, NOW)
    assert told.value.where == f"DynamoDB table {tables.locks} or {tables.checkpoints}"


def test_a_name_that_is_no_key_is_refused_and_said_so(bench: Bench) -> None:
    with pytest.raises(TerminalError, match="DynamoDB refused the call"):
        bench.open().acquire("", "ann", NOW)
    with pytest.raises(TerminalError):
        bench.deliveries().seen(["x" * 3000], NOW)


def test_a_wall_clock_far_from_ours_does_not_matter(bench: Bench) -> None:
    """Only the caller's clock decides, in the write's own condition."""
    store = bench.open()
    lease = taken(store, now=datetime(1971, 1, 1, tzinfo=UTC))
    store.renew(lease, datetime(1971, 1, 1, tzinfo=UTC))
    with pytest.raises(LostLeaseError):
        store.renew(lease, END)


# answers that get lost on their way, whereupon the client repeats the call


def client_that_loses_answers_to(operation: str) -> DynamoDBClient:
    """A client whose first call of an operation is carried out by the server, and nobody hears of it."""
    client = boto3.client("dynamodb", config=Config(retries={"mode": "standard", "total_max_attempts": 3}))
    lost: list[object] = []

    def lose(request: Any, **_: object) -> None:
        if not lost:
            lost.append(client._endpoint.http_session.send(request).content)
            raise ConnectionClosedError(endpoint_url=request.url)

    client.meta.events.register(f"before-send.dynamodb.{operation}", lose)
    return client


def test_a_lease_whose_taking_went_unheard_is_still_ours(bench: Bench) -> None:
    store = DynamoStateStore(client_that_loses_answers_to("UpdateItem"), bench.tables, 300)
    lease = taken(store)
    assert lease == Lease("events", "ann", 1, END)
    store.confirm(lease, NOW)
    assert store.acquire("events", "ann", NOW) == Held(lease)


def test_a_failure_whose_counting_went_unheard_is_counted_once(bench: Bench) -> None:
    store = DynamoStateStore(client_that_loses_answers_to("TransactWriteItems"), bench.tables, 300)
    assert store.count_failure(PIPELINE, taken(store), NOW) == 1
    assert store.checkpoint(PIPELINE).failures == 1


def test_a_change_of_an_item_that_went_unheard_is_made_once(bench: Bench) -> None:
    store = DynamoStateStore(client_that_loses_answers_to("TransactWriteItems"), bench.tables, 300)

    def add(item: RegistryItem) -> RegistryItem:
        return replace(item, schema_version=str(int(item.schema_version or 0) + 1))

    assert store.update_item("events", add).schema_version == "1"
    assert store.item("events") == RegistryItem("events", schema_version="1")


def test_a_renewal_and_a_release_that_went_unheard_are_done(bench: Bench) -> None:
    lease = taken(bench.open())
    renewed = DynamoStateStore(client_that_loses_answers_to("UpdateItem"), bench.tables, 300).renew(lease, END - TICK)
    DynamoStateStore(client_that_loses_answers_to("UpdateItem"), bench.tables, 300).release(renewed)
    assert taken(bench.open(), owner="bob").fence == 2
