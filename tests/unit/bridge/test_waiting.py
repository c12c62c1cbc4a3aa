from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from lean_ops.aws.topic_queues import MOST_BYTES, MOST_MESSAGES
from lean_ops.bridge.parcel import Parcel
from lean_ops.bridge.waiting import Waiting


def parcel(number: int, key: str = "", size: int = 100) -> Parcel:
    return Parcel(f"ack-{number}", str(number), key, 1, "", size, 0.0, 0.0)


def ids(parcels: list[Parcel]) -> list[int]:
    return [int(one.message_id) for one in parcels]


def test_batches_keep_the_order_and_the_limits_of_a_queue() -> None:
    waiting = Waiting()
    for number in range(25):
        waiting.add(parcel(number))
    assert waiting.is_full
    assert [ids(waiting.next_batch()) for _ in range(4)] == [
        list(range(10)),
        list(range(10, 20)),
        list(range(20, 25)),
        [],
    ]
    assert len(waiting) == 0


def test_a_batch_ends_where_its_bytes_would_be_too_many() -> None:
    waiting = Waiting()
    for number, size in enumerate([MOST_BYTES - 10, 10, 1, MOST_BYTES, MOST_BYTES + 1, 5]):
        waiting.add(parcel(number, size=size))
    assert [ids(waiting.next_batch()) for _ in range(5)] == [[0, 1], [2], [3], [4], [5]]


def test_of_a_key_the_next_goes_when_the_one_before_is_settled() -> None:
    waiting = Waiting()
    parcels = [parcel(0, "k"), parcel(1, "k"), parcel(2), parcel(3, "j"), parcel(4, "k")]
    for one in parcels:
        waiting.add(one)
    assert ids(waiting.next_batch()) == [0, 2, 3]
    assert waiting.next_batch() == []
    waiting.settled(parcels[0])
    assert ids(waiting.next_batch()) == [1]
    waiting.settled(parcels[1])
    waiting.settled(parcels[3])
    assert ids(waiting.next_batch()) == [4]


def test_with_a_parcel_that_goes_back_go_the_later_ones_of_its_key() -> None:
    waiting = Waiting()
    parcels = [parcel(0, "k"), parcel(1, "k"), parcel(2), parcel(3, "k")]
    for one in parcels:
        waiting.add(one)
    first = waiting.next_batch()
    assert ids(first) == [0, 2]
    assert ids(waiting.returned(first)) == [1, 3]
    waiting.add(parcels[0])
    assert ids(waiting.next_batch()) == [0]


def test_taking_all_leaves_the_keys_of_what_is_under_way() -> None:
    waiting = Waiting()
    under_way, behind, other = parcel(0, "k"), parcel(1, "k"), parcel(2, "j")
    waiting.add(under_way)
    assert waiting.next_batch() == [under_way]
    waiting.add(behind)
    waiting.add(other)
    assert sorted(ids(waiting.take_all())) == [1, 2]
    assert (len(waiting), waiting.has_ready) == (0, False)
    waiting.add(behind)
    waiting.add(other)
    assert waiting.next_batch() == [other]
    waiting.settled(under_way)
    assert waiting.next_batch() == [behind]


arrivals = st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.integers(1, MOST_BYTES)), max_size=60)


@given(arrivals, st.data())
def test_whatever_is_refused_nothing_is_lost_doubled_or_overtaken(
    arriving: list[tuple[str, int]], data: st.DataObject
) -> None:
    waiting = Waiting()
    for number, (key, size) in enumerate(arriving):
        waiting.add(parcel(number, key, size))
    done: defaultdict[str, list[int]] = defaultdict(list)
    returned: defaultdict[str, list[int]] = defaultdict(list)
    while batch := waiting.next_batch():
        keys = [one.ordering_key for one in batch if one.ordering_key]
        assert len(keys) == len(set(keys))
        assert len(batch) <= MOST_MESSAGES
        assert len(batch) == 1 or sum(one.size for one in batch) <= MOST_BYTES
        for one in batch:
            if data.draw(st.integers(0, 3)):
                waiting.settled(one)
                done[one.ordering_key].append(int(one.message_id))
            else:
                for back in [one, *waiting.returned([one])]:
                    returned[back.ordering_key].append(int(back.message_id))
    assert len(waiting) == 0
    everything = sorted(number for numbers in (*done.values(), *returned.values()) for number in numbers)
    assert everything == list(range(len(arriving)))
    for key in ("a", "b", "c"):
        assert done[key] + returned[key] == sorted(done[key] + returned[key])
