"""The stores under test, each at an address of its own.

As a script (`python bench.py KIND ADDRESS OWNER THREADS`) it races for leases: for each line on stdin, a topic and the
time, all of its threads try at once, and one line says what each of them got.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.state.dynamodb import DynamoStateStore
from lean_ops.state.dynamodb_calls import Patience
from lean_ops.state.dynamodb_deliveries import DynamoDeliveries
from lean_ops.state.dynamodb_errors import DynamoErrorTracker
from lean_ops.state.dynamodb_tables import DynamoTables
from lean_ops.state.port import Deliveries, ErrorTracker, Lease, StateStore
from lean_ops.state.sqlite import SqliteStateStore
from lean_ops.state.sqlite_deliveries import SqliteDeliveries
from lean_ops.state.sqlite_errors import SqliteErrorTracker

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
# For what servers delete by the clock on their wall: days that no wall has seen.
AHEAD = datetime(2096, 2, 3, 10, 15, 30, tzinfo=UTC)
LEASE_TIME = timedelta(seconds=300)
END = NOW + LEASE_TIME
TICK = timedelta(microseconds=1)
PIPELINE = "standardization_events"
BIG = 2**63 - 1
BATCH = Batch("events", Zone.STANDARDIZED, 11, BIG, "1.0.0")
INTENT = Intent(BATCH, ("/a", "/b~1c/'\"`"), NOW.isoformat())

IsGone = Callable[[str], bool]


@dataclass(frozen=True)
class Racer:
    """What one of the threads of a race got: its own lease, or the name and fence of who has it."""

    won: bool
    owner: str
    fence: int


@dataclass
class Bench:
    """A store under test: where it is, and the owners whose processes have ended."""

    kind: str
    address: str
    gone: set[str] = field(default_factory=set)

    @property
    def sees_processes(self) -> bool:
        """Whether the store can tell that a lease's process is gone; a store that many machines share can't."""
        return self.kind == "sqlite"

    @property
    def tables(self) -> DynamoTables:
        return DynamoTables.of("bench", self.address)

    def open(self) -> StateStore:
        """A handle of its own."""
        seconds = int(LEASE_TIME.total_seconds())
        if self.kind == "sqlite":
            return SqliteStateStore(Path(self.address), seconds, self.gone.__contains__)
        patience = Patience(seconds=60)  # the machine may be busy with something else
        return DynamoStateStore(dynamodb_client(), self.tables, seconds, patience)

    def deliveries(self) -> Deliveries:
        if self.kind == "sqlite":
            return SqliteDeliveries(Path(self.address))
        return DynamoDeliveries(dynamodb_client(), self.tables.idempotency_keys)

    def errors(self) -> ErrorTracker:
        if self.kind == "sqlite":
            return SqliteErrorTracker(Path(self.address))
        return DynamoErrorTracker(dynamodb_client(), self.tables.error_tracker)


def dynamodb_client() -> DynamoDBClient:
    """A client of the server that the environment names."""
    return _client_of(os.environ["AWS_ENDPOINT_URL_DYNAMODB"])


@lru_cache
def _client_of(url: str) -> DynamoDBClient:
    import boto3
    from botocore.config import Config

    config = Config(max_pool_connections=64, connect_timeout=10, read_timeout=60)
    return boto3.client("dynamodb", endpoint_url=url, config=config)


def empty(client: DynamoDBClient, table: str) -> None:
    """Delete every item of a table."""
    keys = [key["AttributeName"] for key in client.describe_table(TableName=table)["Table"]["KeySchema"]]
    items = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True).search("Items[]")
    deletes: list[Any] = [{"DeleteRequest": {"Key": {key: item[key] for key in keys}}} for item in items]
    for start in range(0, len(deletes), 25):
        left = client.batch_write_item(RequestItems={table: deletes[start : start + 25]})
        assert not left["UnprocessedItems"]


def taken(store: StateStore, topic: str = "events", owner: str = "ann", now: datetime = NOW) -> Lease:
    """A lease that must be free."""
    lease = store.acquire(topic, owner, now)
    assert isinstance(lease, Lease)
    return lease


def race_on_command(kind: str, address: str, owner: str, threads: int) -> None:
    """Race for what stdin names, and say on stdout how it went."""
    store, start = Bench(kind, address).open(), Barrier(threads)

    def try_once(number: int, topic: str, now: str) -> Racer:
        start.wait(60)
        answer = store.acquire(topic, f"{owner}-{number}", datetime.fromisoformat(now))
        lease = answer if isinstance(answer, Lease) else answer.by
        return Racer(isinstance(answer, Lease), lease.owner, lease.fence)

    print("ready", flush=True)
    with ThreadPoolExecutor(threads) as pool:
        for line in sys.stdin:
            topic, now = line.split()
            got = pool.map(lambda number, topic=topic, now=now: try_once(number, topic, now), range(threads))
            print(json.dumps([vars(racer) for racer in got]), flush=True)


if __name__ == "__main__":
    race_on_command(*sys.argv[1:4], int(sys.argv[4]))
