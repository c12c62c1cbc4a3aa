"""What a queue's message becomes, decided as everywhere and within what a Firehose record takes."""

from __future__ import annotations

import json

import pytest
from tests.unit.aws.scenes import (
    NOW,
    Bodies,
    FirehoseDouble,
    MemoryDeliveries,
    SqsDouble,
    Turn,
    Watch,
    good,
)

from lean_ops.aws.firehose import DeliveryStream
from lean_ops.aws.letters import LetterBox
from lean_ops.ingest.delivery import Batch, Delivery, Message, Source, judge
from lean_ops.ingest.firehose_record import MAX_RECORD_BYTES
from lean_ops.model.envelope import DeadLetter, Refusal

EVENTS = Source("events")
ARRIVED = int(NOW.timestamp())


def message(body: str, sqs_message_id: str = "id-1", source: Source = EVENTS) -> Message:
    return Message(sqs_message_id, source, body, 1)


def refusal(body: str, source: Source = EVENTS) -> DeadLetter:
    outcome = judge(message(body, source=source), ARRIVED)
    assert isinstance(outcome, DeadLetter), outcome
    return outcome


class Scene:
    """A delivery on doubles and one batch of it."""

    def __init__(
        self,
        *turns: Turn,
        letters: SqsDouble | None = None,
        deliveries: MemoryDeliveries | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.stream = FirehoseDouble(*turns)
        self.letters = letters or SqsDouble()
        self.deliveries = deliveries or MemoryDeliveries()
        self.watch = watch or Watch()
        box = LetterBox(self.letters, "lean-ops-dev-dlq", Bodies())
        self.delivery = Delivery(DeliveryStream(self.stream, "stream"), box, self.deliveries, lambda: NOW)

    def run(self, bodies: dict[str, str]) -> tuple[Batch, dict[str, str]]:
        batch = self.delivery.begin(bodies, self.watch.patience())
        for sqs_message_id, body in bodies.items():
            batch.take(message(body, sqs_message_id))
        return batch, batch.deliver()


def test_a_good_body_becomes_its_row_s_record() -> None:
    record = judge(message(good("m-1", {"a": 1})), ARRIVED)
    assert isinstance(record, bytes)
    assert json.loads(record) == {
        "topic_name": "events",
        "message_id": "m-1",
        "idempotency_key": None,
        "period_reference": None,
        "correlation_id": None,
        "publish_time": 1_770_113_730_120_000,
        "ingestion_ts": ARRIVED,
        "json_payload": '{"a": 1}',
    }


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ("not json", Refusal.MALFORMED_JSON),
        ("[]", Refusal.MALFORMED_JSON),
        ("\ud800", Refusal.MALFORMED_JSON),
        ('{"message_id": "m"}', Refusal.INVALID_CONTRACT),
        (good("m", "x" * MAX_RECORD_BYTES), Refusal.OVERSIZED),
    ],
    ids=["no JSON", "no object", "no text", "no payload", "too large"],
)
def test_a_bad_body_is_refused_as_everywhere(body: str, error_type: Refusal) -> None:
    assert refusal(body).error_type is error_type


def test_a_record_may_be_as_large_as_firehose_takes_and_no_larger() -> None:
    longest = MAX_RECORD_BYTES - len(judge(message(good("m", "")), ARRIVED))
    exact = judge(message(good("m", "x" * longest)), ARRIVED)
    assert isinstance(exact, bytes)
    assert len(exact) == MAX_RECORD_BYTES
    assert refusal(good("m", "x" * (longest + 1))).error_type is Refusal.OVERSIZED


def test_a_body_that_fits_and_whose_record_does_not_is_oversized() -> None:
    body = good("m-1", {"a": '"' * 260_000})
    assert len(body) < MAX_RECORD_BYTES
    letter = refusal(body)
    assert letter.error_type is Refusal.OVERSIZED
    assert letter.message_id == "m-1"
    assert "Firehose record" in letter.error_message


def test_every_body_of_a_queue_without_a_topic_breaks_the_contract() -> None:
    source = Source("lean-ops-dev-9", "not a topic name")
    assert refusal(good("m-1"), source) == DeadLetter(Refusal.INVALID_CONTRACT, "not a topic name", "m-1")
    assert refusal("not json", source) == DeadLetter(Refusal.INVALID_CONTRACT, "not a topic name", None)


def test_what_landed_and_what_was_refused_is_remembered_and_what_failed_is_not() -> None:
    scene = Scene(*[{0}] * 40, letters=SqsDouble({0}, sender_fault=True))
    _, failed = scene.run({"a": good("m-a"), "b": good("m-b"), "c": "bad", "d": "bad"})
    assert set(failed) == {"a", "c"}
    assert scene.deliveries.known == {"b", "d"}


def test_what_is_remembered_goes_nowhere() -> None:
    scene = Scene(deliveries=MemoryDeliveries({"a", "c"}))
    batch, failed = scene.run({"a": good("m-a"), "b": good("m-b"), "c": "bad"})
    assert failed == {}
    assert scene.stream.message_ids() == ["m-b"]
    assert scene.letters.taken == []
    assert batch.tallies[EVENTS].repeats == 2


def test_a_store_that_is_out_stops_nothing_is_told_and_is_asked_once() -> None:
    scene = Scene(deliveries=MemoryDeliveries(error=RuntimeError("down")))
    batch, failed = scene.run({"a": good("m-a"), "b": "bad"})
    assert failed == {}
    assert scene.stream.message_ids() == ["m-a"]
    assert scene.letters.sqs_message_ids() == ["b"]
    assert len(batch.store_faults) == 1
    assert "down" in batch.store_faults[0]


def test_a_store_that_breaks_while_messages_land_fails_none_of_them() -> None:
    deliveries = MemoryDeliveries()
    scene = Scene(deliveries=deliveries)
    batch = scene.delivery.begin(["a"], scene.watch.patience())
    batch.take(message(good("m-a"), "a"))
    deliveries.error = RuntimeError("down")
    assert batch.deliver() == {}
    assert "1 messages are not remembered" in batch.store_faults[0]


def test_nothing_is_remembered_when_the_time_is_needed_for_the_answer() -> None:
    scene = Scene(watch=Watch(20, step=4))
    batch, failed = scene.run({"a": good("m-a")})
    assert failed == {}
    assert scene.deliveries.known == set()
    assert batch.store_faults == ["no time left to remember 1 messages"]


def test_a_dead_letter_queue_that_is_out_leaves_time_to_land_the_others() -> None:
    scene = Scene(letters=SqsDouble(*[{0}] * 40))
    _, failed = scene.run({"a": good("m-a"), "b": "bad"})
    assert set(failed) == {"b"}
    assert scene.stream.message_ids() == ["m-a"]
    assert sum(scene.watch.slept) <= 20


def test_everything_is_counted_once() -> None:
    scene = Scene(*[{0}] * 40, deliveries=MemoryDeliveries({"e"}))
    bodies = {"a": good("1"), "b": good("2"), "c": "bad", "d": '{"message_id": "3"}', "e": good("4")}
    batch, failed = scene.run(bodies)
    tally = batch.tallies[EVENTS]
    assert tally.received == 5
    assert (tally.repeats, tally.landed, len(failed)) == (1, 1, 1)
    assert tally.dead_letters == {"MALFORMED_JSON": 1, "INVALID_CONTRACT": 1}
