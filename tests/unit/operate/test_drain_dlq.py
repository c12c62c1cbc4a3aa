"""Draining the dead-letter queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lean_ops.aws.queues import Delivery
from lean_ops.model.letter import ReceivedLetter
from lean_ops.operate.drain_dlq import Drained, age_alert, drain

NOW = datetime(2026, 2, 3, 12, 0, 5, tzinfo=UTC)


class FakeQueue:
    """Hands over each message once; what is not deleted stays."""

    def __init__(self, count: int, ages: Sequence[int] = ()) -> None:
        times = [NOW - timedelta(minutes=minutes) for minutes in ages] or [NOW] * count
        letters = [ReceivedLetter(f"d-{number}", "junk", times[number], 1) for number in range(count)]
        self.kept = {f"h-{number}": letter for number, letter in enumerate(letters)}
        self._left = list(self.kept)
        self.stubborn: set[str] = set()

    def receive(self, wait_seconds: int = 0) -> list[Delivery]:
        assert wait_seconds <= 20
        handles, self._left = self._left[:10], self._left[10:]
        return [Delivery(self.kept[handle], handle) for handle in handles]

    def delete(self, handles: Sequence[str]) -> dict[str, str]:
        for handle in set(handles) - self.stubborn:
            del self.kept[handle]
        return dict.fromkeys(self.stubborn & set(handles), "InternalError")


class FakeLetters:
    """Takes letters, all but some."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.calls: list[int] = []

    def take(self, letters: Sequence[ReceivedLetter]) -> dict[str, str]:
        self.calls.append(len(letters))
        return {letter.message_id: "no" for letter in letters if letter.message_id in self.refused}


def drained(queue: FakeQueue, letters: FakeLetters, calls: int = 10**6) -> Drained:
    left = iter(range(calls))
    taker: Any = letters
    return drain(queue, taker, lambda: next(left, None) is not None)


def test_every_letter_is_taken_a_hundred_to_a_commit_and_then_deleted() -> None:
    queue, letters = FakeQueue(125), FakeLetters()
    result = drained(queue, letters)
    assert (result.taken, result.failed, queue.kept) == (125, {}, {})
    assert letters.calls == [100, 25]


def test_what_can_not_be_taken_stays() -> None:
    queue = FakeQueue(15)
    result = drained(queue, FakeLetters("d-3", "d-12"))
    assert set(queue.kept) == {"h-3", "h-12"}
    assert (result.taken, result.failed) == (13, {"d-3": "no", "d-12": "no"})


def test_what_could_not_be_deleted_is_told() -> None:
    queue = FakeQueue(3)
    queue.stubborn = {"h-1"}
    assert drained(queue, FakeLetters()).failed == {"d-1": "InternalError"}


def test_an_empty_queue_ends_it_at_once() -> None:
    letters = FakeLetters()
    assert drained(FakeQueue(0), letters) == Drained()
    assert letters.calls == []


@pytest.mark.parametrize("calls", [0, 1, 5])
def test_it_ends_when_its_time_does_and_leaves_no_letter_half_done(calls: int) -> None:
    queue, letters = FakeQueue(500), FakeLetters()
    result = drained(queue, letters, calls)
    assert len(queue.kept) == 500 - result.taken
    assert result.taken == sum(letters.calls)
    assert result.taken < 500


def test_the_oldest_letter_is_noted() -> None:
    assert drained(FakeQueue(3, (1, 90, 5)), FakeLetters()).oldest == NOW - timedelta(minutes=90)


# age


def test_up_to_fifteen_minutes_are_no_alert() -> None:
    assert age_alert(None, NOW) is None
    assert age_alert(NOW - timedelta(minutes=15), NOW) is None


def test_more_than_fifteen_minutes_are_one_alert_an_hour() -> None:
    alert = age_alert(NOW - timedelta(minutes=15, seconds=1), NOW)
    assert alert is not None
    assert (alert.kind, alert.topic, alert.severity) == ("DLQ_AGE", "dlq", "warning")
    assert (alert.value, alert.threshold) == (15.0, 15.0)
    assert alert.message == "a dead letter waited 15 minutes in the queue, since 2026-02-03T11:45:04Z"
    others = [age_alert(NOW - timedelta(minutes=minutes), NOW + timedelta(minutes=9)) for minutes in (20, 59, 61)]
    assert [other.alert_id == alert.alert_id for other in others if other] == [True, True, False]
