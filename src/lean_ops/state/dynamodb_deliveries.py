"""Deliveries that were done with, in DynamoDB."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lean_ops.model.errors import TransientError
from lean_ops.state.dynamodb_calls import Dynamo
from lean_ops.state.dynamodb_items import attributes, plain
from lean_ops.state.rules import delivery_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        BatchGetItemOutputTypeDef,
        BatchWriteItemOutputTypeDef,
        KeysAndAttributesTypeDef,
    )

    from lean_ops.state.dynamodb_calls import Patience

Answer = TypeVar("Answer")

_KEYS_A_READ: Final = 100
_ITEMS_A_WRITE: Final = 25
_CALLS_AT_ONCE: Final = 8


class DynamoDeliveries:
    """Deliveries in `table`; DynamoDB deletes forgotten ones sometime, until then they count as unknown."""

    def __init__(self, client: DynamoDBClient, table: str, patience: Patience | None = None) -> None:
        self._dynamo = Dynamo(client, patience)
        self._table = table

    def seen(self, ids: Iterable[str], now: datetime) -> set[str]:
        """Those of the ids that are remembered."""
        left: list[Any] = [attributes({"id": each}) for each in dict.fromkeys(ids)]
        found: list[dict[str, Any]] = []
        for _ in self._dynamo.patience.tries():
            answers = _in_parts(self._read, left, _KEYS_A_READ)
            found += [plain(each) for answer in answers for each in answer.get("Responses", {}).get(self._table, [])]
            left = [
                key
                for answer in answers
                for asked in answer.get("UnprocessedKeys", {}).values()
                for key in asked["Keys"]
            ]
            if not left:
                return {each["id"] for each in found if each.get("expires_at", 0) > now.timestamp()}
        raise self._busy(f"{len(left)} ids were not looked up")

    def remember(self, ids: Iterable[str], now: datetime) -> None:
        """Remember the ids for 24 hours from now on."""
        end = delivery_end(now)
        left: list[Any] = [
            {"PutRequest": {"Item": attributes({"id": each, "expires_at": end})}} for each in dict.fromkeys(ids)
        ]
        for _ in self._dynamo.patience.tries():
            answers = _in_parts(self._write, left, _ITEMS_A_WRITE)
            left = [
                request for answer in answers for request in answer.get("UnprocessedItems", {}).get(self._table, [])
            ]
            if not left:
                return
        raise self._busy(f"{len(left)} ids were not remembered")

    def _read(self, keys: Sequence[Any]) -> BatchGetItemOutputTypeDef:
        asked: KeysAndAttributesTypeDef = {
            "Keys": keys,
            "ConsistentRead": True,
            "ProjectionExpression": "id, expires_at",
        }
        return self._dynamo.do(self._table, lambda client: client.batch_get_item(RequestItems={self._table: asked}))

    def _write(self, requests: Sequence[Any]) -> BatchWriteItemOutputTypeDef:
        return self._dynamo.do(
            self._table, lambda client: client.batch_write_item(RequestItems={self._table: requests})
        )

    def _busy(self, found: str) -> TransientError:
        return TransientError(
            f"DynamoDB left a part of a batch undone for {self._dynamo.patience.seconds:g} seconds",
            where=f"DynamoDB table {self._table}",
            found=found,
            remedy="Do the same again later; the table's throttled requests are in CloudWatch.",
        )


def _in_parts(call: Callable[[Sequence[Any]], Answer], everything: Sequence[Any], size: int) -> list[Answer]:
    """The answers to the parts of a batch, several of which are on their way at a time."""
    parts = [everything[start : start + size] for start in range(0, len(everything), size)]
    if len(parts) <= 1:
        return [call(part) for part in parts]
    with ThreadPoolExecutor(min(len(parts), _CALLS_AT_ONCE)) as pool:
        return list(pool.map(call, parts))
