"""Ingestion on AWS from end to end: whatever fails on the way, every message is in RAW or among the dead letters."""

from __future__ import annotations

import base64
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.aws_local.cloud import STREAM, LocalAws
from tests.aws_local.faults import Faults
from tests.aws_local.firehose import CALL_FAULTS, REFUSES, TRANSFORM_FAULTS
from tests.aws_local.poller import KINDS, POISONED
from tests.e2e.ingestion_books import Books
from tests.e2e.ingestion_stage import Stage, wait_until
from tests.e2e.ingestion_story import ALL_TOPICS, LATE_TOPIC, RAW, make_story
from tests.integration.aws.bridge_scene import BridgeScene
from tests.servers.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

MESSAGES = int(os.environ.get("LEAN_OPS_TESTS_MESSAGES", "20000"))
SEED = int(os.environ.get("LEAN_OPS_TESTS_SEED", "20260206"))
# On a free machine of two cores it takes less than three minutes; others may be busy with something else.
PATIENCE_SECONDS = 900


@pytest.fixture
def stage(
    pubsub: Server,
    elasticmq: Server,
    dynamodb: Server,
    seaweed: Server,
    strict_glue: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Stage:
    faults = Faults(SEED)
    aws = LocalAws(elasticmq, dynamodb, seaweed, strict_glue, tmp_path, faults)
    for name, value in aws.servers_environ().items():
        monkeypatch.setenv(name, value)
    aws.make()
    for topic in ALL_TOPICS:
        aws.lake.ensure_raw(topic)
    servers = (pubsub, elasticmq, seaweed)
    scene = BridgeScene(pubsub, aws.sqs, aws.s3, ALL_TOPICS, servers, aws.deployment.environment)
    scene.make_topics()
    return Stage(aws, scene, faults)


def test_no_message_is_lost_whatever_fails(stage: Stage) -> None:
    story, clock = make_story(MESSAGES, SEED), Clock()
    third = MESSAGES // 3
    with stage.running():
        _put_what_is_no_record(stage)
        stage.publish(story.published[:third])
        stage.send(story.direct)
        stage.start_bridge()
        for start, end in ((third, 2 * third), (2 * third, None)):
            _wait_for(stage, lambda: stage.is_pulling)  # a bridge that is still starting has nothing to lose
            _wait_for_arrivals(stage, start // 2)
            stage.publish(story.published[start:end])
            stage.kill_bridge()
            assert stage.arrived() < len(stage.published), "nothing was under way when the bridge was killed"
            clock.note("until the bridge was killed")
            stage.start_bridge()
            _open_late_queue(stage)
        _wait_for(stage, lambda: stage.arrived() == len(stage.published) - _beside_the_queues(stage))
        clock.note("until all was in the queues")
        _wait_for(stage, lambda: _is_all_in(stage))
        clock.note("until all had its place")
        stage.end_bridge()
        _wait_for(stage, lambda: _is_over(stage))
        clock.note("until nothing moved any more")
        _check(stage)
        clock.note("to check it")
    print(clock.said())
    _check_faults(stage)


def _check(stage: Stage) -> None:
    books = Books(stage)
    print(f"\n{books.summary()}")
    books.check_raw()
    books.check_letters()
    books.check_archive()
    _check_error_output(stage)


class Clock:
    """How long each part of the story took."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._notes: list[tuple[str, float]] = []

    def note(self, what: str) -> None:
        self._notes.append((what, time.monotonic() - self._began))

    def said(self) -> str:
        return "\n".join(["-- seconds since the beginning", *(f"{at:9.0f}  {what}" for what, at in self._notes)])


def _wait_for(stage: Stage, condition: Callable[[], bool]) -> None:
    def holds() -> bool:
        assert not stage.broken(), stage.broken()
        return condition()

    wait_until(holds, PATIENCE_SECONDS, lambda: _state(stage))


def _wait_for_arrivals(stage: Stage, count: int) -> None:
    _wait_for(stage, lambda: stage.arrived() > count)


def _beside_the_queues(stage: Stage) -> int:
    """How many messages no queue takes: they go to the dead letters at once."""
    return sum(one.kind == "oversized for a queue" for one in stage.published.values())


NO_RECORDS = (b"no record at all", b'{"topic_name": "orders"}')


def _put_what_is_no_record(stage: Stage) -> None:
    """Something else than the SQS processor writes to the stream: it must not disturb its neighbours."""
    import boto3

    stream = boto3.client("firehose", endpoint_url=stage.stream.environ()["AWS_ENDPOINT_URL_FIREHOSE"])
    for record in NO_RECORDS:
        while stream.put_record_batch(DeliveryStreamName=STREAM, Records=[{"Data": record}])["FailedPutCount"]:
            continue


def _check_error_output(stage: Stage) -> None:
    """What is no record is there at least once, and nothing else."""
    assert {base64.b64decode(line["rawData"]) for line in stage.sink.errors()} == set(NO_RECORDS)


def _open_late_queue(stage: Stage) -> None:
    """The queue that is missing is made when the bridge has told of it."""
    if LATE_TOPIC not in stage.queues:
        wait_until(
            lambda: any(line.get("topic") == LATE_TOPIC for line in stage.bridge_told("resting")),
            PATIENCE_SECONDS,
            lambda: "the bridge does not tell of the missing queue",
        )
        stage.open_queue(LATE_TOPIC)


def _is_all_in(stage: Stage) -> bool:
    """Whether every good message landed and every dead letter has its row."""
    good = {message_id for message_id, one in stage.published.items() if one.fate == RAW}
    if good - stage.sink.landed:
        return False
    return _has_all_letters(stage)


def _is_over(stage: Stage) -> bool:
    """Whether nothing moves any more: what the bridge sent twice has come to its end too."""
    if stage.in_queues() or not stage.stream.is_idle:
        return False
    return _has_all_letters(stage)


def _has_all_letters(stage: Stage) -> bool:
    books = Books(stage)
    return books.letters_written() >= books.expected_letters().total()


def _check_faults(stage: Stage) -> None:
    """A fault that never happened has shown nothing."""
    counts = stage.faults.counts
    wanted = [REFUSES, *CALL_FAULTS, f"sqs_processor {POISONED}", *(f"sqs_processor {kind}" for kind in KINDS)]
    assert not [kind for kind in wanted if not counts[kind]]
    assert any(counts[f"dlq_processor {kind}"] for kind in KINDS)
    assert any(counts[f"firehose_transform {kind}"] for kind in TRANSFORM_FAULTS)
    assert counts["the bridge is killed"] == 2
    assert stage.seen.receives.total() > len(stage.seen.receives)
    assert max(stage.seen.copies().values()) > 1


def _state(stage: Stage) -> str:
    """For a person who looks at a run that does not end."""
    lost = {id_ for id_, one in stage.published.items() if one.fate == RAW} - stage.sink.landed
    books = Books(stage)
    missing = books.expected_letters() - Counter(map(books.what_it_is, books.letters))
    return (
        f"{stage.arrived()} of {len(stage.published)} arrived, {len(lost)} not landed such as {sorted(lost)[:3]}, "
        f"{stage.in_queues()} in queues, stream idle {stage.stream.is_idle}, "
        f"{missing.total()} letters missing such as {list(missing)[:3]}, faults {dict(stage.faults.counts)}"
    )
