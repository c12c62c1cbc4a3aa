"""What is made of a dead letter that a queue hands over."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.aws.environment import Deployment, queue_of_arn
from lean_ops.ingest.letter_facts import UNKNOWN_TOPIC, archive_ids, archive_key, facts_of, topic_of
from lean_ops.model.errors import WrongUseError
from lean_ops.model.letter import ReceivedLetter
from lean_ops.model.topic import parse_topic

SENT = datetime(2026, 2, 3, 1, 30, tzinfo=timezone(timedelta(hours=2)))
NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
DEPLOYMENT = Deployment("lean-ops", "dev")
ARN = "arn:aws:sqs:eu-central-1:000000000000:lean-ops-dev-"
BODY = '{"message_id": "m-1", "publish_time": "2026-02-03T10:15:30Z", "payload": {"a": 1}}'
SAID = {
    "error_type": "INVALID_CONTRACT",
    "error_message": "no payload",
    "topic_name": "events",
    "source": "sqs",
    "message_id": "m-7",
    "sqs_message_id": "11-aa",
    "receive_count": "3",
}
LETTER = ReceivedLetter("22-bb", BODY, SENT, 2, SAID)
MOVED = ReceivedLetter("22-bb", BODY, SENT, 6, {"topic_name": "events"}, f"{ARN}orders")


def topic_of_arn(arn: str) -> str:
    return DEPLOYMENT.topic_of_queue(queue_of_arn(arn))


def test_a_letter_is_filed_as_its_sender_says() -> None:
    assert topic_of(LETTER, topic_of_arn) == "events"
    assert archive_ids(LETTER) == ("11-aa", "11-aa-22-bb")
    assert archive_key(LETTER, "events", "11-aa") == "dlq-archive/events/2026-02-02/23/11-aa.json"
    assert facts_of(LETTER, "events", NOW) == {
        "topic_name": "events",
        "message_id": "m-7",
        "error_type": "INVALID_CONTRACT",
        "error_message": "no payload",
        "attributes": SAID,
        "receive_count": 3,
        "source": "sqs",
        "archived_at": "2026-02-03T12:00:00+00:00",
        "sqs_message_id": "22-bb",
        "sent_at": "2026-02-02T23:30:00+00:00",
    }


def test_a_message_that_its_queue_gave_up_on_is_unknown_and_is_read_for_its_id() -> None:
    facts = facts_of(MOVED, "events", NOW)
    assert archive_ids(MOVED) == ("22-bb", "22-bb-22-bb")
    assert (facts["error_type"], facts["message_id"], facts["receive_count"]) == ("UNKNOWN", "m-1", 6)
    assert "lean-ops-dev-orders gave up on it" in facts["error_message"]
    assert facts["attributes"] == {"topic_name": "events", "source_queue": f"{ARN}orders"}
    assert facts["source"] == "sqs"


@pytest.mark.parametrize(
    ("attributes", "arn", "topic"),
    [
        ({"topic_name": "events"}, f"{ARN}orders", "events"),
        ({"topic_name": "Event-Hub.x"}, None, "event_hub_x"),
        ({}, f"{ARN}orders", "orders"),
        ({"topic_name": "../../etc"}, f"{ARN}orders", "orders"),
        ({"topic_name": ""}, None, UNKNOWN_TOPIC),
        ({}, None, UNKNOWN_TOPIC),
        ({"topic_name": "../../etc"}, "arn:aws:sqs:eu-central-1:000000000000:somebody-else", UNKNOWN_TOPIC),
        ({"topic_name": "dlq"}, f"{ARN}dlq", UNKNOWN_TOPIC),
        ({"topic_name": "é"}, "nonsense", UNKNOWN_TOPIC),
    ],
)
def test_a_letter_is_its_topics_or_nobodys(attributes: dict[str, str], arn: str | None, topic: str) -> None:
    assert topic_of(replace(LETTER, attributes=attributes, source_arn=arn), topic_of_arn) == topic


def test_nobodys_letters_can_be_no_topics() -> None:
    with pytest.raises(WrongUseError):
        parse_topic(UNKNOWN_TOPIC)


@pytest.mark.parametrize(
    ("said", "type_", "message"),
    [
        ({"error_type": "OVERSIZED"}, "OVERSIZED", "no reason was given"),
        (
            {"error_type": "SPILT_MILK", "error_message": "oh"},
            "UNKNOWN",
            "an error type that is none, 'SPILT_MILK': oh",
        ),
        ({"error_type": ""}, "UNKNOWN", "an error type that is none, '': "),
        ({"error_message": "oh"}, "UNKNOWN", "never taken: its queue gave up on it and moved it here"),
    ],
)
def test_a_reason_is_what_was_said(said: dict[str, str], type_: str, message: str) -> None:
    facts = facts_of(replace(LETTER, attributes=said), "events", NOW)
    assert (facts["error_type"], facts["error_message"]) == (type_, message)


@pytest.mark.parametrize(
    ("said", "count"), [("0", 0), ("-1", 2), ("²", 2), ("", 2), ("9" * 40, 2), ("1" * 9, 1_000_000)]
)
def test_receives_are_a_number_that_can_be(said: str, count: int) -> None:
    assert facts_of(replace(LETTER, attributes={"receive_count": said}), "events", NOW)["receive_count"] == count


def test_a_source_is_one_that_there_is() -> None:
    assert facts_of(replace(LETTER, attributes={"source": "firehose"}), "events", NOW)["source"] == "firehose"
    assert facts_of(replace(LETTER, attributes={"source": "'; DROP TABLE"}), "events", NOW)["source"] == "sqs"


anything = st.text(st.characters(), max_size=40)


@given(
    st.builds(
        ReceivedLetter,
        anything,
        anything,
        st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  zoned below
        st.integers(0, 10**12),
        st.dictionaries(st.sampled_from(sorted(SAID)) | anything, anything, max_size=10),
        st.none() | anything | anything.map(lambda text: f"{ARN}{text}"),
    )
)
def test_whatever_a_letter_says_it_has_a_safe_place_and_facts_that_can_be_written(letter: ReceivedLetter) -> None:
    topic = topic_of(letter, topic_of_arn)
    for archive_id in archive_ids(letter):
        key = archive_key(letter, topic, archive_id)
        assert re.fullmatch(
            r"dlq-archive/_?[a-z][a-z0-9_]*/[0-9]{4}-[0-9]{2}-[0-9]{2}/[0-9]{2}/[A-Za-z0-9_-]*\.json", key
        )
        assert ".." not in PurePosixPath(key).parts
        assert len(key.encode()) < 1024
    facts = facts_of(letter, topic, NOW)
    json.dumps(facts, ensure_ascii=False).encode()
    assert facts["error_type"] in {"MALFORMED_JSON", "INVALID_CONTRACT", "OVERSIZED", "UNKNOWN"}
