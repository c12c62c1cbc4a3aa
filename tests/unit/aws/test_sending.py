"""Batches of which a part is refused, and the time that there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.aws.scenes import Watch

from lean_ops.aws.sending import ROUNDS, Patience, Refused, cut, send_all


def one_batch(positions: Iterable[int]) -> list[list[int]]:
    return [list(positions)]


@given(st.lists(st.integers(0, 120), max_size=60), st.integers(1, 9), st.integers(1, 100))
def test_batches_hold_every_position_once_in_order_and_within_the_limits(
    sizes: list[int], most: int, most_bytes: int
) -> None:
    batches = list(cut(range(len(sizes)), sizes, most, most_bytes))
    assert [position for batch in batches for position in batch] == list(range(len(sizes)))
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(sizes[position] for position in batch) <= most_bytes


def test_a_batch_ends_only_where_one_more_would_not_fit() -> None:
    assert list(cut(range(5), [50, 50, 1, 99, 1], 3, 100)) == [[0, 1], [2, 3], [4]]
    assert list(cut([7, 3, 5], [0] * 9, 2, 100)) == [[7, 3], [5]]


def test_just_the_refused_ones_go_again() -> None:
    rounds: list[list[int]] = []

    def send(batch: Sequence[int]) -> dict[int, Refused]:
        rounds.append(list(batch))
        return {position: Refused("busy") for position in rounds[-1] if position % 2 and len(rounds) < 3}

    assert send_all(4, one_batch, send, Watch().patience()) == {}
    assert rounds == [[0, 1, 2, 3], [1, 3], [1, 3]]


def test_what_is_refused_for_good_goes_once() -> None:
    seen: Counter[int] = Counter()

    def send(batch: Sequence[int]) -> dict[int, Refused]:
        seen.update(batch)
        return {at: Refused("never", for_good=True) if at == 1 else Refused("busy") for at in batch}

    assert send_all(2, one_batch, send, Watch(3600).patience()) == {0: "busy", 1: "never"}
    assert seen == {0: ROUNDS, 1: 1}


def test_rounds_are_bounded_where_time_is_not() -> None:
    watch = Watch(1e9)
    send_all(1, one_batch, lambda batch: dict.fromkeys(batch, Refused("busy")), watch.patience())
    assert len(watch.slept) == ROUNDS - 1


def test_pauses_grow_to_a_limit_and_are_a_part_of_it_by_chance() -> None:
    watch = Watch(1e9)
    send_all(1, one_batch, lambda batch: dict.fromkeys(batch, Refused("busy")), watch.patience(lambda: 1.0))
    assert watch.slept[:4] == [0.2, 0.4, 0.8, 1.6]
    assert max(watch.slept) == 5.0
    watch = Watch()
    assert watch.patience(lambda: 0.0).rest(5)
    assert watch.slept == [0.0]


def test_sending_ends_in_time_for_the_answer() -> None:
    watch = Watch(20)
    failed = send_all(1, one_batch, lambda batch: dict.fromkeys(batch, Refused("busy")), watch.patience(lambda: 1.0))
    assert failed == {0: "busy"}
    assert watch.left >= 9


def test_batches_for_which_no_time_is_left_are_not_begun() -> None:
    watch = Watch(18)
    sent: list[int] = []

    def send(batch: Sequence[int]) -> dict[int, Refused]:
        sent.extend(batch)
        watch.left -= 4
        return {}

    failed = send_all(5, lambda positions: cut(positions, [1] * 5, 1, 9), send, watch.patience())
    assert sent == [0, 1, 2]
    assert set(failed) == {3, 4}
    assert "no time" in failed[3]


@pytest.mark.parametrize("seconds", [0.5, 3.0, 6.0])
def test_a_function_with_little_time_sends_all_the_same(seconds: float) -> None:
    assert send_all(1, one_batch, lambda _: {}, Watch(seconds).patience()) == {}


def test_a_part_of_the_time_leaves_the_rest_to_others() -> None:
    watch = Watch(39)
    patience = watch.patience()
    part = patience.part(1 / 3)
    watch.left = 28.9
    assert not part.has_time()
    assert patience.has_time()


def test_no_time_is_no_time_for_a_part_either() -> None:
    assert not Patience(lambda: 1.0, 5.0, lambda _: None, lambda: 0.0).part(1 / 3).has_time()
