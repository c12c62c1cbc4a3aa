"""When a circuit opens, is tried and closes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ingest.breaker import (
    LEAST_MESSAGES,
    OPEN_SECONDS,
    PROBE_MESSAGES,
    PROBE_MINUTES,
    WINDOW_MINUTES,
    decided,
    first_minute,
)
from lean_ops.model.circuit import Circuit, Phase, Seen

NOW = 1_770_000_000  # twenty seconds into a minute
MINUTE = NOW // 60
CLOSED = Circuit("events", revision=3)
OPEN = Circuit("events", Phase.OPEN, NOW - OPEN_SECONDS, NOW - OPEN_SECONDS, received=30, failed=20, revision=4)
ON_TRIAL = Circuit("events", Phase.HALF_OPEN, NOW - 60, NOW - 400, received=30, failed=20, revision=6)


def after(circuit: Circuit, *minutes: tuple[int, int], now: int = NOW) -> Circuit:
    """The circuit after minutes of (received, failed), the newest last."""
    last = now // 60
    return decided(Seen(circuit, {last - back: counts for back, counts in enumerate(reversed(minutes))}), now)


# closed


def test_without_traffic_nothing_changes() -> None:
    assert after(CLOSED) == CLOSED


@pytest.mark.parametrize("failed", [0, 9, 10])
def test_up_to_half_may_fail(failed: int) -> None:
    assert after(CLOSED, (20, failed)) == CLOSED


def test_more_than_half_of_twenty_opens() -> None:
    assert after(CLOSED, (20, 11)) == replace(
        CLOSED, phase=Phase.OPEN, since=NOW, opened_at=NOW, settled=False, announced=False, received=20, failed=11
    )


def test_nineteen_messages_decide_nothing() -> None:
    assert after(CLOSED, (19, 19)) == CLOSED


def test_the_minutes_of_the_window_count_together() -> None:
    assert after(CLOSED, (4, 3), (4, 3), (4, 3), (4, 3), (4, 3)).phase is Phase.OPEN


def test_what_is_older_than_the_window_does_not_count() -> None:
    assert after(CLOSED, (100, 100), (4, 4), (4, 4), (4, 4), (4, 4), (3, 3)) == CLOSED


def test_good_messages_outweigh_bad_ones() -> None:
    assert after(CLOSED, (20, 20), (21, 0)) == CLOSED


def test_what_failed_before_the_circuit_was_closed_does_not_open_it_again() -> None:
    closed = replace(CLOSED, since=NOW - 60)
    assert after(closed, (100, 100), (0, 0), (0, 0)) == closed


def test_traffic_of_a_minute_that_is_yet_to_come_does_not_count() -> None:
    assert decided(Seen(CLOSED, {MINUTE + 1: (100, 100)}), NOW) == CLOSED


# open


def test_an_open_circuit_is_tried_after_five_minutes() -> None:
    assert after(OPEN) == replace(OPEN, phase=Phase.HALF_OPEN, since=NOW, settled=False)


def test_it_is_not_tried_a_second_earlier() -> None:
    assert after(OPEN, now=NOW - 1) == OPEN


def test_it_is_not_tried_while_its_mapping_is_not_off_yet() -> None:
    unsettled = replace(OPEN, settled=False)
    assert after(unsettled, now=NOW + 3600) == unsettled


def test_what_is_still_on_its_way_when_it_opens_changes_nothing() -> None:
    early = replace(OPEN, since=NOW - 60)
    assert after(early, (100, 0)) == after(early, (100, 100)) == early


# on trial


def test_too_little_traffic_leaves_it_on_trial() -> None:
    assert after(ON_TRIAL, (PROBE_MESSAGES - 1, 0)) == ON_TRIAL
    assert after(ON_TRIAL, (PROBE_MESSAGES - 1, PROBE_MESSAGES - 1)) == ON_TRIAL


def test_a_good_trial_closes_it_and_says_so() -> None:
    assert after(ON_TRIAL, (PROBE_MESSAGES, 5)) == replace(
        ON_TRIAL, phase=Phase.CLOSED, since=NOW, settled=False, announced=False, received=PROBE_MESSAGES, failed=5
    )


def test_a_bad_trial_opens_it_again_without_another_alert() -> None:
    assert after(ON_TRIAL, (PROBE_MESSAGES, 6)) == replace(ON_TRIAL, phase=Phase.OPEN, since=NOW, settled=False)


def test_a_trial_counts_from_its_beginning_however_slow_the_topic_is() -> None:
    slow = replace(ON_TRIAL, since=NOW - 60 * 20)
    assert first_minute(slow, NOW) == MINUTE - 20
    assert after(slow, *[(1, 0)] * 10).phase is Phase.CLOSED
    assert first_minute(replace(slow, since=0), NOW) == MINUTE - PROBE_MINUTES + 1


def test_what_failed_before_the_trial_does_not_count() -> None:
    assert after(ON_TRIAL, (100, 100), (2, 0), (8, 0)).phase is Phase.CLOSED


def test_an_opening_that_nobody_was_told_of_is_still_to_be_told_on_trial() -> None:
    assert not after(replace(OPEN, announced=False)).announced


# any

minutes = st.dictionaries(
    st.integers(MINUTE - 70, MINUTE + 1),
    st.integers(0, 60).flatmap(lambda received: st.tuples(st.just(received), st.integers(0, received))),
    max_size=20,
)
circuits = st.builds(
    Circuit,
    st.just("events"),
    st.sampled_from(Phase),
    st.integers(NOW - 5000, NOW),
    st.none() | st.integers(NOW - 9000, NOW),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(2, 1000),
    revision=st.integers(0, 9),
)


@given(circuits, minutes)
def test_a_circuit_turns_only_the_ways_there_are(circuit: Circuit, traffic: dict[int, tuple[int, int]]) -> None:
    turned = decided(Seen(circuit, traffic), NOW)
    ways = {
        (Phase.CLOSED, Phase.OPEN),
        (Phase.OPEN, Phase.HALF_OPEN),
        (Phase.HALF_OPEN, Phase.OPEN),
        (Phase.HALF_OPEN, Phase.CLOSED),
    }
    assert turned == circuit or (circuit.phase, turned.phase) in ways
    assert (turned.topic, turned.concurrency, turned.revision) == (circuit.topic, circuit.concurrency, circuit.revision)
    if turned != circuit:
        assert (turned.since, turned.settled) == (NOW, False)


@given(circuits, minutes)
def test_it_opens_exactly_when_more_than_half_of_enough_messages_failed(
    circuit: Circuit, traffic: dict[int, tuple[int, int]]
) -> None:
    turned = decided(Seen(circuit, traffic), NOW)
    window, least = (
        (PROBE_MINUTES, PROBE_MESSAGES) if circuit.phase is Phase.HALF_OPEN else (WINDOW_MINUTES, LEAST_MESSAGES)
    )
    counted = [
        counts
        for minute, counts in traffic.items()
        if MINUTE - window < minute <= MINUTE and minute >= circuit.since // 60
    ]
    received, failed = (sum(counts[place] for counts in counted) for place in (0, 1))
    is_bad = received >= least and failed / received > 0.5
    assert (turned.phase is Phase.OPEN) == (
        (circuit.phase is Phase.OPEN and turned == circuit) or (circuit.phase is not Phase.OPEN and is_bad)
    )
