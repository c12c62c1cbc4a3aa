"""A DynamoDB that answers what a test says, and a patience that costs no time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.stub import Stubber

from lean_ops.state.dynamodb_calls import Patience
from lean_ops.state.dynamodb_tables import DynamoTables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_EVERY_CALL = "before-parameter-build.dynamodb.*"
TABLES = DynamoTables.of("lean-ops", "dev")


@dataclass
class Watch:
    """Time that passes only by sleeping."""

    time: float = 0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def patience(self, seconds: float = 10) -> Patience:
        return Patience(seconds, sleep=self.sleep, elapsed=lambda: self.time, share=lambda: 1.0)


@dataclass
class Script:
    """What DynamoDB will answer, and what it was asked."""

    client: DynamoDBClient
    stubber: Stubber
    asked: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, operation: str, code: str, times: int = 1, status: int = 400, **fields: Any) -> None:
        for _ in range(times):
            self.stubber.add_client_error(operation, code, f"{code} it is", status, modeled_fields=fields)

    def cancel(self, *codes: str, times: int = 1) -> None:
        reasons = [{"Code": code} for code in codes]
        self.refuse("transact_write_items", "TransactionCanceledException", times, CancellationReasons=reasons)

    def answer(self, operation: str, times: int = 1, **answer: Any) -> None:
        for _ in range(times):
            self.stubber.add_response(operation, answer)

    def refuse_for_ever(self, operation: str, code: str, **fields: Any) -> None:
        self.refuse(operation, code, times=100, **fields)


@contextmanager
def scripted() -> Iterator[Script]:
    """A client without a network; what the test did not foresee fails."""
    client = _client()
    script = Script(client, Stubber(client))

    def note(params: dict[str, Any], **_: object) -> None:
        script.asked.append(dict(params))

    client.meta.events.register_first(_EVERY_CALL, note)
    try:
        with script.stubber:
            yield script
    finally:
        client.meta.events.unregister(_EVERY_CALL, note)


@lru_cache(maxsize=1)
def _client() -> DynamoDBClient:
    session = boto3.Session("key", "secret", region_name="eu-central-1")
    return session.client("dynamodb", endpoint_url="http://127.0.0.1:1")
