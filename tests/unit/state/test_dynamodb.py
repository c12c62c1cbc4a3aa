"""The cloud's store where its server misbehaves; what it does with a real one is in tests/contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.state.stubs import TABLES, Script, Watch, scripted

from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.model.errors import TransientError
from lean_ops.model.registry import RegistryItem
from lean_ops.state.dynamodb import DynamoStateStore
from lean_ops.state.dynamodb_deliveries import DynamoDeliveries
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Held, Lease

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
LEASE = Lease("events", "ann", 3, NOW + timedelta(seconds=300))
INTENT = Intent(Batch("events", Zone.STANDARDIZED, 11, 12, "1.0.0"), (), NOW.isoformat())
FOUND = {
    "topic_name": {"S": "events"},
    "owner": {"S": "ann"},
    "fence": {"N": "3"},
    "expires_at": {"S": LEASE.expires_at.isoformat()},
    "attempt": {"S": "mine"},
}


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as script:
        yield script
        script.stubber.assert_no_pending_responses()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def store(script: Script, watch: Watch) -> DynamoStateStore:
    return DynamoStateStore(script.client, TABLES, 300, watch.patience(), lambda: "mine")


def test_nothing_is_called_before_it_is_needed(script: Script) -> None:
    DynamoStateStore(script.client, TABLES, 300)
    DynamoDeliveries(script.client, TABLES.idempotency_keys)
    assert script.asked == []


# leases


@pytest.mark.parametrize("code", ["TransactionConflictException", "ThrottlingException"])
def test_a_renewal_that_meets_a_transaction_or_a_throttle_is_tried_again(
    script: Script, store: DynamoStateStore, code: str
) -> None:
    script.refuse("update_item", code, times=4)
    script.answer("update_item", Attributes=FOUND)
    assert store.renew(LEASE, NOW) == LEASE


def test_a_taking_that_meets_a_transaction_is_tried_again_under_the_same_attempt(
    script: Script, store: DynamoStateStore
) -> None:
    script.refuse("update_item", "TransactionConflictException")
    script.answer("update_item", Attributes=FOUND)
    assert store.acquire("events", "ann", NOW) == LEASE
    attempts = [asked["ExpressionAttributeValues"][":attempt"] for asked in script.asked]
    assert attempts == [{"S": "mine"}] * 2


def test_a_lease_in_the_way_is_ours_only_if_this_very_attempt_took_it(script: Script, store: DynamoStateStore) -> None:
    others = {**FOUND, "attempt": {"S": "of another call"}}
    script.refuse("update_item", "ConditionalCheckFailedException", Item=FOUND)
    script.refuse("update_item", "ConditionalCheckFailedException", Item=others)
    assert store.acquire("events", "ann", NOW) == LEASE
    assert store.acquire("events", "ann", NOW) == Held(LEASE)


# checkpoints


def test_a_write_under_a_lease_asks_for_owner_fence_and_end_in_the_same_transaction(
    script: Script, store: DynamoStateStore
) -> None:
    script.answer("transact_write_items")
    store.save_intent(INTENT, LEASE, NOW)
    [asked] = script.asked
    check, update = asked["TransactItems"][0]["ConditionCheck"], asked["TransactItems"][1]["Update"]
    assert (check["TableName"], update["TableName"]) == ("lean-ops-dev-locks", "lean-ops-dev-checkpoints")
    assert check["ConditionExpression"] == "#owner = :owner AND fence = :fence AND expires_at > :now"
    assert check["ExpressionAttributeValues"] == {
        ":owner": {"S": "ann"},
        ":fence": {"N": "3"},
        ":now": {"S": "2026-02-03T10:15:30.000000+00:00"},
    }


def test_a_write_that_meets_a_renewal_is_tried_again(script: Script, store: DynamoStateStore) -> None:
    script.cancel("TransactionConflict", "None", times=3)
    script.answer("transact_write_items")
    store.save_intent(INTENT, LEASE, NOW)
    assert len(script.asked) == 4


def test_a_lost_lease_is_told_at_once(script: Script, store: DynamoStateStore, watch: Watch) -> None:
    script.cancel("ConditionalCheckFailed", "None")
    with pytest.raises(LostLeaseError):
        store.close_batch(INTENT, LEASE, NOW)
    assert watch.pauses == []


def test_a_write_that_meets_conflicts_without_end_is_no_lost_lease(script: Script, watch: Watch) -> None:
    store = DynamoStateStore(script.client, TABLES, 300, watch.patience(0), lambda: "mine")
    script.cancel("TransactionConflict", "None")
    with pytest.raises(TransientError, match="TransactionConflict") as told:
        store.save_intent(INTENT, LEASE, NOW)
    assert not isinstance(told.value, LostLeaseError)
    assert told.value.where == "DynamoDB table lean-ops-dev-locks or lean-ops-dev-checkpoints"


def test_what_decides_is_read_from_where_it_was_written(script: Script, store: DynamoStateStore) -> None:
    script.answer("get_item", times=4)
    script.answer("scan", times=2, Items=[])
    store.checkpoint("standardization_events")
    store.item("events")
    store.settled_up_to("events")
    with pytest.raises(LostLeaseError):
        store.confirm(LEASE, NOW)
    store.items()
    store.checkpoints()
    assert [asked["ConsistentRead"] for asked in script.asked] == [True] * 6


# registry


def registry_item(version: str, revision: int) -> dict[str, dict[str, str]]:
    return {"topic_name": {"S": "events"}, "schema_version": {"S": version}, "revision": {"N": str(revision)}}


def test_whoever_is_slower_asks_again_with_the_newer_item(script: Script, store: DynamoStateStore) -> None:
    script.answer("get_item", Item=registry_item("1", 5))
    script.cancel("ConditionalCheckFailed")
    script.answer("get_item", Item=registry_item("2", 6))
    script.answer("transact_write_items")
    seen = []

    def change(item: RegistryItem) -> RegistryItem:
        seen.append(item.schema_version)
        return replace(item, curated=True)

    assert store.update_item("events", change) == RegistryItem("events", schema_version="2", curated=True)
    assert seen == ["1", "2"]
    puts = [asked["TransactItems"][0]["Put"] for asked in script.asked if "TransactItems" in asked]
    assert [put["ExpressionAttributeValues"][":revision"] for put in puts] == [{"N": "5"}, {"N": "6"}]
    assert puts[1]["Item"]["revision"] == {"N": "7"}


def test_whoever_is_slower_each_time_says_so_in_the_end(script: Script, watch: Watch) -> None:
    store = DynamoStateStore(script.client, TABLES, 300, watch.patience(0.05), lambda: "mine")
    for revision in range(2):
        script.answer("get_item", Item=registry_item("1", revision))
        script.cancel("ConditionalCheckFailed")
    with pytest.raises(TransientError, match="somebody else was faster each time") as told:
        store.update_item("events", lambda item: replace(item, curated=True))
    assert told.value.where == "registry item of topic 'events'"
    assert watch.pauses == [0.02]


# deliveries


@pytest.fixture
def deliveries(script: Script, watch: Watch) -> DynamoDeliveries:
    return DynamoDeliveries(script.client, TABLES.idempotency_keys, watch.patience())


def remembered(name: str) -> dict[str, dict[str, str]]:
    return {"id": {"S": name}, "expires_at": {"N": str(2**40)}}


def put(name: str) -> dict[str, object]:
    return {"PutRequest": {"Item": remembered(name)}}


def test_only_ids_that_were_left_out_are_looked_up_again(
    script: Script, deliveries: DynamoDeliveries, watch: Watch
) -> None:
    table = TABLES.idempotency_keys
    left = [{"id": {"S": "b"}}, {"id": {"S": "c"}}]
    script.answer("batch_get_item", Responses={table: [remembered("a")]}, UnprocessedKeys={table: {"Keys": left}})
    script.answer("batch_get_item", UnprocessedKeys={table: {"Keys": left[1:]}})
    script.answer("batch_get_item", Responses={table: [remembered("c")]}, UnprocessedKeys={})
    assert deliveries.seen(["a", "b", "c"], NOW) == {"a", "c"}
    asked = [[key["id"]["S"] for key in call["RequestItems"][table]["Keys"]] for call in script.asked]
    assert asked == [["a", "b", "c"], ["b", "c"], ["c"]]
    assert all(call["RequestItems"][table]["ConsistentRead"] for call in script.asked)
    assert watch.pauses == [0.02, 0.04]


def test_only_ids_that_were_left_out_are_remembered_again(
    script: Script, deliveries: DynamoDeliveries, watch: Watch
) -> None:
    table = TABLES.idempotency_keys
    script.answer("batch_write_item", UnprocessedItems={table: [put("b")]})
    script.answer("batch_write_item", UnprocessedItems={})
    deliveries.remember(["a", "b"], NOW)
    assert script.asked[1]["RequestItems"] == {table: [put("b")]}
    assert watch.pauses == [0.02]


def test_ids_that_are_left_out_for_good_are_counted_in_the_error(script: Script, watch: Watch) -> None:
    deliveries = DynamoDeliveries(script.client, TABLES.idempotency_keys, watch.patience(0.1))
    table = TABLES.idempotency_keys
    script.answer("batch_write_item", times=3, UnprocessedItems={table: [put("a"), put("b")]})
    with pytest.raises(TransientError, match=r"for 0\.1 seconds; found 2 ids were not remembered"):
        deliveries.remember(["a", "b"], NOW)
    script.answer("batch_get_item", times=3, UnprocessedKeys={table: {"Keys": [{"id": {"S": "a"}}]}})
    with pytest.raises(TransientError, match="1 ids were not looked up") as told:
        deliveries.seen(["a"], NOW)
    assert told.value.where == f"DynamoDB table {table}"


def test_a_batch_that_is_throttled_as_a_whole_is_tried_again(script: Script, deliveries: DynamoDeliveries) -> None:
    script.refuse("batch_write_item", "ProvisionedThroughputExceededException", times=2)
    script.answer("batch_write_item", UnprocessedItems={})
    deliveries.remember(["a"], NOW)
    assert len(script.asked) == 3
