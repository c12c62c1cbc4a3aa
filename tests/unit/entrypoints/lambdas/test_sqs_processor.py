"""The SQS processor: which messages come again, and what is told of a batch."""

from __future__ import annotations

import io
import json
from itertools import count
from typing import Any

import pytest
from aws_lambda_powertools.logging import Logger
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.aws.scenes import (
    DENIED,
    NOW,
    THROTTLED,
    TIMED_OUT,
    Bodies,
    FirehoseDouble,
    MemoryDeliveries,
    SqsDouble,
    Traffic,
    Turn,
    Watch,
    event,
    good,
    record,
)

from lean_ops.aws.environment import Deployment
from lean_ops.aws.firehose import DeliveryStream
from lean_ops.aws.letters import LetterBox
from lean_ops.entrypoints.lambdas import sqs_processor
from lean_ops.entrypoints.lambdas.sqs_processor import LISTED, SqsProcessor
from lean_ops.ingest.delivery import Delivery
from lean_ops.model.errors import TerminalError

# Loggers of one name share what the first of them was given.
NUMBERS = count()
OVERSIZED = good("m-large", "x" * 1_024_000)


class Scene:
    """The function on doubles."""

    def __init__(
        self,
        *turns: Turn,
        letters: SqsDouble | None = None,
        deliveries: MemoryDeliveries | None = None,
        traffic: Traffic | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.stream = FirehoseDouble(*turns)
        self.letters = letters or SqsDouble()
        self.deliveries = deliveries or MemoryDeliveries()
        self.traffic = traffic or Traffic()
        self.watch = watch or Watch()
        self.logged = io.StringIO()
        box = LetterBox(self.letters, "lean-ops-dev-dlq", Bodies())
        delivery = Delivery(DeliveryStream(self.stream, "stream"), box, self.deliveries, lambda: NOW)
        log = Logger(service=f"test-{next(NUMBERS)}", stream=self.logged)
        deployment = Deployment("lean-ops", "dev")
        self.processor = SqsProcessor(deployment, delivery, self.traffic, log, self.watch.sleep, lambda: 0.5)

    def run(self, asked: dict[str, Any]) -> list[str]:
        """The ids that the function answers with."""
        answer = self.processor(asked, self.watch)
        assert list(answer) == ["batchItemFailures"]
        return [str(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.logged.getvalue().splitlines()]


def test_good_messages_land_and_none_comes_again() -> None:
    scene = Scene()
    assert scene.run(event({"a": good("m-a"), "b": good("m-b")})) == []
    assert scene.stream.message_ids() == ["m-a", "m-b"]
    assert scene.letters.taken == []
    record_ = json.loads(scene.stream.taken[0])
    assert record_["topic_name"] == "events"
    assert record_["ingestion_ts"] == int(NOW.timestamp())


def test_with_a_malformed_and_a_refused_one_in_a_batch_the_refused_one_comes_again() -> None:
    # The malformed one is not in the call to Firehose, so positions in the call are not positions in the batch.
    scene = Scene(*[{1}, *[{0}] * 40])
    assert scene.run(event({"id-0": good("m-0"), "id-1": "malformed", "id-2": good("m-2"), "id-3": good("m-3")})) == [
        "id-2"
    ]
    assert scene.stream.message_ids() == ["m-0", "m-3"]
    assert scene.letters.sqs_message_ids() == ["id-1"]


@pytest.mark.parametrize(
    ("body", "error_type", "message_id"),
    [
        ("malformed", "MALFORMED_JSON", None),
        ('{"message_id": "m-1"}', "INVALID_CONTRACT", "m-1"),
        (OVERSIZED, "OVERSIZED", "m-large"),
    ],
    ids=["malformed", "no payload", "oversized"],
)
def test_what_is_refused_goes_to_the_dead_letter_queue_at_once(
    body: str, error_type: str, message_id: str | None
) -> None:
    scene = Scene()
    assert scene.run(event({"id-1": body}, count=2)) == []
    assert scene.stream.calls == []
    said = scene.letters.attributes()[0]
    assert (said["error_type"], said.get("message_id"), said["sqs_message_id"]) == (error_type, message_id, "id-1")
    assert (said["topic_name"], said["source"], said["receive_count"]) == ("events", "sqs", "2")
    assert scene.letters.taken[0]["MessageBody"] == body


def test_a_message_that_the_dead_letter_queue_refuses_comes_again() -> None:
    scene = Scene(letters=SqsDouble(*[DENIED] * 9))
    assert scene.run(event({"a": good("m-a"), "b": "bad", "c": "worse"})) == ["b", "c"]
    assert scene.stream.message_ids() == ["m-a"]


def test_all_of_a_batch_may_come_again_without_an_exception() -> None:
    scene = Scene(*[THROTTLED] * 40)
    assert scene.run(event({"a": good("m-a"), "b": good("m-b")})) == ["a", "b"]


def test_all_of_a_batch_may_be_beyond_judgement_without_an_exception() -> None:
    asked = event({"a": good("m-a"), "b": good("m-b")})
    for each in asked["Records"]:
        del each["body"]
    assert Scene().run(asked) == ["a", "b"]


def test_a_message_beyond_judgement_comes_again_alone() -> None:
    asked = event({"a": good("m-a"), "b": good("m-b"), "c": good("m-c")})
    asked["Records"][1]["body"] = None
    scene = Scene()
    assert scene.run(asked) == ["b"]
    assert scene.stream.message_ids() == ["m-a", "m-c"]


def test_an_empty_batch_is_a_success() -> None:
    assert Scene().run({"Records": []}) == []


def test_a_throttled_call_is_tried_again() -> None:
    scene = Scene(THROTTLED, THROTTLED)
    assert scene.run(event({"a": good("m-a")})) == []
    assert scene.stream.message_ids() == ["m-a"]


def test_a_call_that_timed_out_is_tried_again_and_a_copy_does_no_harm() -> None:
    scene = Scene((TIMED_OUT,))
    assert scene.run(event({"a": good("m-a")})) == []
    assert scene.stream.message_ids() == ["m-a", "m-a"]


def test_when_the_time_runs_out_midway_just_the_rest_comes_again() -> None:
    bodies = {f"id-{number}": good(f"m-{number}") for number in range(1500)}
    scene = Scene(watch=Watch(30, step=6))
    returned = scene.run(event(bodies))
    landed = {f"id-{message_id.removeprefix('m-')}" for message_id in scene.stream.message_ids()}
    assert 0 < len(landed) < 1500
    assert set(returned) == set(bodies) - landed


def test_a_message_that_is_twice_in_a_batch_has_one_fate() -> None:
    asked = {"Records": [record("a", good("m-a")), record("b", "bad"), record("a", good("m-a")), record("b", "bad")]}
    scene = Scene()
    assert scene.run(asked) == []
    assert scene.stream.message_ids() == ["m-a"]
    assert scene.letters.sqs_message_ids() == ["b"]
    assert Scene(*[THROTTLED] * 40, letters=SqsDouble(*[THROTTLED] * 40)).run(asked) == ["b", "a"]


def test_the_same_delivery_again_lands_nothing_twice() -> None:
    scene = Scene()
    asked = event({"a": good("m-a"), "b": "bad"})
    assert scene.run(asked) == []
    assert scene.run(asked) == []
    assert scene.stream.message_ids() == ["m-a"]
    assert scene.letters.sqs_message_ids() == ["b"]


def test_a_copy_under_another_delivery_lands() -> None:
    scene = Scene()
    scene.run(event({"a": good("m-a")}))
    scene.run(event({"b": good("m-a")}))
    assert scene.stream.message_ids() == ["m-a", "m-a"]


@pytest.mark.parametrize("queue", ["9events", "errors", "events_staging"])
def test_a_queue_without_a_topic_sends_all_its_messages_to_the_dead_letters(queue: str) -> None:
    scene = Scene()
    assert scene.run(event({"a": good("m-a"), "b": "bad"}, queue=queue)) == []
    assert scene.stream.calls == []
    for said, message_id in zip(scene.letters.attributes(), ["m-a", None], strict=True):
        assert said["error_type"] == "INVALID_CONTRACT"
        assert said["topic_name"] == f"lean-ops-dev-{queue}"
        assert said.get("message_id") == message_id
    assert scene.traffic.told == []


def test_a_queue_of_somebody_else_has_no_topic() -> None:
    asked = event({"a": good("m-a")})
    asked["Records"][0]["eventSourceARN"] = "arn:aws:sqs:eu-west-1:123456789012:other-events"
    scene = Scene()
    assert scene.run(asked) == []
    assert scene.letters.attributes()[0]["topic_name"] == "other-events"


def test_messages_of_the_dead_letter_queue_do_not_go_round_in_a_circle() -> None:
    scene = Scene()
    assert scene.run(event({"a": "bad"}, queue="dlq")) == ["a"]
    assert scene.letters.taken == []


def test_messages_of_two_queues_have_their_own_topics() -> None:
    asked = {"Records": [record("a", good("m-a"), "one"), record("b", good("m-b"), "Two-2")]}
    scene = Scene()
    scene.run(asked)
    assert [json.loads(each)["topic_name"] for each in scene.stream.taken] == ["one", "two_2"]


def test_a_store_that_is_out_stops_nothing_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene(deliveries=MemoryDeliveries(error=OSError("down")), traffic=Traffic(OSError("down too")))
    assert scene.run(event({"a": good("m-a")})) == []
    assert scene.stream.message_ids() == ["m-a"]
    assert len([line for line in scene.lines() if "store failed" in line["message"]]) == 2
    assert counted(capsys)[("store_faults",)] == 2


def test_the_breaker_is_told_of_a_topic_s_messages_and_failures() -> None:
    scene = Scene(*[{0}] * 40)
    scene.run(event({"a": good("m-a"), "b": good("m-b"), "c": "bad", "d": good("m-d")}))
    assert scene.traffic.told == [("events", int(NOW.timestamp()) // 60, 4, 2)]


def test_the_breaker_is_not_told_when_the_answer_could_come_too_late() -> None:
    scene = Scene(watch=Watch(6.0))
    assert scene.run(event({"a": good("m-a")})) == []
    assert len(scene.traffic.told) == 1
    scene = Scene(watch=Watch(5.9))
    assert scene.run(event({"a": good("m-a")})) == []
    assert scene.traffic.told == []
    assert "no time" in scene.logged.getvalue()


def counted(capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, ...], float]:
    """What was counted, by metric and its own dimensions."""
    found = {}
    for line in capsys.readouterr().out.splitlines():
        told = json.loads(line)
        (metrics,) = told["_aws"]["CloudWatchMetrics"]
        assert metrics["Namespace"] == "LeanOps"
        assert told["service"] == "sqs-processor"
        assert told["deployment"] == "lean-ops-dev"
        own = [told[name] for name in ("topic", "error_type") if name in metrics["Dimensions"][0]]
        found.update({(each["Name"], *own): sum(told[each["Name"]]) for each in metrics["Metrics"]})
    return found


def test_a_batch_is_counted_by_topic(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene(*[{0}] * 40, deliveries=MemoryDeliveries({"e"}))
    scene.run(event({"a": good("1"), "b": good("2"), "c": "bad", "d": "{}", "e": good("3"), "f": "worse"}))
    assert counted(capsys) == {
        ("received", "events"): 6,
        ("repeats", "events"): 1,
        ("landed", "events"): 1,
        ("failures", "events"): 1,
        ("dead_letters", "events", "MALFORMED_JSON"): 2,
        ("dead_letters", "events", "INVALID_CONTRACT"): 1,
    }


def test_the_log_tells_reasons_in_a_bounded_number_of_lines_and_no_payload() -> None:
    scene = Scene(*[THROTTLED] * 40)
    bodies = {f"bad-{number}": f"secret {number}" for number in range(50)}
    scene.run(event({**bodies, **{f"good-{number}": good("m", "secret") for number in range(50)}}))
    lines = scene.lines()
    assert len([line for line in lines if line["message"] == "dead letter"]) == LISTED
    assert len([line for line in lines if line["message"] == "message goes back"]) == LISTED
    assert "secret" not in scene.logged.getvalue()
    (batch,) = [line for line in lines if line["message"] == "batch"]
    assert (batch["topic_name"], batch["received"], batch["failures"]) == ("events", 100, 50)
    assert batch["dead_letters"] == {"MALFORMED_JSON": 50}
    assert batch["function_request_id"] == "request-1"


def test_a_missing_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAN_OPS_PROJECT", "lean-ops")
    monkeypatch.delenv("LEAN_OPS_ENVIRONMENT", raising=False)
    sqs_processor._processor.cache_clear()
    with pytest.raises(TerminalError, match="LEAN_OPS_ENVIRONMENT"):
        sqs_processor.handler({"Records": []}, Watch())


KINDS = st.sampled_from(["good", "malformed", "contract", "unjudged"])
TURNS = st.lists(st.sampled_from([THROTTLED, DENIED]) | st.sets(st.integers(0, 12)), max_size=14)


def body_of(kind: str, number: int) -> str | None:
    return {"good": good(f"m-{number}"), "malformed": "no", "contract": "{}", "unjudged": None}[kind]


@settings(max_examples=300)
@given(st.lists(KINDS, max_size=24), TURNS, TURNS, st.sets(st.integers(0, 24)), st.booleans(), st.floats(1, 90))
def test_every_message_has_exactly_one_fate(
    kinds: list[str], stream: list[Turn], letters: list[Turn], known: set[int], sender_fault: bool, seconds: float
) -> None:
    deliveries = MemoryDeliveries({f"id-{number}" for number in known})
    queue = SqsDouble(*letters, sender_fault=sender_fault)
    scene = Scene(*stream, letters=queue, deliveries=deliveries, watch=Watch(seconds))
    bodies = {f"id-{number}": body_of(kind, number) for number, kind in enumerate(kinds)}
    before = set(deliveries.known)
    returned = scene.run(event(bodies))
    landed = [f"id-{message_id.removeprefix('m-')}" for message_id in scene.stream.message_ids()]
    refused = scene.letters.sqs_message_ids()
    passed_over = before & set(bodies)
    assert sorted([*landed, *refused, *returned, *passed_over]) == sorted(bodies)
    assert deliveries.known == before | set(landed) | set(refused)
