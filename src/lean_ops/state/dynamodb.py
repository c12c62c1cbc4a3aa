"""The cloud's state store: DynamoDB, where every write carries the condition under which it may happen."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.errors import TransientError
from lean_ops.model.registry import RegistryItem
from lean_ops.state.dynamodb_calls import ConditionFailedError, Dynamo, unique_id
from lean_ops.state.dynamodb_items import (
    SNAPSHOT_CHECKPOINT,
    attributes,
    checkpoint_of,
    intent_value,
    lease_of,
    of_registry_item,
    plain,
    registry_item_of,
)
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Checkpoint, Held, Lease
from lean_ops.state.rules import claimed, utc_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import ConditionCheckTypeDef, PutTypeDef, ScanOutputTypeDef, UpdateTypeDef

    from lean_ops.model.batch import Intent
    from lean_ops.state.dynamodb_calls import Patience
    from lean_ops.state.dynamodb_items import Item
    from lean_ops.state.dynamodb_tables import DynamoTables

_IS_FREE: Final = "attribute_not_exists(#owner) OR expires_at <= :now"
_IS_OURS: Final = "#owner = :owner AND fence = :fence"
_IS_CURRENT: Final = f"{_IS_OURS} AND expires_at > :now"
_TOUCH: Final = "SET checkpoint_type = :type, updated_at = :time"
_OWNER: Final = {"#owner": "owner"}  # a word that DynamoDB keeps for itself


class DynamoStateStore:
    """Checkpoints, leases, settlements and the registry. Safe to share between threads, as the client is."""

    def __init__(
        self,
        client: DynamoDBClient,
        tables: DynamoTables,
        lease_seconds: int,
        patience: Patience | None = None,
        new_id: Callable[[], str] = unique_id,
    ) -> None:
        self._dynamo = Dynamo(client, patience, new_id)
        self._tables = tables
        self._lease_time = timedelta(seconds=lease_seconds)
        self._new_id = new_id

    # checkpoints

    def checkpoint(self, pipeline_id: str) -> Checkpoint:
        """A hop's checkpoint; an empty one if it never ran."""
        found = self._get(self._tables.checkpoints, {"pipeline_id": pipeline_id})
        return checkpoint_of(found) if found else Checkpoint(pipeline_id)

    def checkpoints(self) -> dict[str, Checkpoint]:
        """All checkpoints by pipeline id."""
        items = self._scan(self._tables.checkpoints)
        of_hops = (found for found in items if found.get("checkpoint_type") == {"S": SNAPSHOT_CHECKPOINT})
        return {each.pipeline_id: each for each in map(checkpoint_of, of_hops)}

    def save_intent(self, intent: Intent, lease: Lease, now: datetime) -> None:
        """Store the open batch."""
        change = f"{_TOUCH}, intent = :intent"
        self._write_as_holder(intent.batch.pipeline_id, change, {":intent": intent_value(intent)}, lease, now)

    def close_batch(self, intent: Intent, lease: Lease, now: datetime) -> None:
        """Move the checkpoint to the batch's end, forget the intent and the failures."""
        last_ingestion = ", last_ingestion_ts = :ingestion" if intent.last_ingestion_ts is not None else ""
        change = f"{_TOUCH}, last_snapshot_id = :snapshot{last_ingestion} REMOVE intent, failures"
        values = {":snapshot": intent.batch.to_snapshot, ":ingestion": intent.last_ingestion_ts}
        self._write_as_holder(intent.batch.pipeline_id, change, values, lease, now)

    def count_failure(self, pipeline_id: str, lease: Lease, now: datetime) -> int:
        """One more failure in a row; the number of them."""
        self._write_as_holder(pipeline_id, f"{_TOUCH} ADD failures :one", {":one": 1}, lease, now)
        return self.checkpoint(pipeline_id).failures

    def _write_as_holder(
        self, pipeline_id: str, change: str, values: dict[str, Any], lease: Lease, now: datetime
    ) -> None:
        """Change a checkpoint, in one transaction with a look at the lease: LostLeaseError if it is not current."""
        touch = {":type": SNAPSHOT_CHECKPOINT, ":time": now.isoformat()}
        is_current: ConditionCheckTypeDef = {
            "TableName": self._tables.locks,
            "Key": attributes({"topic_name": lease.topic}),
            "ConditionExpression": _IS_CURRENT,
            "ExpressionAttributeNames": _OWNER,
            "ExpressionAttributeValues": attributes(_current(lease, now)),
        }
        update: UpdateTypeDef = {
            "TableName": self._tables.checkpoints,
            "Key": attributes({"pipeline_id": pipeline_id}),
            "UpdateExpression": change,
            "ExpressionAttributeValues": attributes({**touch, **values}),
        }
        tables = f"{self._tables.locks} or {self._tables.checkpoints}"
        try:
            self._dynamo.transact(tables, [{"ConditionCheck": is_current}, {"Update": update}])
        except ConditionFailedError as error:
            raise LostLeaseError(lease) from error

    # leases

    def acquire(self, topic: str, owner: str, now: datetime) -> Lease | Held:
        """Take the lease if it is free or expired; whether its process is gone can't be seen from elsewhere."""
        attempt = self._new_id()
        change = "SET #owner = :owner, expires_at = :end, attempt = :attempt ADD fence :one"
        end = utc_text(now + self._lease_time)
        values = {":owner": owner, ":end": end, ":attempt": attempt, ":one": 1, ":now": utc_text(now)}
        try:
            return lease_of(self._change_lock(topic, change, _IS_FREE, values))
        except ConditionFailedError as error:
            # The client repeats a call whose answer got lost: then it is our own lease that stands in the way.
            holder = lease_of(error.item)
            return holder if plain(error.item).get("attempt") == attempt else Held(holder)

    def renew(self, lease: Lease, now: datetime) -> Lease:
        """The same lease with a later end, or LostLeaseError."""
        renewed = replace(lease, expires_at=now + self._lease_time)
        values = {**_current(lease, now), ":end": utc_text(renewed.expires_at)}
        try:
            self._change_lock(lease.topic, "SET expires_at = :end", _IS_CURRENT, values)
        except ConditionFailedError as error:
            raise LostLeaseError(lease) from error
        return renewed

    def confirm(self, lease: Lease, now: datetime) -> None:
        """LostLeaseError unless the lease is still the current one; nothing is written."""
        found = self._get(self._tables.locks, {"topic_name": lease.topic}) or {}
        holder = lease_of(found) if "owner" in found else None
        if not holder or (holder.owner, holder.fence) != (lease.owner, lease.fence) or holder.expires_at <= now:
            raise LostLeaseError(lease)

    def release(self, lease: Lease) -> None:
        """Give the lease back; nothing happens if it was lost meanwhile. The item stays, for its fence."""
        values = {":owner": lease.owner, ":fence": lease.fence}
        with suppress(ConditionFailedError):
            self._change_lock(lease.topic, "REMOVE #owner, expires_at, attempt", _IS_OURS, values)

    def _change_lock(self, topic: str, change: str, condition: str, values: dict[str, Any]) -> Item:
        """The lock after the change; ConditionFailedError with the lock as it is if the condition does not hold."""
        answer = self._dynamo.do(
            self._tables.locks,
            lambda client: client.update_item(
                TableName=self._tables.locks,
                Key=attributes({"topic_name": topic}),
                UpdateExpression=change,
                ConditionExpression=condition,
                ExpressionAttributeNames=_OWNER,
                ExpressionAttributeValues=attributes(values),
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        return answer["Attributes"]

    # settlements

    def settled_up_to(self, topic: str) -> int | None:
        """The RAW snapshot up to which the ledger is known to have every flush; None if nothing is known."""
        found = self._get(self._tables.checkpoints, {"pipeline_id": _settlement(topic)})
        return checkpoint_of(found).last_snapshot_id if found else None

    def settle_up_to(self, topic: str, snapshot_id: int) -> None:
        """Remember a snapshot, in the place of an earlier one."""
        key, table = _settlement(topic), self._tables.checkpoints
        settled = attributes({"pipeline_id": key, "checkpoint_type": "settlement", "last_snapshot_id": snapshot_id})
        self._dynamo.do(table, lambda client: client.put_item(TableName=table, Item=settled))

    # rebuilds

    def rebuild_note(self, topic: str) -> str | None:
        """What a rebuild of a topic left here; None if none is under way."""
        found = self._get(self._tables.checkpoints, {"pipeline_id": _rebuild(topic)})
        return plain(found).get("note") if found else None

    def note_rebuild(self, topic: str, note: str | None) -> None:
        """Keep a note in the place of an earlier one, or none any more; the item stays, as all of this table do."""
        table = self._tables.checkpoints
        kept = attributes({"pipeline_id": _rebuild(topic), "checkpoint_type": "rebuild", "note": note})
        self._dynamo.do(table, lambda client: client.put_item(TableName=table, Item=kept))

    # registry

    def item(self, topic: str) -> RegistryItem | None:
        """What is known of a topic."""
        found = self._get(self._tables.schema_registry, {"topic_name": topic})
        return registry_item_of(found) if found else None

    def items(self) -> dict[str, RegistryItem]:
        """Every topic known, by name."""
        items = map(registry_item_of, self._scan(self._tables.schema_registry))
        return {each.topic_name: each for each in sorted(items, key=lambda each: each.topic_name)}

    def update_item(self, topic: str, change: Callable[[RegistryItem], RegistryItem]) -> RegistryItem:
        """Change a topic's item (a new one if it is unknown) with nobody writing in between; the new item.

        `change` is asked again, with the newer item, whenever somebody else was faster.
        """
        return self._replaced(topic, lambda known: change(known or RegistryItem(topic)))

    def claim_name(self, topic: str, source_name: str, now: datetime) -> None:
        """Tie a topic to the source name it came under; another name for the same topic is a WrongUseError."""
        self._replaced(topic, lambda known: claimed(known, topic, source_name, now))

    def _replaced(self, topic: str, change: Callable[[RegistryItem | None], RegistryItem]) -> RegistryItem:
        for _ in self._dynamo.patience.tries():
            found = self._get(self._tables.schema_registry, {"topic_name": topic})
            known = registry_item_of(found) if found else None
            changed = change(known)
            if changed == known or self._put_after(plain(found).get("revision") if found else None, changed):
                return changed
        raise TransientError(
            "somebody else was faster each time",
            where=f"registry item of topic {topic!r}",
            remedy="Do the same again; if it goes on, find out who writes the item all the time.",
        )

    def _put_after(self, revision: int | None, changed: RegistryItem) -> bool:
        """Write the item if it still has the revision that was read; False if it has not.

        A transaction of one: unlike a plain put it is written once even if its answer gets lost and it is repeated.
        """
        put: PutTypeDef = {
            "TableName": self._tables.schema_registry,
            "Item": of_registry_item(changed, (revision or 0) + 1),
            "ConditionExpression": "attribute_not_exists(revision)" if revision is None else "revision = :revision",
        }
        if revision is not None:
            put["ExpressionAttributeValues"] = attributes({":revision": revision})
        try:
            self._dynamo.transact(self._tables.schema_registry, [{"Put": put}])
        except ConditionFailedError:
            return False
        return True

    # reading

    def _get(self, table: str, key: dict[str, str]) -> Item | None:
        answer = self._dynamo.do(
            table, lambda client: client.get_item(TableName=table, Key=attributes(key), ConsistentRead=True)
        )
        return answer.get("Item")

    def _scan(self, table: str) -> Iterator[Item]:
        """Every item of a table, page by page."""
        start: dict[str, Any] = {}
        while True:
            page = self._page(table, start)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _page(self, table: str, start: dict[str, Any]) -> ScanOutputTypeDef:
        return self._dynamo.do(table, lambda client: client.scan(TableName=table, ConsistentRead=True, **start))


def _current(lease: Lease, now: datetime) -> dict[str, str | int]:
    return {":owner": lease.owner, ":fence": lease.fence, ":now": utc_text(now)}


def _rebuild(topic: str) -> str:
    """A key that no pipeline has."""
    return f"rebuild#{topic}"


def _settlement(topic: str) -> str:
    """A key that no pipeline has."""
    return f"settlement#{topic}"
