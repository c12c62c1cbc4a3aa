"""DynamoDB's tables by name and shape."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, Literal

from lean_ops.state.dynamodb_calls import Dynamo

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        CreateTableInputTypeDef,
        GlobalSecondaryIndexTypeDef,
        KeySchemaElementTypeDef,
        TimeToLiveSpecificationTypeDef,
        WaiterConfigTypeDef,
    )

TTL_ATTRIBUTE: Final = "expires_at"
ERRORS_BY_TOPIC: Final = "by_topic"
_READY_WITHIN: Final[WaiterConfigTypeDef] = {"Delay": 1, "MaxAttempts": 120}
# Hash key, then range key if there is one.
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "checkpoints": ("pipeline_id",),
    "locks": ("topic_name",),
    "schema_registry": ("topic_name",),
    "idempotency_keys": ("id",),
    "error_tracker": ("error_id",),
    "circuit_breaker": ("topic_name", "item"),
}
_INDEXES: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "error_tracker": {ERRORS_BY_TOPIC: ("topic_name", "recorded_at")}
}
# A lock's end is no time-to-live: a deleted lock would forget its fence.
_WITH_TTL: Final = frozenset({"idempotency_keys", "error_tracker", "circuit_breaker"})


@dataclass(frozen=True, slots=True)
class DynamoTables:
    """The tables' full names."""

    checkpoints: str
    locks: str
    schema_registry: str
    idempotency_keys: str
    error_tracker: str
    circuit_breaker: str

    @classmethod
    def of(cls, project: str, environment: str) -> DynamoTables:
        """The tables of one environment of a project."""
        return cls(**{name.name: f"{project}-{environment}-{name.name}" for name in fields(cls)})


def create_tables(client: DynamoDBClient, tables: DynamoTables) -> None:
    """Make the tables that are missing, and wait until they can be used. For servers that Terraform does not reach."""
    dynamo = Dynamo(client)
    for name in _KEYS:
        _create(dynamo, getattr(tables, name), name)
    for name in _KEYS:
        _finish(dynamo, getattr(tables, name), name)


def _create(dynamo: Dynamo, table: str, name: str) -> None:
    shape = _shape(table, name)

    def create(client: DynamoDBClient) -> None:
        try:
            client.create_table(**shape)
        except client.exceptions.ResourceInUseException:  # it is there, or somebody else is making it
            return

    dynamo.do(table, create)


def _finish(dynamo: Dynamo, table: str, name: str) -> None:
    dynamo.do(table, lambda client: client.get_waiter("table_exists").wait(TableName=table, WaiterConfig=_READY_WITHIN))
    if name not in _WITH_TTL:
        return
    known = dynamo.do(table, lambda client: client.describe_time_to_live(TableName=table))
    if known["TimeToLiveDescription"].get("TimeToLiveStatus") in {None, "DISABLED"}:
        on: TimeToLiveSpecificationTypeDef = {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
        dynamo.do(table, lambda client: client.update_time_to_live(TableName=table, TimeToLiveSpecification=on))


def _shape(table: str, name: str) -> CreateTableInputTypeDef:
    indexes = _INDEXES.get(name, {})
    attributes = dict.fromkeys((*_KEYS[name], *(key for keys in indexes.values() for key in keys)))
    shape: CreateTableInputTypeDef = {
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in attributes],
        "KeySchema": _key_schema(_KEYS[name]),
    }
    if indexes:
        shape["GlobalSecondaryIndexes"] = [_index(index, keys) for index, keys in indexes.items()]
    return shape


def _index(name: str, keys: tuple[str, ...]) -> GlobalSecondaryIndexTypeDef:
    return {"IndexName": name, "KeySchema": _key_schema(keys), "Projection": {"ProjectionType": "ALL"}}


def _key_schema(keys: tuple[str, ...]) -> list[KeySchemaElementTypeDef]:
    kinds: tuple[Literal["HASH", "RANGE"], ...] = ("HASH", "RANGE")
    return [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, kinds, strict=False)]
