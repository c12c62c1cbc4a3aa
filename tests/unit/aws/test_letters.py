"""Dead letters: what is said of them, and how they get to their queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.aws.scenes import DENIED, THROTTLED, TIMED_OUT, Bodies, SqsDouble, Turn, Watch, client_error

from lean_ops.aws.letters import MOST_BYTES, Letter, LetterBox
from lean_ops.model.envelope import DeadLetter, Refusal

REASON = DeadLetter(Refusal.INVALID_CONTRACT, "payload: found no such member", "m-1")


def letter(sqs_message_id: str = "id-0", body: str = "{}", reason: DeadLetter = REASON) -> Letter:
    return Letter(sqs_message_id, "events", reason, body, 3)


def letters(count: int, body: str = "{}") -> list[Letter]:
    return [letter(f"id-{number}", body) for number in range(count)]


def send(
    some: list[Letter], *turns: Turn, bodies: Bodies | None = None, sender_fault: bool = False
) -> tuple[SqsDouble, dict[int, str]]:
    double = SqsDouble(*turns, sender_fault=sender_fault)
    box = LetterBox(double, "lean-ops-dev-dlq", bodies or Bodies())
    return double, box.send(some, Watch().patience())


def test_a_letter_is_the_body_unchanged_with_its_reason_beside_it() -> None:
    double, failed = send([letter(body=' {"a" : "é\\u0000"} ')])
    assert failed == {}
    assert double.taken[0]["MessageBody"] == ' {"a" : "é\\u0000"} '
    assert double.attributes() == [
        {
            "error_type": "INVALID_CONTRACT",
            "error_message": "payload: found no such member",
            "topic_name": "events",
            "source": "sqs",
            "message_id": "m-1",
            "sqs_message_id": "id-0",
            "receive_count": "3",
        }
    ]
    assert {value["DataType"] for value in double.taken[0]["MessageAttributes"].values()} == {"String"}


def test_an_id_that_could_not_be_read_is_not_said() -> None:
    double, _ = send([letter(reason=DeadLetter(Refusal.MALFORMED_JSON, "not JSON"))])
    assert "message_id" not in double.attributes()[0]


@given(st.text(max_size=700), st.text(max_size=300), st.text(min_size=1, max_size=10))
def test_attributes_are_such_as_the_queue_takes(reason: str, message_id: str, sqs_message_id: str) -> None:
    said = letter(sqs_message_id, reason=DeadLetter(Refusal.MALFORMED_JSON, reason, message_id)).attributes()
    assert len(said.get("error_message", "")) <= 512
    assert len(said.get("message_id", "")) <= 256
    for value in said.values():
        assert value
        value.encode()
        assert not {each for each in value if each < " " or "\x7f" <= each <= "\x9f" or each in "\ufffe\uffff"}


@pytest.mark.parametrize(("count", "calls"), [(0, []), (10, [10]), (11, [10, 1]), (25, [10, 10, 5])])
def test_a_call_has_at_most_ten_letters(count: int, calls: list[int]) -> None:
    double, failed = send(letters(count))
    assert [len(call) for call in double.calls] == calls
    assert double.sqs_message_ids() == [f"id-{number}" for number in range(count)]
    assert failed == {}


def test_a_call_has_at_most_a_mebibyte() -> None:
    double, _ = send(letters(5, "x" * 400_000))
    assert [len(call) for call in double.calls] == [2, 2, 1]


def test_the_queue_is_looked_up_once_and_only_when_a_letter_goes() -> None:
    double = SqsDouble()
    box = LetterBox(double, "lean-ops-dev-dlq", Bodies())
    box.send([], Watch().patience())
    assert double.asked == 0
    box.send(letters(11), Watch().patience())
    assert double.asked == 1


def test_just_the_refused_letters_go_again() -> None:
    double, failed = send(letters(3), {1})
    assert [len(call) for call in double.calls] == [3, 1]
    assert sorted(double.sqs_message_ids()) == ["id-0", "id-1", "id-2"]
    assert failed == {}


def test_a_letter_that_is_its_sender_s_fault_goes_once() -> None:
    double, failed = send(letters(3), {1}, sender_fault=True)
    assert len(double.calls) == 1
    assert failed == {1: "InternalError: no"}


@pytest.mark.parametrize("error", [THROTTLED, TIMED_OUT, client_error("RequestThrottled", 403)])
def test_a_call_that_may_succeed_later_goes_again(error: Exception) -> None:
    double, failed = send(letters(2), error)
    assert [len(call) for call in double.calls] == [2, 2]
    assert failed == {}


def test_one_letter_that_spoils_a_call_does_not_keep_the_others_out() -> None:
    unwanted = client_error("InvalidMessageContents")
    double, failed = send(letters(3), unwanted, set(), unwanted)
    assert double.sqs_message_ids() == ["id-0", "id-2"]
    assert list(failed) == [1]
    assert "InvalidMessageContents" in failed[1]


def test_a_queue_that_may_not_be_written_to_fails_every_letter() -> None:
    double, failed = send(letters(2), *[DENIED] * 3)
    assert len(double.calls) == 3
    assert sorted(failed) == [0, 1]


def test_a_letter_of_which_the_answer_says_nothing_is_not_sent() -> None:
    class Silent(SqsDouble):
        def send_message_batch(self, **asked: object) -> dict[str, object]:
            super().send_message_batch(**asked)
            return {"Successful": [{"Id": "0"}]}

    failed = LetterBox(Silent(), "lean-ops-dev-dlq", Bodies()).send(letters(2), Watch().patience())
    assert list(failed) == [1]


def test_a_body_too_large_to_travel_is_kept_and_its_beginning_goes() -> None:
    bodies, body = Bodies(), "é" * (MOST_BYTES // 2)
    double, failed = send([letter(body=body), letter("id-1")], bodies=bodies)
    assert failed == {}
    assert bodies.kept == {"oversized/events/id-0.json": body.encode()}
    assert double.attributes()[0]["body_ref"] == "oversized/events/id-0.json"
    assert double.taken[0]["MessageBody"] == "é" * (32 * 1024)
    assert "body_ref" not in double.attributes()[1]


@pytest.mark.parametrize(("bytes_left", "kept"), [(0, 0), (-1, 1)])
def test_a_body_travels_whole_as_long_as_it_fits_with_its_attributes(bytes_left: int, kept: int) -> None:
    said = sum(len(name) + len("String") + len(value) for name, value in letter().attributes().items())
    bodies = Bodies()
    send([letter(body="x" * (MOST_BYTES - said - bytes_left))], bodies=bodies)
    assert len(bodies.kept) == kept


def test_a_letter_whose_body_can_not_be_kept_does_not_go() -> None:
    double, failed = send([letter(body="x" * MOST_BYTES), letter("id-1")], bodies=Bodies(DENIED))
    assert double.sqs_message_ids() == ["id-1"]
    assert list(failed) == [0]


def test_a_hostile_name_stays_in_its_folder() -> None:
    hostile = Letter("../../x", "a/../b", REASON, "{}", 1)
    assert hostile.body_key() == "oversized/a____b/______x.json"
