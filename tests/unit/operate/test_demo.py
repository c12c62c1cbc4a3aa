"""The demo's data does what it says it will, by the product's own pure decisions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lean_ops.ingest.body import decide
from lean_ops.model.batch import Counts
from lean_ops.model.envelope import DeadLetter
from lean_ops.model.errors import TerminalError
from lean_ops.model.schema import parse_schema
from lean_ops.operate.demo import TOPICS, Day, Kind, example_schemas, expected_drift, two_days
from lean_ops.standardize.payload import Refusal, parse_payload

STARTED = datetime(2026, 2, 3, 23, 59, 30, tzinfo=UTC)
LIMIT = 1024 * 1024


class Books:
    """Two days through the door and the parser, first copies only."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()

    def take(self, day: Day) -> tuple[Counts, Counts, list[str]]:
        errors: list[str] = []
        raw = inserted = duplicates = 0
        for sent in day.sent:
            outcome = decide(sent.body, day.topic, 0, LIMIT)
            if isinstance(outcome, DeadLetter):
                errors.append(str(outcome.error_type))
                continue
            raw += 1
            message = (outcome.message_id, outcome.publish_time)
            payload = outcome.json_payload
            parsed = parse_payload(None if payload is None else payload.encode())
            if message in self.seen:
                duplicates += 1
            elif isinstance(parsed, Refusal):
                errors.append(parsed.error_type)
            else:
                inserted += 1
            self.seen.add(message)
        refused = len(day.sent) - raw
        door = Counts(records_in=len(day.sent), inserted=raw, errors=refused)
        parser = Counts(raw, inserted, duplicates=duplicates, errors=len(errors) - refused)
        return door, parser, sorted(errors)


@pytest.mark.parametrize("topic", TOPICS)
def test_every_body_gets_the_fate_that_its_day_foretells(topic: str) -> None:
    books = Books()
    for day in two_days(topic, STARTED):
        assert books.take(day) == (day.raw, day.standardized, sorted(day.errors.elements()))
        assert day.raw.balanced
        assert day.standardized.balanced


def test_the_second_day_has_every_kind_and_no_two_topics_have_the_same_numbers() -> None:
    kinds = {topic: two_days(topic, STARTED)[1].kinds for topic in TOPICS}
    assert all(list(counts) == list(Kind) for counts in kinds.values())
    assert len({tuple(counts.values()) for counts in kinds.values()}) == len(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_start_makes_the_same_bodies_and_another_shares_no_message_and_no_key(topic: str) -> None:
    def names(start: datetime) -> set[str | None]:
        return {name for day in two_days(topic, start) for sent in day.sent for name in (sent.message_id, sent.key)}

    assert two_days(topic, STARTED) == two_days(topic, STARTED)
    assert names(STARTED) & names(STARTED + timedelta(seconds=1)) == {None}


@pytest.mark.parametrize("topic", TOPICS)
def test_payloads_have_every_leaf_that_the_example_schema_declares(topic: str) -> None:
    schema = parse_schema((example_schemas() / f"{topic}.json").read_bytes(), topic)
    payload = json.loads(two_days(topic, STARTED)[0].first(Kind.NEW).body)["payload"]
    for pointer in schema.declared_pointers():
        value = payload
        for part in pointer.split("/")[1:]:
            assert part in value, pointer
            value = value[part]


def test_messages_are_published_on_their_day_and_late_ones_before_the_first() -> None:
    def dates(day: Day, kind: Kind) -> set[str]:
        return {json.loads(sent.body)["publish_time"][:10] for sent in day.sent if sent.kind is kind}

    one, two = two_days("orders", STARTED)
    assert dates(one, Kind.NEW) == dates(one, Kind.RETRY) == dates(two, Kind.RETRY) == {"2026-02-01"}
    assert dates(two, Kind.NEW) == dates(two, Kind.CORRECTION) == {"2026-02-02"}
    assert dates(two, Kind.LATE) == {"2026-01-29", "2026-01-30"}


def test_the_first_key_of_day_one_comes_back_as_retry_correction_and_late_arrival() -> None:
    one, two = two_days("orders", STARTED)
    key = one.first(Kind.NEW).key
    assert sorted(sent.kind for sent in one.sent if sent.key == key) == [Kind.NEW, Kind.RETRY]
    assert sorted(sent.kind for sent in two.sent if sent.key == key) == [Kind.CORRECTION, Kind.LATE, Kind.RETRY]


def test_drift_is_foretold_by_pointer() -> None:
    assert list(expected_drift(two_days("orders", STARTED)[1])) == [
        ("NEW_COLUMN", "/loyalty/tier", 7),
        ("NEW_COLUMN", "/loyalty/points", 7),
        ("TYPE_CHANGE", "/customer/id", 4),
    ]


def test_example_schemas_are_found_in_the_package_before_the_repository(tmp_path: Path) -> None:
    package = tmp_path / "src" / "lean_ops"
    with pytest.raises(TerminalError, match="example schemas are missing"):
        example_schemas(package)
    for folder in (tmp_path / "schemas", package / "examples"):
        folder.mkdir(parents=True)
        for topic in TOPICS:
            (folder / f"{topic}.json").touch()
        assert example_schemas(package) == folder
