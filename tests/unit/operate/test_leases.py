from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lean_ops.operate.leases import LeaseKeeper
from lean_ops.state.port import Held, Lease, LeaseStore
from lean_ops.state.sqlite import SqliteStateStore

OFTEN = 0.01


def now() -> datetime:
    return datetime.now(UTC)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStateStore:
    """Leases that outlast any pause of a busy machine."""
    return SqliteStateStore(tmp_path / "state.db", 60, lambda _: False)


def keeper_of(store: LeaseStore, renew_every: float = OFTEN) -> LeaseKeeper:
    return LeaseKeeper(store, "ann", now, renew_every)


def end_of(store: SqliteStateStore, lease: Lease) -> datetime:
    """When the lease ends as another sees it, asking while it is surely held."""
    seen = store.acquire(lease.topic, "bob", lease.expires_at - timedelta(seconds=1))
    assert isinstance(seen, Held)
    return seen.by.expires_at


def keepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lease-keeper"]


def test_leases_are_renewed_while_their_topics_are_worked_on(store: SqliteStateStore) -> None:
    with keeper_of(store).running() as keeper, keeper.lease("events") as first, keeper.lease("orders") as second:
        assert isinstance(first, Lease)
        assert isinstance(second, Lease)
        for lease in (first, second):
            wait_until(lambda lease=lease: end_of(store, lease) > lease.expires_at)
            renewed = end_of(store, lease)
            wait_until(lambda lease=lease, renewed=renewed: end_of(store, lease) > renewed)
    assert keepers() == []


def test_without_the_keeper_running_nothing_is_renewed(store: SqliteStateStore) -> None:
    keeper = keeper_of(store)
    with keeper.lease("events") as lease:
        assert isinstance(lease, Lease)
        assert end_of(store, lease) == lease.expires_at
        assert isinstance(store.acquire("events", "bob", lease.expires_at), Lease)


def test_a_lease_is_free_after_its_block_even_if_the_work_failed(store: SqliteStateStore) -> None:
    with keeper_of(store).running() as keeper:
        with pytest.raises(ZeroDivisionError), keeper.lease("events"):
            raise ZeroDivisionError
        assert isinstance(store.acquire("events", "bob", now()), Lease)
    assert keepers() == []


def test_a_lease_that_another_holds_is_told_and_left_to_him(store: SqliteStateStore) -> None:
    theirs = store.acquire("events", "bob", now() + timedelta(hours=1))
    assert isinstance(theirs, Lease)
    with keeper_of(store).running() as keeper, keeper.lease("events") as held:
        assert held == Held(theirs)
    assert store.acquire("events", "cy", now()) == Held(theirs)


def test_a_lost_lease_is_logged_and_the_others_are_renewed_all_the_same(store: SqliteStateStore) -> None:
    with (
        capture_logs() as logs,
        keeper_of(store).running() as keeper,
        keeper.lease("events") as lost,
        keeper.lease("orders") as kept,
    ):
        assert isinstance(lost, Lease)
        assert isinstance(kept, Lease)
        taken = store.acquire("events", "bob", now() + timedelta(hours=1))
        assert isinstance(taken, Lease)
        wait_until(lambda: [entry for entry in logs if entry["event"] == "lease lost"])
        seen = end_of(store, kept)
        wait_until(lambda: end_of(store, kept) > seen)
    assert {(entry["topic"], entry["log_level"]) for entry in logs} == {("events", "warning")}
    assert "fence 1 of ann is no longer the current one" in logs[0]["reason"]
    assert store.acquire("events", "cy", now()) == Held(taken)


class Stumbling:
    """A store whose first renewals fail, as those of a busy or full disk do."""

    def __init__(self, store: SqliteStateStore, failures: int) -> None:
        self.store = store
        self.failures = failures
        self.acquire, self.release = store.acquire, store.release

    def renew(self, lease: Lease, now: datetime) -> Lease:
        if self.failures:
            self.failures -= 1
            raise sqlite3.OperationalError("disk I/O error")
        return self.store.renew(lease, now)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_renewal_that_fails_for_another_reason_is_logged_and_tried_again(store: SqliteStateStore) -> None:
    stumbling = Stumbling(store, failures=2)
    with capture_logs() as logs, keeper_of(stumbling).running() as keeper, keeper.lease("events") as lease:
        assert isinstance(lease, Lease)
        wait_until(lambda: not keepers() or end_of(store, lease) > lease.expires_at)
        assert end_of(store, lease) > lease.expires_at
    assert "disk I/O error" in str(logs)
