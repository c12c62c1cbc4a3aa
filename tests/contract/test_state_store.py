"""What every state store promises of checkpoints and leases; each test runs against each store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from threading import Barrier

import pytest
from tests.contract import bench as bench_script
from tests.contract.bench import BATCH, BIG, END, INTENT, LEASE_TIME, NOW, PIPELINE, TICK, Bench, taken

from lean_ops.model.batch import Counts, Intent, Zone
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Checkpoint, Held, Lease, StateStore

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


def test_nothing_is_known_to_be_settled_at_first(store: StateStore) -> None:
    assert store.settled_up_to("events") is None


def test_what_is_settled_is_remembered_for_each_topic_and_replaced(bench: Bench, store: StateStore) -> None:
    store.settle_up_to("events", 2**62)
    store.settle_up_to("orders", 1)
    store.settle_up_to("orders", 7)

    assert (store.settled_up_to("events"), store.settled_up_to("orders")) == (2**62, 7)
    assert bench.open().settled_up_to("orders") == 7


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
    assert store.checkpoints() or isinstance(store.acquire("events", "bob", END), Held)


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
            [sys.executable, bench_script.__file__, bench.kind, bench.address, owner],
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
