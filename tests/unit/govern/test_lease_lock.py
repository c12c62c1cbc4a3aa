from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lean_ops.govern.lease_lock import LeaseLock
from lean_ops.model.errors import TransientError
from lean_ops.state.port import Lease
from lean_ops.state.sqlite import SqliteStateStore

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)


class Clock:
    """Time goes on while somebody waits."""

    def __init__(self) -> None:
        self.now = NOW
        self.waits: list[float] = []

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStateStore:
    return SqliteStateStore(tmp_path / "state.db", 10, lambda _: False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_lock_is_given_back_however_the_block_ends(store: SqliteStateStore, clock: Clock) -> None:
    lock = LeaseLock(store, clock, sleep=clock.sleep)
    with lock("events"):
        pass
    with pytest.raises(ValueError, match="x"), lock("events"):
        raise ValueError("x")
    with lock("events"):
        assert clock.waits == []


def test_topics_have_locks_of_their_own_and_runners_go_on(store: SqliteStateStore, clock: Clock) -> None:
    lock = LeaseLock(store, clock, sleep=clock.sleep)
    with lock("events"), lock("orders"):
        assert isinstance(store.acquire("events", "a runner", NOW), Lease)
    assert clock.waits == []


def test_whoever_waits_gets_it_once_a_dead_holders_lease_has_expired(store: SqliteStateStore, clock: Clock) -> None:
    store.acquire("schema:events", "dead", NOW)
    with LeaseLock(store, clock, sleep=clock.sleep, patience=30)("events"):
        assert 10 <= sum(clock.waits) < 11


def test_waiting_has_an_end_that_names_the_holder(store: SqliteStateStore, clock: Clock) -> None:
    store.acquire("schema:events", "somebody", NOW)
    with (
        pytest.raises(TransientError, match="somebody"),
        LeaseLock(store, clock, sleep=clock.sleep, patience=5)("events"),
    ):
        pytest.fail("the lock is held")
    assert 5 <= sum(clock.waits) <= 6
