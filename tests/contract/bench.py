"""The stores under test, each at an address of its own.

As a script (`python bench.py KIND ADDRESS OWNER`) it races for the leases whose names come on stdin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.state.port import Lease, StateStore
from lean_ops.state.sqlite import SqliteStateStore

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
LEASE_TIME = timedelta(seconds=300)
END = NOW + LEASE_TIME
TICK = timedelta(microseconds=1)
PIPELINE = "standardization_events"
BIG = 2**63 - 1
BATCH = Batch("events", Zone.STANDARDIZED, 11, BIG, "1.0.0")
INTENT = Intent(BATCH, ("/a", "/b~1c/'\"`"), NOW.isoformat())

IsGone = Callable[[str], bool]


def open_store(kind: str, address: str, is_gone: IsGone) -> StateStore:
    """A handle of its own on the store at an address."""
    stores: dict[str, Callable[[], StateStore]] = {
        "sqlite": lambda: SqliteStateStore(Path(address), int(LEASE_TIME.total_seconds()), is_gone)
    }
    return stores[kind]()


@dataclass
class Bench:
    """A store under test: where it is, and the owners whose processes have ended."""

    kind: str
    address: str
    gone: set[str] = field(default_factory=set)

    def open(self) -> StateStore:
        return open_store(self.kind, self.address, self.gone.__contains__)


def taken(store: StateStore, topic: str = "events", owner: str = "ann", now: datetime = NOW) -> Lease:
    """A lease that must be free."""
    lease = store.acquire(topic, owner, now)
    assert isinstance(lease, Lease)
    return lease


def race_on_command(kind: str, address: str, owner: str) -> None:
    """Take the lease of each topic named on stdin, and say how it went."""
    store = open_store(kind, address, lambda _: False)
    print("ready", flush=True)
    for line in sys.stdin:
        lease = store.acquire(line.strip(), owner, NOW)
        print("won" if isinstance(lease, Lease) else f"held by {lease.by.owner}", flush=True)


if __name__ == "__main__":
    race_on_command(*sys.argv[1:])
