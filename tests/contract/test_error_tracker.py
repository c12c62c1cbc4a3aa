"""What every error tracker promises; each test runs against each store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta, timezone
from threading import Barrier

import pytest
from tests.contract.bench import AHEAD as NOW
from tests.contract.bench import TICK, Bench

from lean_ops.state.port import ErrorTracker, TrackedError

DAYS = timedelta(days=90)
ERROR = TrackedError(
    "b1b2c3",
    "events",
    "8841-77",
    "MALFORMED_JSON",
    "dlq-archive/events/2026-02-03/10/b1b2c3.json",
    "NEW",
    NOW,
)


def test_an_error_that_nobody_booked_is_unknown(tracker: ErrorTracker) -> None:
    assert tracker.get("b1b2c3", NOW) is None
    assert tracker.newest("events", NOW) == []
    assert tracker.mark("b1b2c3", "FIXED", NOW) is False
    assert tracker.get("b1b2c3", NOW) is None


@pytest.mark.parametrize(
    "error",
    [
        ERROR,
        replace(ERROR, message_id=None),
        replace(ERROR, message_id=""),
        replace(ERROR, error_id="'; DROP TABLE error_tracker;--", message_id='"ü`\\', status="ünread"),
        replace(ERROR, recorded_at=NOW + TICK),
    ],
    ids=["plain", "no message id", "empty message id", "hostile", "microseconds"],
)
def test_an_error_comes_back_as_it_was_booked(bench: Bench, tracker: ErrorTracker, error: TrackedError) -> None:
    assert tracker.put(error) is True
    for reader in (tracker, bench.errors()):
        assert reader.get(error.error_id, NOW) == error
        assert reader.newest("events", NOW) == [error]


def test_an_error_is_booked_once_and_stays_as_it_was(tracker: ErrorTracker) -> None:
    tracker.put(ERROR)
    assert tracker.put(ERROR) is False
    assert tracker.put(replace(ERROR, error_type="UNKNOWN", recorded_at=NOW + DAYS / 2)) is False
    assert tracker.get("b1b2c3", NOW) == ERROR
    assert tracker.newest("events", NOW) == [ERROR]


def test_marking_changes_the_status_alone(tracker: ErrorTracker) -> None:
    tracker.put(ERROR)
    tracker.put(replace(ERROR, error_id="other"))
    assert tracker.mark("b1b2c3", "FIXED", NOW) is True
    assert tracker.mark("b1b2c3", "FIXED", NOW) is True
    assert tracker.get("b1b2c3", NOW) == replace(ERROR, status="FIXED")
    assert tracker.get("other", NOW) == replace(ERROR, error_id="other")
    assert tracker.put(ERROR) is False


def test_an_error_is_known_for_90_days(tracker: ErrorTracker) -> None:
    tracker.put(ERROR)
    just_before, end = NOW + DAYS - TICK, NOW + DAYS
    assert tracker.get("b1b2c3", just_before) == ERROR
    assert tracker.newest("events", just_before) == [ERROR]
    assert tracker.mark("b1b2c3", "FIXED", just_before)
    assert tracker.get("b1b2c3", end) is None
    assert tracker.newest("events", end) == []
    assert tracker.mark("b1b2c3", "FAILED", end) is False


def test_an_error_past_its_days_may_be_booked_anew(tracker: ErrorTracker) -> None:
    tracker.put(ERROR)
    again = replace(ERROR, recorded_at=NOW + DAYS)
    assert tracker.put(again) is True
    assert tracker.get("b1b2c3", NOW + DAYS) == again


def test_the_newest_of_a_topic_come_first_and_not_more_than_asked_for(tracker: ErrorTracker) -> None:
    errors = [replace(ERROR, error_id=f"e{n}", recorded_at=NOW + n * TICK) for n in range(7)]
    for error in [errors[3], *errors[4:], *errors[:3]]:
        tracker.put(error)
    tracker.put(replace(ERROR, error_id="elsewhere", topic_name="orders"))
    newest = errors[::-1]
    assert tracker.newest("events", NOW) == newest
    assert tracker.newest("events", NOW, limit=3) == newest[:3]
    assert [error.error_id for error in tracker.newest("orders", NOW)] == ["elsewhere"]


def test_errors_past_their_days_do_not_take_the_places_of_others(tracker: ErrorTracker) -> None:
    for number in range(3):
        tracker.put(replace(ERROR, error_id=f"old{number}", recorded_at=NOW - DAYS))
    tracker.put(replace(ERROR, recorded_at=NOW - DAYS + TICK))
    assert [error.error_id for error in tracker.newest("events", NOW, limit=2)] == ["b1b2c3"]


def test_more_errors_than_one_answer_holds_are_all_listed(tracker: ErrorTracker) -> None:
    """DynamoDB answers with 1 MB at most."""
    long_path = "x" * 100_000
    for number in range(12):
        tracker.put(replace(ERROR, error_id=f"e{number}", archive_path=long_path, recorded_at=NOW + number * TICK))
    assert [error.error_id for error in tracker.newest("events", NOW)] == [f"e{n}" for n in reversed(range(12))]


@pytest.mark.parametrize("hours", [-11, 14])
def test_a_clock_of_another_time_zone_tells_the_same_time(tracker: ErrorTracker, hours: int) -> None:
    zone = timezone(timedelta(hours=hours))
    tracker.put(replace(ERROR, recorded_at=NOW.astimezone(zone)))
    tracker.put(replace(ERROR, error_id="later", recorded_at=NOW + TICK))
    assert [error.error_id for error in tracker.newest("events", NOW)] == ["later", "b1b2c3"]
    assert tracker.get("b1b2c3", (NOW + DAYS - TICK).astimezone(zone)) == ERROR
    assert tracker.get("b1b2c3", (NOW + DAYS).astimezone(zone)) is None


def test_of_many_who_book_an_error_at_once_exactly_one_does(bench: Bench) -> None:
    tracker, start = bench.errors(), Barrier(8)

    def book(number: int) -> bool:
        start.wait(30)
        return tracker.put(replace(ERROR, message_id=str(number)))

    with ThreadPoolExecutor(8) as pool:
        booked = [number for number, done in enumerate(pool.map(book, range(8))) if done]
    known = tracker.get("b1b2c3", NOW)
    assert known is not None
    assert [str(number) for number in booked] == [known.message_id]
