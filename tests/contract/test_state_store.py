"""What every state store promises of checkpoints and leases; each test runs against each store."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from itertools import count
from random import Random
from threading import Barrier, Event

import pytest
from tests.contract import bench as bench_script
from tests.contract.bench import BATCH, BIG, END, INTENT, LEASE_TIME, NOW, PIPELINE, TICK, Bench, Racer, taken

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


def test_more_checkpoints_than_one_answer_holds_are_all_read(store: StateStore) -> None:
    """DynamoDB answers with 1 MB at most, and takes items up to 400 KB."""
    lease, random = taken(store), Random(7)  # noqa: S311  the same each time
    names = [f"topic_{number}" for number in range(12)]
    for name in names:
        declared = tuple(f"/{random.randbytes(60).hex()}" for _ in range(2000))  # 240 KB that can hardly be packed
        store.save_intent(replace(INTENT, batch=replace(BATCH, topic=name), declared=declared), lease, NOW)
    found = store.checkpoints()
    assert sorted(found) == sorted(f"standardization_{name}" for name in names)
    assert all(len(checkpoint.intent.declared) == 2000 for checkpoint in found.values() if checkpoint.intent)


# settlements


def test_nothing_is_known_to_be_settled_at_first(store: StateStore) -> None:
    assert store.settled_up_to("events") is None


def test_what_is_settled_is_remembered_for_each_topic_and_replaced(bench: Bench, store: StateStore) -> None:
    store.settle_up_to("events", 2**62)
    store.settle_up_to("orders", 1)
    store.settle_up_to("orders", 7)

    assert (store.settled_up_to("events"), store.settled_up_to("orders")) == (2**62, 7)
    assert bench.open().settled_up_to("orders") == 7


def test_what_is_settled_is_no_checkpoint(store: StateStore) -> None:
    store.settle_up_to("events", 7)
    assert store.checkpoints() == {}
    store.save_intent(INTENT, taken(store), NOW)
    store.settle_up_to("events", 8)
    assert set(store.checkpoints()) == {PIPELINE}
    assert store.checkpoint(PIPELINE).intent == INTENT


# rebuilds


def test_a_note_of_a_rebuild_is_kept_for_each_topic_replaced_and_forgotten(bench: Bench, store: StateStore) -> None:
    assert store.rebuild_note("events") is None
    store.note_rebuild("events", "{}")
    store.note_rebuild("orders", '{"é": "' + "x" * 50_000 + '"}')
    store.note_rebuild("events", '{"later": 1}')

    assert bench.open().rebuild_note("events") == '{"later": 1}'
    assert len(store.rebuild_note("orders") or "") == 50_009
    store.note_rebuild("events", None)
    assert (store.rebuild_note("events"), bench.open().rebuild_note("events")) == (None, None)
    store.note_rebuild("never", None)
    assert store.rebuild_note("never") is None
    assert store.checkpoints() == {}


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


def test_a_lease_whose_process_is_gone_is_free_at_once_where_that_can_be_seen_and_else_at_its_end(
    bench: Bench, store: StateStore
) -> None:
    lease = taken(store)
    bench.gone.add("ann")
    if not bench.sees_processes:
        assert store.acquire("events", "bob", END - TICK) == Held(lease)
    assert taken(store, owner="bob", now=NOW if bench.sees_processes else END).fence == 2


def test_renewing_moves_the_end(store: StateStore) -> None:
    later = NOW + timedelta(seconds=100)
    lease = taken(store)
    renewed = store.renew(lease, later)
    assert renewed == replace(lease, expires_at=later + LEASE_TIME)
    assert store.acquire("events", "bob", END) == Held(renewed)
    assert store.renew(lease, END) == replace(lease, expires_at=END + LEASE_TIME)


def test_confirming_a_lease_leaves_its_end_as_it_is(store: StateStore) -> None:
    lease = taken(store)
    store.confirm(lease, END - TICK)
    assert store.acquire("events", "bob", END - TICK) == Held(lease)
    assert taken(store, owner="bob", now=END).fence == 2


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
    fences.append(taken(bench.open(), owner="cy", now=END if bench.sees_processes else END + LEASE_TIME).fence)
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
    taken(store, owner="bob", now=NOW if bench.sees_processes else END)
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


USES = {**WRITES, "confirm": lambda store, lease, now: store.confirm(lease, now)}


@pytest.mark.parametrize("lose", LOST)
@pytest.mark.parametrize("use", USES)
def test_a_use_without_the_current_lease_is_refused_and_changes_nothing(
    bench: Bench,
    store: StateStore,
    use: str,
    lose: Callable[[Bench, StateStore], tuple[Lease, datetime]],
) -> None:
    lease, now = lose(bench, store)
    with pytest.raises(LostLeaseError) as refused:
        USES[use](store, lease, now)
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


PROCESSES, THREADS = 4, 16


class Race:
    """Processes that each try with many threads."""

    def __init__(self, bench: Bench) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, bench_script.__file__, bench.kind, bench.address, owner, str(THREADS)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for owner in map(str, range(PROCESSES))
        ]
        assert self._everyone_says() == ["ready"] * PROCESSES

    def run(self, topic: str, now: datetime) -> Racer:
        """All try at once; the one who has the lease, as all of them agree."""
        for process in self._processes:
            assert process.stdin
            process.stdin.write(f"{topic} {now.isoformat()}\n")
            process.stdin.flush()
        answers = [Racer(**got) for line in self._everyone_says() for got in json.loads(line)]
        assert len(answers) == PROCESSES * THREADS == 64
        [winner] = [answer for answer in answers if answer.won]
        held = replace(winner, won=False)
        assert [answer for answer in answers if not answer.won] == [held] * (len(answers) - 1)
        return winner

    def end(self) -> None:
        for process in self._processes:
            process.communicate(timeout=60)
        assert [process.returncode for process in self._processes] == [0] * PROCESSES

    def _everyone_says(self) -> list[str]:
        return [process.stdout.readline().strip() for process in self._processes if process.stdout]


@pytest.fixture
def race(bench: Bench) -> Iterator[Race]:
    race = Race(bench)
    yield race
    race.end()


def test_of_64_racers_in_threads_and_processes_exactly_one_gets_the_lease_each_time(race: Race) -> None:
    assert [race.run(f"topic_{turn}", NOW).fence for turn in range(8)] == [1] * 8


def test_an_expired_lease_is_taken_over_exactly_once_by_64_racers(race: Race) -> None:
    fences = [race.run("events", NOW + turn * LEASE_TIME).fence for turn in range(8)]
    assert fences == list(range(1, 9))


def test_once_a_lease_is_taken_over_the_late_owner_writes_nothing_any_more(bench: Bench, store: StateStore) -> None:
    late, is_writing = taken(store), Event()

    def write_on() -> None:
        """As an owner whose clock is behind."""
        for turn in count():
            store.save_intent(replace(INTENT, started_at=str(turn)), late, NOW)
            is_writing.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_on)
        assert is_writing.wait(30)
        other = bench.open()
        taken(other, owner="bob", now=END)
        at_takeover = other.checkpoint(PIPELINE)
        with pytest.raises(LostLeaseError):
            writing.result(30)
    assert at_takeover.intent is not None
    assert other.checkpoint(PIPELINE) == at_takeover


def test_renewals_and_writes_of_one_holder_do_not_keep_each_other_from_working(bench: Bench) -> None:
    store, start = bench.open(), Barrier(4)
    lease = taken(store)

    def renew() -> None:
        start.wait(30)
        for _ in range(25):
            store.renew(lease, NOW)

    def fail() -> None:
        start.wait(30)
        for _ in range(25):
            store.count_failure(PIPELINE, lease, NOW)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for work in (renew, fail, renew, fail)]:
            done.result(60)
    assert store.checkpoint(PIPELINE).failures == 50
