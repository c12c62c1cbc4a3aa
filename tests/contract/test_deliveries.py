"""What every store of deliveries promises; each test runs against each store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta, timezone

import pytest
from tests.contract.bench import AHEAD as NOW
from tests.contract.bench import TICK, Bench

from lean_ops.state.port import Deliveries

DAY = timedelta(hours=24)
SECOND = timedelta(seconds=1)


def test_nothing_is_seen_at_first(deliveries: Deliveries) -> None:
    assert deliveries.seen(["a", "b"], NOW) == set()


def test_what_was_remembered_is_seen_and_nothing_else(bench: Bench, deliveries: Deliveries) -> None:
    deliveries.remember(["a", "c", "'; DROP TABLE idempotency_keys;--", "ü"], NOW)
    asked = ["a", "b", "c", "A", "'; DROP TABLE idempotency_keys;--", "ü", "u"]
    for reader in (deliveries, bench.deliveries()):
        assert reader.seen(asked, NOW) == {"a", "c", "'; DROP TABLE idempotency_keys;--", "ü"}


def test_no_ids_are_no_work(deliveries: Deliveries) -> None:
    deliveries.remember([], NOW)
    assert deliveries.seen([], NOW) == set()


def test_an_id_may_come_twice_in_one_batch_and_be_remembered_again(deliveries: Deliveries) -> None:
    deliveries.remember(["a", "a", "b"], NOW)
    deliveries.remember(["a"], NOW)
    assert deliveries.seen(["b", "a", "b", "a"], NOW) == {"a", "b"}


def test_ids_are_taken_from_any_iterable(deliveries: Deliveries) -> None:
    deliveries.remember(iter(["a"]), NOW)
    assert deliveries.seen(iter(["a", "b"]), NOW) == {"a"}


def test_a_delivery_is_seen_for_24_hours_and_unknown_then(deliveries: Deliveries) -> None:
    deliveries.remember(["a"], NOW)
    assert deliveries.seen(["a"], NOW + DAY - TICK) == {"a"}
    assert deliveries.seen(["a"], NOW + DAY) == set()
    assert deliveries.seen(["a"], NOW + 400 * DAY) == set()


def test_a_part_of_a_second_never_shortens_the_day(deliveries: Deliveries) -> None:
    begun = NOW + timedelta(milliseconds=1)
    deliveries.remember(["a"], begun)
    assert deliveries.seen(["a"], begun + DAY - TICK) == {"a"}
    assert deliveries.seen(["a"], begun + DAY + SECOND) == set()


def test_being_remembered_again_begins_another_day(deliveries: Deliveries) -> None:
    deliveries.remember(["a", "b"], NOW)
    deliveries.remember(["a"], NOW + 12 * timedelta(hours=1))
    assert deliveries.seen(["a", "b"], NOW + DAY) == {"a"}


@pytest.mark.parametrize("hours", [-11, 14])
def test_a_clock_of_another_time_zone_tells_the_same_time(deliveries: Deliveries, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    deliveries.remember(["a"], NOW.astimezone(zone))
    assert deliveries.seen(["a"], NOW + DAY - TICK) == {"a"}
    assert deliveries.seen(["a"], (NOW + DAY).astimezone(zone)) == set()


@pytest.mark.parametrize("number", [25, 26, 100, 101, 1003])
def test_batches_of_any_size_are_remembered_whole(deliveries: Deliveries, number: int) -> None:
    """DynamoDB takes 25 items a write and 100 keys a read."""
    ids = [f"id-{each}" for each in range(number)]
    deliveries.remember(ids, NOW)
    assert deliveries.seen(["other", *ids], NOW) == set(ids)
    assert deliveries.seen(ids, NOW + DAY) == set()


def test_many_may_remember_at_once(bench: Bench) -> None:
    deliveries = bench.deliveries()
    batches = [[f"{batch}-{each}" for each in range(30)] for batch in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda ids: deliveries.remember([*ids, "shared"], NOW), batches))
    everything = {each for ids in batches for each in ids} | {"shared"}
    assert deliveries.seen(everything, NOW) == everything
