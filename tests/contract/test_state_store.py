"""What every state store promises; each test runs against each store.

As a script (`python test_state_store.py KIND ADDRESS OWNER`) it races for the leases whose names come on stdin.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Barrier
from typing import cast

import pytest

from lean_ops.model.batch import Batch, Counts, Intent, Zone
from lean_ops.model.errors import WrongUseError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Checkpoint, Held, Lease, StateStore
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


@pytest.fixture(params=["sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(request.param, str(tmp_path / "home" / "state.db"))


@pytest.fixture
def store(bench: Bench) -> StateStore:
    return bench.open()


def taken(store: StateStore, topic: str = "events", owner: str = "ann", now: datetime = NOW) -> Lease:
    """A lease that must be free."""
    lease = store.acquire(topic, owner, now)
    assert isinstance(lease, Lease)
    return lease


# checkpoints


def test_a_hop_that_never_ran_has_an_empty_checkpoint(store: StateStore) -> None:
    assert store.checkpoint(PIPELINE) == Checkpoint(PIPELINE)
    assert store.checkpoints() == {}


@pytest.mark.parametrize(
    "intent",
    [
        INTENT,
        replace(INTENT, batch=replace(BATCH, from_snapshot=None), declared=()),
        replace(INTENT, counts=Counts(9, 1, 2, 3, 2, 1), last_ingestion_ts=1_770_000_000),
        replace(INTENT, batch=replace(BATCH, zone=Zone.CURATED, schema_version="ü'; DROP TABLE checkpoints;--")),
    ],
    ids=["plain", "first batch", "balanced", "other zone"],
)
def test_an_intent_comes_back_as_it_was_stored(bench: Bench, store: StateStore, intent: Intent) -> None:
    store.save_intent(intent, taken(store), NOW)
    pipeline = intent.batch.pipeline_id
    stored = Checkpoint(pipeline, intent=intent, updated_at=NOW.isoformat())
    for reader in (store, bench.open()):
        assert reader.checkpoint(pipeline) == stored
        assert reader.checkpoints() == {pipeline: stored}
        assert reader.checkpoint(pipeline).intent == intent


def test_closing_a_batch_moves_the_checkpoint_and_forgets_intent_and_failures(store: StateStore) -> None:
    lease = taken(store)
    store.save_intent(INTENT, lease, NOW)
    store.count_failure(PIPELINE, lease, NOW)
    later = NOW + timedelta(seconds=5)
    store.close_batch(replace(INTENT, last_ingestion_ts=77), lease, later)
    assert store.checkpoint(PIPELINE) == Checkpoint(PIPELINE, BIG, 77, None, 0, later.isoformat())


def test_a_batch_can_be_closed_without_a_stored_intent(store: StateStore) -> None:
    store.close_batch(INTENT, taken(store), NOW)
    assert store.checkpoint(PIPELINE) == Checkpoint(PIPELINE, BIG, None, None, 0, NOW.isoformat())


def test_a_batch_without_rows_keeps_the_last_ingestion_time(store: StateStore) -> None:
    lease = taken(store)
    store.close_batch(replace(INTENT, last_ingestion_ts=77), lease, NOW)
    store.close_batch(replace(INTENT, batch=replace(BATCH, from_snapshot=BIG, to_snapshot=12)), lease, NOW)
    checkpoint = store.checkpoint(PIPELINE)
    assert (checkpoint.last_snapshot_id, checkpoint.last_ingestion_ts) == (12, 77)


def test_a_new_intent_leaves_how_far_the_hop_has_read_and_its_failures(store: StateStore) -> None:
    lease = taken(store)
    store.close_batch(replace(INTENT, last_ingestion_ts=77), lease, NOW)
    store.count_failure(PIPELINE, lease, NOW)
    store.save_intent(INTENT, lease, NOW)
    assert store.checkpoint(PIPELINE) == Checkpoint(PIPELINE, BIG, 77, INTENT, 1, NOW.isoformat())


def test_failures_in_a_row_are_counted_and_leave_the_intent(store: StateStore) -> None:
    lease = taken(store)
    assert store.count_failure(PIPELINE, lease, NOW) == 1
    store.save_intent(INTENT, lease, NOW)
    assert [store.count_failure(PIPELINE, lease, NOW) for _ in range(2)] == [2, 3]
    assert store.checkpoint(PIPELINE) == Checkpoint(PIPELINE, None, None, INTENT, 3, NOW.isoformat())
    store.close_batch(INTENT, lease, NOW)
    assert store.count_failure(PIPELINE, lease, NOW) == 1


def test_hops_of_one_topic_have_checkpoints_of_their_own(store: StateStore) -> None:
    lease = taken(store)
    store.save_intent(INTENT, lease, NOW)
    store.close_batch(replace(INTENT, batch=replace(BATCH, zone=Zone.CURATED)), lease, NOW)
    assert set(store.checkpoints()) == {PIPELINE, "curated_events"}
    assert store.checkpoint(PIPELINE).intent == INTENT
    assert store.checkpoint("curated_events").last_snapshot_id == BIG


# leases


def test_a_free_lease_is_taken_until_its_time_is_over(store: StateStore) -> None:
    assert store.acquire("events", "ann", NOW) == Lease("events", "ann", 1, END)


def test_a_held_lease_names_its_holder(bench: Bench, store: StateStore) -> None:
    lease = taken(store)
    for asking in ("bob", "ann"):
        assert bench.open().acquire("events", asking, NOW) == Held(lease)


def test_each_topic_has_a_lease_of_its_own(store: StateStore) -> None:
    assert taken(store, "events").fence == taken(store, "orders").fence == 1


def test_a_lease_is_held_until_just_before_its_end_and_free_at_it(store: StateStore) -> None:
    lease = taken(store)
    assert store.acquire("events", "bob", END - TICK) == Held(lease)
    assert store.acquire("events", "bob", END) == Lease("events", "bob", 2, END + LEASE_TIME)


def test_a_lease_whose_process_is_gone_is_taken_over_at_once(bench: Bench, store: StateStore) -> None:
    taken(store)
    bench.gone.add("ann")
    assert taken(store, owner="bob").fence == 2


def test_renewing_moves_the_end(store: StateStore) -> None:
    later = NOW + timedelta(seconds=100)
    lease = taken(store)
    renewed = store.renew(lease, later)
    assert renewed == replace(lease, expires_at=later + LEASE_TIME)
    assert store.acquire("events", "bob", END) == Held(renewed)
    assert store.renew(lease, END) == replace(lease, expires_at=END + LEASE_TIME)


def test_releasing_frees_the_lease_and_may_be_repeated(store: StateStore) -> None:
    lease = taken(store)
    store.release(lease)
    store.release(lease)
    second = taken(store, owner="bob")
    store.release(lease)
    assert store.acquire("events", "cy", NOW) == Held(second)


def test_releasing_what_was_never_taken_does_nothing(store: StateStore) -> None:
    store.release(Lease("events", "ann", 1, END))
    assert taken(store).fence == 1


def test_the_fence_rises_with_every_new_holder_however_the_last_one_left(bench: Bench, store: StateStore) -> None:
    fences = []
    lease = taken(store)
    fences.append(lease.fence)
    store.release(lease)
    fences.append(taken(store).fence)
    fences.append(taken(store, owner="bob", now=END).fence)
    bench.gone.add("bob")
    fences.append(taken(bench.open(), owner="cy", now=END).fence)
    assert fences == [1, 2, 3, 4]


def expired(_: Bench, store: StateStore) -> tuple[Lease, datetime]:
    return taken(store), END


def long_expired(_: Bench, store: StateStore) -> tuple[Lease, datetime]:
    return taken(store), END + timedelta(days=400)


def taken_by_another(_: Bench, store: StateStore) -> tuple[Lease, datetime]:
    lease = taken(store)
    taken(store, owner="bob", now=END)
    return lease, NOW


def taken_again_by_the_same_owner(_: Bench, store: StateStore) -> tuple[Lease, datetime]:
    lease = taken(store)
    taken(store, now=END)
    return lease, NOW


def taken_because_the_process_seemed_gone(bench: Bench, store: StateStore) -> tuple[Lease, datetime]:
    lease = taken(store)
    bench.gone.add("ann")
    taken(store, owner="bob")
    return lease, NOW


def released(_: Bench, store: StateStore) -> tuple[Lease, datetime]:
    lease = taken(store)
    store.release(lease)
    return lease, NOW


def of_another_topic(_: Bench, store: StateStore) -> tuple[Lease, datetime]:
    return replace(taken(store), topic="orders"), NOW


def with_another_fence(_: Bench, store: StateStore) -> tuple[Lease, datetime]:
    return replace(taken(store), fence=2), NOW


def never_taken(_: Bench, __: StateStore) -> tuple[Lease, datetime]:
    return Lease("events", "ann", 1, END), NOW


LOST = [
    expired,
    long_expired,
    taken_by_another,
    taken_again_by_the_same_owner,
    taken_because_the_process_seemed_gone,
    released,
    of_another_topic,
    with_another_fence,
    never_taken,
]
WRITES: dict[str, Callable[[StateStore, Lease, datetime], object]] = {
    "save_intent": lambda store, lease, now: store.save_intent(INTENT, lease, now),
    "close_batch": lambda store, lease, now: store.close_batch(INTENT, lease, now),
    "count_failure": lambda store, lease, now: store.count_failure(PIPELINE, lease, now),
    "renew": lambda store, lease, now: store.renew(lease, now),
}


@pytest.mark.parametrize("lose", LOST)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_without_the_current_lease_is_refused_and_changes_nothing(
    bench: Bench,
    store: StateStore,
    write: str,
    lose: Callable[[Bench, StateStore], tuple[Lease, datetime]],
) -> None:
    lease, now = lose(bench, store)
    with pytest.raises(LostLeaseError) as refused:
        WRITES[write](store, lease, now)
    assert refused.value.lease == lease
    assert store.checkpoints() == {}
    assert isinstance(bench.open().acquire("orders", "cy", NOW), Lease)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_taken_until_just_before_the_leases_end(store: StateStore, write: str) -> None:
    lease = taken(store)
    WRITES[write](store, lease, END - TICK)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("hours", [-11, 14])
def test_a_clock_of_another_time_zone_tells_the_same_time(store: StateStore, write: str, hours: float) -> None:
    zone = timezone(timedelta(hours=hours))
    there = taken(store, "there", now=NOW.astimezone(zone))
    assert there.expires_at == END
    assert store.acquire("there", "bob", END - TICK) == Held(there)
    lease = taken(store)
    WRITES[write](store, lease, (END - TICK).astimezone(zone))
    with pytest.raises(LostLeaseError):
        WRITES[write](store, there, END)
    with pytest.raises(LostLeaseError):
        WRITES[write](store, lease, (END + LEASE_TIME).astimezone(zone))


# races


def test_of_many_threads_exactly_one_gets_the_lease_each_time(bench: Bench) -> None:
    threads, rounds = 12, 15
    store, start = bench.open(), Barrier(threads)

    def race(number: int) -> list[Lease | Held]:
        got = []
        for turn in range(rounds):
            start.wait(30)
            got.append(store.acquire(f"topic_{turn}", f"thread-{number}", NOW))
        return got

    with ThreadPoolExecutor(threads) as pool:
        by_thread = list(pool.map(race, range(threads)))
    for answers in zip(*by_thread, strict=True):
        [winner] = [answer for answer in answers if isinstance(answer, Lease)]
        assert [answer for answer in answers if isinstance(answer, Held)] == [Held(winner)] * (threads - 1)


def test_of_many_threads_exactly_one_takes_over_what_is_free_again(bench: Bench) -> None:
    threads, rounds = 8, 10
    store, start = bench.open(), Barrier(threads)
    taken(store)

    def race(number: int) -> list[int]:
        fences = []
        for turn in range(rounds):
            start.wait(30)
            lease = store.acquire("events", f"thread-{number}", NOW + (turn + 1) * LEASE_TIME)
            fences += [lease.fence] if isinstance(lease, Lease) else []
        return fences

    with ThreadPoolExecutor(threads) as pool:
        won = [fence for fences in pool.map(race, range(threads)) for fence in fences]
    assert sorted(won) == list(range(2, rounds + 2))


@pytest.fixture
def racers(bench: Bench) -> Iterator[list[subprocess.Popen[str]]]:
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, bench.kind, bench.address, owner],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for owner in ("one", "two")
    ]
    yield processes
    for process in processes:
        process.communicate(timeout=30)
        assert process.returncode == 0


def test_of_two_processes_exactly_one_gets_the_lease_each_time(racers: list[subprocess.Popen[str]]) -> None:
    def everyone_says() -> list[str]:
        return [process.stdout.readline().strip() for process in racers if process.stdout]

    assert everyone_says() == ["ready", "ready"]
    for turn in range(20):
        for process in racers:
            assert process.stdin
            process.stdin.write(f"topic_{turn}\n")
            process.stdin.flush()
        answers = everyone_says()
        assert answers in (["won", "held by one"], ["held by two", "won"])


def race_on_command(kind: str, address: str, owner: str) -> None:
    """Take the lease of each topic named on stdin, and say how it went."""
    store = open_store(kind, address, lambda _: False)
    print("ready", flush=True)
    for line in sys.stdin:
        lease = store.acquire(line.strip(), owner, NOW)
        print("won" if isinstance(lease, Lease) else f"held by {lease.by.owner}", flush=True)


# registry


ITEM = RegistryItem(
    "events",
    Status.READY,
    Flow.PAUSED,
    "the night's \"work\"; it's ü",
    "1.2.0",
    "schemas/events/active/schema.json",
    "schemas/events/failed/error.json",
    "line 1\nline 2",
    "My-Events",
    NOW.isoformat(),
)


def test_an_unknown_topic_has_no_item(store: StateStore) -> None:
    assert store.item("events") is None
    assert store.items() == {}


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("flow", Flow)
def test_an_item_comes_back_as_it_was_stored(bench: Bench, store: StateStore, status: Status, flow: Flow) -> None:
    item = replace(ITEM, status=status, flow=flow)
    assert store.update_item("events", lambda _: item) == item
    for reader in (store, bench.open()):
        assert reader.item("events") == item
        assert reader.items() == {"events": item}


def test_an_update_gets_what_is_there_or_a_new_item(store: StateStore) -> None:
    seen: list[RegistryItem] = []

    def change(item: RegistryItem) -> RegistryItem:
        seen.append(item)
        return replace(item, schema_version="1.0.0")

    first = store.update_item("events", change)
    store.update_item("events", change)
    assert seen == [RegistryItem("events"), first]


def test_items_come_by_name_in_order(store: StateStore) -> None:
    for topic in ("orders", "a_b", "events"):
        store.update_item(topic, lambda item: item)
    assert list(store.items()) == ["a_b", "events", "orders"]


def test_a_change_that_fails_changes_nothing_and_blocks_nobody(bench: Bench, store: StateStore) -> None:
    store.update_item("events", lambda _: ITEM)

    def change(_: RegistryItem) -> RegistryItem:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.update_item("events", change)
    assert store.item("events") == ITEM
    assert bench.open().update_item("orders", lambda item: item) == RegistryItem("orders")
    assert store.update_item("events", lambda item: item) == ITEM


def test_no_update_of_eight_threads_is_lost(bench: Bench) -> None:
    store, start = bench.open(), Barrier(8)

    def add(item: RegistryItem) -> RegistryItem:
        return replace(item, schema_version=str(int(item.schema_version or 0) + 1))

    def work(_: int) -> None:
        start.wait(30)
        for _ in range(10):
            store.update_item("events", add)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    item = store.item("events")
    assert item is not None
    assert item.schema_version == "80"


def test_a_claimed_name_is_kept_and_may_be_claimed_again(store: StateStore) -> None:
    store.claim_name("my_events", "My-Events", NOW)
    claimed = RegistryItem("my_events", source_name="My-Events", updated_at=NOW.isoformat())
    assert store.item("my_events") == claimed
    store.claim_name("my_events", "My-Events", END)
    assert store.item("my_events") == claimed


def test_a_second_source_name_for_one_topic_is_wrong_use(store: StateStore) -> None:
    store.claim_name("my_events", "My-Events", NOW)
    with pytest.raises(WrongUseError, match="'My-Events' both become topic 'my_events'") as refused:
        store.claim_name("my_events", "my.events", NOW)
    assert refused.value.where == "topic 'my.events'"
    item = store.item("my_events")
    assert item is not None
    assert item.source_name == "My-Events"


def test_the_topics_own_name_goes_with_any_source_name(store: StateStore) -> None:
    store.claim_name("my_events", "my_events", NOW)
    store.claim_name("my_events", "My-Events", NOW)
    store.claim_name("my_events", "my_events", NOW)
    item = store.item("my_events")
    assert item is not None
    assert item.source_name == "My-Events"
    with pytest.raises(WrongUseError):
        store.claim_name("my_events", "my.events", NOW)


def test_claiming_a_name_leaves_the_rest_of_the_item(store: StateStore) -> None:
    store.update_item("events", lambda _: replace(ITEM, source_name=None))
    store.claim_name("events", "My-Events", END)
    assert store.item("events") == replace(ITEM, updated_at=END.isoformat())


def test_of_many_threads_with_different_names_exactly_one_claims_the_topic(bench: Bench) -> None:
    names = ["A-B", "a-B", "A-b", "a-b", "A.B", "a.B", "A.b", "a.b"]
    store, start = bench.open(), Barrier(len(names))

    def claims(name: str) -> bool:
        start.wait(30)
        try:
            store.claim_name("a_b", name, NOW)
        except WrongUseError:
            return False
        return True

    with ThreadPoolExecutor(len(names)) as pool:
        claimed = [name for name, won in zip(names, pool.map(claims, names), strict=True) if won]
    item = store.item("a_b")
    assert item is not None
    assert claimed == [item.source_name]


# the embedded store alone


def test_the_first_opening_waits_for_another_process_that_opens_too(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("CREATE TABLE being_made (x)")
    other.execute("BEGIN IMMEDIATE")
    store = cast("StateStore", SqliteStateStore(file, 300, lambda _: False))
    with ThreadPoolExecutor(1) as pool:
        items = pool.submit(store.items)
        wait([items], timeout=0.1)
        other.execute("COMMIT")
        other.close()
        assert items.result(30) == {}


if __name__ == "__main__":
    race_on_command(*sys.argv[1:])
