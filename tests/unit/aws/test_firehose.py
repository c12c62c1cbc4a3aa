"""A stream that takes all, a part, or nothing of what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.aws.scenes import DENIED, THROTTLED, TIMED_OUT, FirehoseDouble, Turn, Watch, client_error

from lean_ops.aws.firehose import MOST_BYTES, DeliveryStream


def put(records: list[bytes], *turns: Turn, watch: Watch | None = None) -> tuple[FirehoseDouble, dict[int, str]]:
    double = FirehoseDouble(*turns)
    failed = DeliveryStream(double, "stream").put(records, (watch or Watch()).patience())
    return double, failed


def numbered(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


@pytest.mark.parametrize(("count", "calls"), [(0, []), (1, [1]), (500, [500]), (501, [500, 1]), (1500, [500] * 3)])
def test_a_call_has_at_most_500_records(count: int, calls: list[int]) -> None:
    double, failed = put(numbered(count))
    assert [len(call) for call in double.calls] == calls
    assert double.taken == numbered(count)
    assert failed == {}


def test_a_call_has_less_than_4_mb_of_data() -> None:
    record = b"x" * 1_024_000
    double, failed = put([record] * 8)
    assert [len(call) for call in double.calls] == [3, 3, 2]
    assert all(sum(map(len, call)) <= MOST_BYTES for call in double.calls)
    assert failed == {}


def test_records_that_fill_a_call_to_the_byte_go_in_one() -> None:
    half = b"x" * (MOST_BYTES // 2)
    assert [len(call) for call in put([half, half])[0].calls] == [2]
    assert [len(call) for call in put([half, half, b"y"])[0].calls] == [2, 1]


def test_refused_twice_then_taken_lands_once() -> None:
    double, failed = put(numbered(4), {1, 3}, {0})
    assert double.calls == [numbered(4), [b"1", b"3"], [b"1"]]
    assert sorted(double.taken) == numbered(4)
    assert failed == {}


def test_what_all_calls_refuse_goes_again_in_common_calls() -> None:
    double, _ = put(numbered(1000), {0}, {499})
    assert [len(call) for call in double.calls] == [500, 500, 2]
    assert double.calls[2] == [b"0", b"999"]


def test_what_stays_refused_is_named_with_the_reason() -> None:
    double, failed = put(numbered(3), *[{1}, *[{0}] * 40])
    assert failed == {1: "ServiceUnavailableException: Slow down."}
    assert sorted(double.taken) == [b"0", b"2"]


@pytest.mark.parametrize(
    "error",
    [
        THROTTLED,
        TIMED_OUT,
        client_error("ServiceUnavailableException", 503),
        client_error("SomethingNew", 500),
        client_error("SomethingNew", 429),
    ],
)
def test_a_call_that_may_succeed_later_goes_again(error: Exception) -> None:
    double, failed = put(numbered(2), error, error)
    assert double.taken == numbered(2)
    assert failed == {}


def test_a_call_with_an_unknown_outcome_goes_again_and_leaves_copies() -> None:
    double, failed = put(numbered(2), (TIMED_OUT,))
    assert double.taken == numbered(2) * 2
    assert failed == {}


@pytest.mark.parametrize(
    "error", [DENIED, client_error("ResourceNotFoundException"), client_error("InvalidArgumentException")]
)
def test_a_call_that_will_fail_again_goes_once_and_others_go_on(error: Exception) -> None:
    watch = Watch()
    double, failed = put(numbered(501), error, watch=watch)
    assert [len(call) for call in double.calls] == [500, 1]
    assert sorted(failed) == list(range(500))
    assert str(error) in failed[0]
    assert watch.slept == []


def test_what_there_is_no_time_for_is_not_sent() -> None:
    double, failed = put(numbered(1500), watch=Watch(20, step=4))
    assert 0 < len(double.taken) < 1500
    assert len(double.taken) + len(failed) == 1500
    assert not {position for position in failed if str(position).encode() in double.taken}


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer.update(FailedPutCount=2),
        lambda answer: answer["RequestResponses"].pop(),
        lambda answer: answer["RequestResponses"][1].update(ErrorCode=""),
    ],
    ids=["counts more", "answers fewer", "says nothing"],
)
def test_of_an_answer_that_contradicts_itself_nothing_counts_as_taken(change: Callable[[dict[str, Any]], None]) -> None:
    class Contradicting(FirehoseDouble):
        def put_record_batch(self, **asked: Any) -> dict[str, Any]:
            answer = super().put_record_batch(**asked)
            if len(self.calls) == 1:
                change(answer)
            return answer

    double = Contradicting({1})
    assert DeliveryStream(double, "stream").put(numbered(3), Watch().patience()) == {}
    assert [len(call) for call in double.calls] == [3, 3]
