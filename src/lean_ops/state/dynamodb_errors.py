"""The index of dead letters, in DynamoDB."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lean_ops.state.dynamodb_calls import ConditionFailedError, Dynamo
from lean_ops.state.dynamodb_items import attributes, error_of, of_error
from lean_ops.state.dynamodb_tables import ERRORS_BY_TOPIC
from lean_ops.state.port import ERRORS_KEPT
from lean_ops.state.rules import errors_since, utc_text

if TYPE_CHECKING:
    from datetime import datetime

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryOutputTypeDef

    from lean_ops.state.dynamodb_calls import Patience
    from lean_ops.state.port import TrackedError


class DynamoErrorTracker:
    """Errors in `table`; DynamoDB deletes those past their days sometime, until then they are left out."""

    def __init__(self, client: DynamoDBClient, table: str, patience: Patience | None = None) -> None:
        self._dynamo = Dynamo(client, patience)
        self._table = table

    def put(self, error: TrackedError) -> bool:
        """Book an error; False, and nothing changes, if its id is known already."""
        booked = of_error(error, math.ceil((error.recorded_at + ERRORS_KEPT).timestamp()))
        values = attributes({":since": errors_since(error.recorded_at)})
        try:
            self._dynamo.do(
                self._table,
                lambda client: client.put_item(
                    TableName=self._table,
                    Item=booked,
                    ConditionExpression="attribute_not_exists(error_id) OR recorded_at <= :since",
                    ExpressionAttributeValues=values,
                ),
            )
        except ConditionFailedError:
            return False
        return True

    def mark(self, error_id: str, status: str, now: datetime) -> bool:
        """Change an error's status; False if nobody knows it."""
        values = attributes({":status": status, ":since": errors_since(now)})
        try:
            self._dynamo.do(
                self._table,
                lambda client: client.update_item(
                    TableName=self._table,
                    Key=attributes({"error_id": error_id}),
                    UpdateExpression="SET #status = :status",
                    ConditionExpression="recorded_at > :since",
                    ExpressionAttributeNames={"#status": "status"},
                    ExpressionAttributeValues=values,
                ),
            )
        except ConditionFailedError:
            return False
        return True

    def get(self, error_id: str, now: datetime) -> TrackedError | None:
        """What is known of an error."""
        answer = self._dynamo.do(
            self._table,
            lambda client: client.get_item(
                TableName=self._table, Key=attributes({"error_id": error_id}), ConsistentRead=True
            ),
        )
        error = error_of(answer["Item"]) if "Item" in answer else None
        return error if error and utc_text(error.recorded_at) > errors_since(now) else None

    def newest(self, topic: str, now: datetime, limit: int = 100) -> list[TrackedError]:
        """A topic's errors, newest first, at most `limit`; what was booked a moment ago may be missing."""
        errors: list[TrackedError] = []
        start: dict[str, Any] = {}
        while len(errors) < limit:
            page = self._page(topic, now, limit - len(errors), start)
            errors += map(error_of, page["Items"])
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
        return errors

    def _page(self, topic: str, now: datetime, limit: int, start: dict[str, Any]) -> QueryOutputTypeDef:
        values = attributes({":topic": topic, ":since": errors_since(now)})
        return self._dynamo.do(
            self._table,
            lambda client: client.query(
                TableName=self._table,
                IndexName=ERRORS_BY_TOPIC,
                KeyConditionExpression="topic_name = :topic AND recorded_at > :since",
                ExpressionAttributeValues=values,
                ScanIndexForward=False,
                Limit=limit,
                **start,
            ),
        )
