"""The circuit breaker's table on DynamoDB: a topic's traffic by minute, and beside it its circuit.

The keys of minutes sort before the circuit's, so one query brings the newest minutes and the circuit together.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.circuit import Circuit, Phase, Seen
from lean_ops.model.errors import TerminalError
from lean_ops.state.circuits import TRAFFIC_KEPT
from lean_ops.state.dynamodb_calls import ConditionFailedError, Dynamo
from lean_ops.state.dynamodb_items import attributes, plain

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, QueryInputTypeDef

    from lean_ops.state.dynamodb_calls import Patience

_STATE: Final = "state"
_MINUTE: Final = "minute#"
_FIELDS: Final = tuple(field.name for field in fields(Circuit) if field.name != "topic")


class DynamoCircuits:
    """Circuits and traffic in `table`; DynamoDB deletes old traffic sometime, nobody looks at it before."""

    def __init__(self, client: DynamoDBClient, table: str, patience: Patience | None = None) -> None:
        self._dynamo = Dynamo(client, patience)
        self._table = table

    def record(self, topic: str, minute: int, received: int, failed: int) -> None:
        """Add to a topic's messages of a minute; the write itself adds, so that none of many at once is lost."""
        ends = minute * 60 + int(TRAFFIC_KEPT.total_seconds())
        values = attributes({":received": received, ":failed": failed, ":expires_at": ends})
        self._dynamo.do(
            self._table,
            lambda client: client.update_item(
                TableName=self._table,
                Key=attributes({"topic_name": topic, "item": f"{_MINUTE}{minute}"}),
                UpdateExpression="ADD received :received, failed :failed SET expires_at = :expires_at",
                ExpressionAttributeValues=values,
            ),
        )

    def seen(self, topic: str, first_minute: int) -> Seen:
        """A topic's circuit, a closed one if there is none yet, and its traffic from a minute on."""
        found = {item["item"]: item for item in self._items(topic, f"{_MINUTE}{first_minute}")}
        state = found.pop(_STATE, None)
        minutes = {
            int(key.removeprefix(_MINUTE)): (item["received"], item["failed"])
            for key, item in found.items()
            if key.startswith(_MINUTE)
        }
        return Seen(_circuit(topic, state) if state else Circuit(topic), minutes)

    def save(self, circuit: Circuit) -> Circuit | None:
        """Write a circuit in the place of its own revision; None, and nothing is written, if another was faster."""
        saved = replace(circuit, revision=circuit.revision + 1)
        try:
            self._dynamo.do(
                self._table,
                lambda client: client.put_item(
                    TableName=self._table,
                    Item=_item(saved),
                    ConditionExpression="attribute_not_exists(revision) OR revision = :seen",
                    ExpressionAttributeValues=attributes({":seen": circuit.revision}),
                ),
            )
        except ConditionFailedError:
            return None
        return saved

    def _items(self, topic: str, first: str) -> list[dict[str, Any]]:
        """A topic's items from a key on. The read is consistent: what it says decides whether a queue is read."""
        asked: QueryInputTypeDef = {
            "TableName": self._table,
            "KeyConditionExpression": "topic_name = :topic AND #item >= :first",
            "ExpressionAttributeNames": {"#item": "item"},
            "ExpressionAttributeValues": attributes({":topic": topic, ":first": first}),
            "ConsistentRead": True,
        }
        items: list[dict[str, Any]] = []
        while True:
            answer = self._dynamo.do(self._table, lambda client: client.query(**asked))
            items += map(plain, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return items
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _item(circuit: Circuit) -> dict[str, AttributeValueTypeDef]:
    values: dict[str, Any] = {name: getattr(circuit, name) for name in _FIELDS}
    return attributes({"topic_name": circuit.topic, "item": _STATE, **values, "phase": str(circuit.phase)})


def _circuit(topic: str, item: dict[str, Any]) -> Circuit:
    values = {name: item[name] for name in _FIELDS if name in item}
    try:
        return Circuit(topic, **{**values, "phase": Phase(item["phase"])})
    except (KeyError, ValueError) as error:
        remedy = "Somebody else has written it: put it right, or delete the item."
        where = f"circuit of topic {topic!r}"
        raise TerminalError("it can't be read", where=where, found=str(error), remedy=remedy) from error
