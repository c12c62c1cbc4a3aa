"""The demo's data does what it says it will, by the product's own pure decisions."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.reference.payload import Refusal, parse_payload

from lean_ops.entrypoints.commands.demo import sent_lines
from lean_ops.entrypoints.commands.demo_ending import in_words, ledger_line
from lean_ops.ingest.body import decide
from lean_ops.ledger.account import TopicAccount, ZoneAccount
from lean_ops.model.batch import Counts, Zone
from lean_ops.model.data_type import Value
from lean_ops.model.envelope import DeadLetter, RawRow
from lean_ops.model.errors import TerminalError
from lean_ops.model.schema import PayloadColumn, Schema, parse_schema
from lean_ops.operate.demo import TOPICS, Day, two_days
from lean_ops.operate.demo_fates import fates_of
from lean_ops.operate.demo_folder import DemoFolder
from lean_ops.operate.generate.families import FAMILIES, example_schemas
from lean_ops.operate.generate.kinds import Kind

STARTED = datetime(2026, 2, 3, 23, 59, 30, 5000, tzinfo=UTC)
LIMIT = 1024 * 1024
SEVERITY = ("CDE_VIOLATION", "TYPE_CAST", "RULE_VIOLATION")


def schema_of(topic: str) -> Schema:
    return parse_schema((example_schemas() / f"{topic}.json").read_bytes(), topic)


def bodies_of(day: Day, kind: Kind | None = None) -> list[bytes]:
    """The bodies of a day, or those of a kind, in their order."""
    bodies = day.content.splitlines()
    return [body for body, line in zip(bodies, day.told, strict=True) if kind in {None, line.kind}]


def text_at(payload: Any, name: str, column: PayloadColumn) -> str | None:
    """A column's text in a payload whose numbers were read as text; nothing if it is missing or blank."""
    value = payload
    for key in column.keys or (name,):
        value = value.get(key) if isinstance(value, dict) else None
    text = value if value is None or isinstance(value, str) else json.dumps(value)
    return text if text and text.strip() else column.default


def values_of(schema: Schema, row: RawRow) -> tuple[dict[str, Value], list[str]]:
    """The typed values of a row, and the types of errors that speak against it, the worst first."""
    payload = json.loads(row.json_payload or "", parse_float=str, parse_int=str)
    asked = {name: getattr(row, name) for name in ("message_id", "idempotency_key", "period_reference")}
    missing = [name for name, value in asked.items() if schema.envelope_column(name).must_be_present and not value]
    values, errors = {}, ["CDE_VIOLATION" for _ in missing]
    for name, column in schema.payload_columns.items():
        text = text_at(payload, name, column)
        if text is None:
            errors += ["CDE_VIOLATION"] * column.must_be_present
            continue
        try:
            values[name] = column.value_of(text)
        except ValueError:
            errors.append("TYPE_CAST")
        else:
            errors += ["RULE_VIOLATION" for _ in filter(None, broken_rules(column, values[name]))]
    return values, sorted(errors, key=SEVERITY.index)


def broken_rules(column: PayloadColumn, value: Any) -> list[bool]:
    return [
        column.enum is not None and value not in map(column.value_of, column.enum),
        column.pattern is not None and not re.fullmatch(column.pattern, value),
        column.min is not None and value < column.value_of(column.min),
        column.max is not None and value > column.value_of(column.max),
    ]


class Books:
    """Days of a topic through the door, the parser and the schema, by the rules of each zone."""

    def __init__(self, topic: str) -> None:
        self.schema = schema_of(topic)
        self.seen: set[tuple[str, int]] = set()
        self.rows: dict[str, Any] = {}

    def take(self, day: Day) -> dict[Zone, tuple[Counts, Counter[str]]]:
        outcomes = [decide(body, day.topic, 0, LIMIT) for body in bodies_of(day)]
        raw = [outcome for outcome in outcomes if isinstance(outcome, RawRow)]
        letters = Counter(str(outcome.error_type) for outcome in outcomes if isinstance(outcome, DeadLetter))
        first, duplicates = self.first_copies(raw)
        parsed = [parse_payload(None if row.json_payload is None else row.json_payload.encode()) for row in first]
        refused = Counter(str(found.error_type) for found in parsed if isinstance(found, Refusal))
        good = [row for row, found in zip(first, parsed, strict=True) if not isinstance(found, Refusal)]
        return {
            Zone.RAW: (Counts(len(outcomes), len(raw), errors=letters.total()), letters),
            Zone.STANDARDIZED: (Counts(len(raw), len(good), 0, duplicates, 0, refused.total()), refused),
            Zone.CURATED: self.merge(good),
        }

    def first_copies(self, rows: list[RawRow]) -> tuple[list[RawRow], int]:
        first = {(row.message_id, row.publish_time): row for row in reversed(rows)}
        new = [row for message, row in first.items() if message not in self.seen]
        self.seen |= first.keys()
        return new, len(rows) - len(new)

    def merge(self, rows: list[RawRow]) -> tuple[Counts, Counter[str]]:
        """The newest version of each key, by the schema's version column, against the rows that are there."""
        judged = [(row, *values_of(self.schema, row)) for row in rows]
        errors = Counter(found[0] for _, _, found in judged if found)
        newest: dict[str, Any] = {}
        for row, values, found in judged:
            if not found:
                version = (values[self.schema.version_column or ""], row.publish_time, row.message_id)
                key = row.idempotency_key or ""
                newest[key] = max(newest.get(key, version), version)
        inserted = newest.keys() - self.rows.keys()
        updated = {key for key in newest.keys() - inserted if newest[key] > self.rows[key]}
        self.rows |= {key: newest[key] for key in inserted | updated}
        superseded = len(rows) - errors.total() - len(inserted | updated)
        return Counts(len(rows), len(inserted), len(updated), 0, superseded, errors.total()), errors


@pytest.mark.parametrize("topic", TOPICS)
def test_every_body_gets_the_fate_that_its_day_foretells_in_every_zone(topic: str) -> None:
    books = Books(topic)
    for day in two_days(topic, STARTED):
        assert books.take(day) == {zone: (day.counts(zone), day.errors(zone)) for zone in Zone}
        assert all(day.counts(zone).balanced for zone in Zone)
        assert {key: message_id for key, (_, _, message_id) in books.rows.items()} == day.current


@pytest.mark.parametrize("started", [STARTED, STARTED + timedelta(seconds=1), STARTED + timedelta(days=500)])
def test_the_curated_books_are_these_whenever_it_starts(started: datetime) -> None:
    counts = {topic: tuple(day.counts(Zone.CURATED) for day in two_days(topic, started)) for topic in TOPICS}
    assert counts == {
        "events": (Counts(290, 290), Counts(287, 239, 20, superseded=12, errors=16)),
        "orders": (Counts(280, 280), Counts(300, 221, 45, superseded=15, errors=19)),
        "readings": (Counts(300, 300), Counts(290, 248, 12, superseded=12, errors=18)),
    }


@pytest.mark.parametrize("topic", TOPICS)
def test_corrections_are_newer_and_late_arrivals_older_than_what_their_key_has(topic: str) -> None:
    def versions(day: Day, kind: Kind) -> list[tuple[str | None, Value]]:
        """Keys, and what the schema's version column reads from their payloads."""
        rows = [decide(body, topic, 0, LIMIT) for body in bodies_of(day, kind)]
        return [(row.idempotency_key, values_of(schema, row)[0][column]) for row in rows if isinstance(row, RawRow)]

    schema = schema_of(topic)
    column = schema.version_column or ""
    one, two = two_days(topic, STARTED)
    known: dict[str | None, Any] = dict(versions(one, Kind.NEW))
    for kind in (Kind.CORRECTION, Kind.LATE):
        found: list[tuple[str | None, Any]] = versions(two, kind)
        assert len(found) == two.kinds[kind]
        assert {version > known[key] for key, version in found} == {kind is Kind.CORRECTION}


@pytest.mark.parametrize("topic", TOPICS)
def test_some_keys_are_corrected_twice_in_one_batch_and_show_the_newer_one(topic: str) -> None:
    two = two_days(topic, STARTED)[1]
    corrections = [line for line in two.told if line.kind == Kind.CORRECTION]
    twice = {key for key, count in Counter(line.idempotency_key for line in corrections).items() if count > 1}
    assert twice
    for key in twice:
        newest = max(
            (line for line in corrections if line.idempotency_key == key), key=lambda it: it.publish_time or ""
        )
        assert two.current[key or ""] == newest.message_id


def test_each_topic_misses_a_critical_element_of_its_own_as_null_or_left_out() -> None:
    fields = {"events": ("event", "userId"), "orders": ("customer", "id"), "readings": ("meter", "id")}
    for topic, (outer, inner) in fields.items():
        day = two_days(topic, STARTED)[1]
        objects = [json.loads(body)["payload"][outer] for body in bodies_of(day, Kind.CDE_NULL)]
        assert {None, "left out"} <= {found.get(inner, "left out") for found in objects}


def test_an_order_that_breaks_two_rules_is_one_error_with_both_reasons() -> None:
    row = decide(bodies_of(two_days("orders", STARTED)[1], Kind.COMBINED)[0], "orders", 0, LIMIT)
    assert isinstance(row, RawRow)
    assert values_of(schema_of("orders"), row)[1] == ["RULE_VIOLATION", "RULE_VIOLATION"]


def test_the_second_day_has_every_kind_that_is_told_and_no_two_topics_have_the_same_numbers() -> None:
    kinds = {topic: two_days(topic, STARTED)[1].kinds for topic in TOPICS}
    assert len({tuple(counts) for counts in kinds.values()}) == 1
    assert len({tuple(counts.values()) for counts in kinds.values()}) == len(TOPICS)


@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_start_makes_the_same_bodies_and_another_shares_no_message_and_no_key(topic: str) -> None:
    def names(start: datetime) -> set[str | None]:
        lines = [line for day in two_days(topic, start) for line in day.told]
        return {name for line in lines for name in (line.message_id, line.idempotency_key)}

    first, again = two_days(topic, STARTED), two_days(topic, STARTED)
    assert [(day.content, day.fates) for day in first] == [(day.content, day.fates) for day in again]
    assert names(STARTED) & names(STARTED + timedelta(seconds=1)) == {None}


@pytest.mark.parametrize("topic", TOPICS)
def test_payloads_have_every_leaf_that_the_example_schema_declares(topic: str) -> None:
    schema = schema_of(topic)
    payload = json.loads(bodies_of(two_days(topic, STARTED)[0])[0])["payload"]
    for pointer in schema.declared_pointers():
        value = payload
        for part in pointer.split("/")[1:]:
            assert part in value, pointer
            value = value[part]


def test_messages_are_published_on_their_day_and_late_ones_before_the_first() -> None:
    def dates(day: Day, kind: Kind) -> set[str]:
        return {line.publish_time[:10] for line in day.told if line.kind == kind and line.publish_time}

    one, two = two_days("orders", STARTED)
    assert dates(one, Kind.NEW) == dates(one, Kind.RETRY) == dates(two, Kind.RETRY) == {"2026-02-01"}
    assert dates(two, Kind.NEW) == {"2026-02-02"}
    assert dates(two, Kind.CORRECTION) <= {"2026-02-01", "2026-02-02", "2026-02-03"}
    assert max(dates(two, Kind.LATE)) < "2026-02-01"


def test_the_first_key_of_day_one_comes_back_as_retry_correction_and_late_arrival() -> None:
    one, two = two_days("orders", STARTED)
    first = one.first(Kind.NEW)

    def kinds(day: Day) -> list[str | None]:
        about = {first.message_id, first.idempotency_key}
        return sorted((line.kind for line in day.told if about & {line.message_id, line.idempotency_key}), key=str)

    assert kinds(one) == [Kind.NEW, Kind.RETRY]
    assert kinds(two) == [Kind.CORRECTION, Kind.CORRECTION, Kind.LATE, Kind.RETRY]
    for kind in (Kind.CORRECTION, Kind.LATE):
        assert two.first(kind).idempotency_key == first.idempotency_key


# what is kept of each run


def days_of(started: datetime, number: int) -> list[Day]:
    return [two_days(topic, started)[number] for topic in TOPICS]


def test_a_runs_bodies_and_fates_are_in_its_folder_once_they_are_sent(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "demo")
    for number in (0, 1):
        days = days_of(STARTED, number)
        with folder.sending(days) as files:
            assert {topic: file.read_bytes() for topic, file in files.items()} == {
                day.topic: day.content for day in days
            }
            assert not folder.fates()
        (told,) = folder.fates()
        assert told.read_bytes() == b"".join(day.fates for day in days)
        assert folder.tells_all


def test_the_fates_of_day_two_tell_of_day_one_as_it_is_by_then() -> None:
    one, two = two_days("orders", STARTED)
    before, after = ([json.loads(line) for line in day.fates.splitlines()] for day in (one, two))
    places = [(line["file"], line["line"]) for line in before]
    assert [(line["file"], line["line"]) for line in after[: len(before)]] == places
    assert {old["fate"] for old in before} == {"curated", "duplicate"}
    replaced = [new for old, new in zip(before, after, strict=False) if old["fate"] != new["fate"]]
    assert [line["fate"] for line in replaced] == ["superseded"] * two.counts(Zone.CURATED).updated


def test_each_run_has_fates_of_its_own_and_one_that_was_stopped_while_sending_has_none(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path)
    with folder.sending(days_of(STARTED, 0)):
        pass
    later = STARTED + timedelta(days=1)
    with pytest.raises(KeyboardInterrupt), folder.sending(days_of(later, 0)):
        raise KeyboardInterrupt
    assert not folder.tells_all
    with folder.sending(days_of(later + timedelta(days=1), 0)):
        pass
    seeds = [json.loads(file.read_bytes().splitlines()[0])["message_id"].split("-")[1] for file in folder.fates()]
    assert [int(seed) - int(seeds[0]) for seed in seeds] == [0, 2 * 86_400]


# how it is told


def account_of(topic: str, *zones: tuple[Counts, int | None]) -> TopicAccount:
    """A topic's books, and how many records of the zone before wait for each zone."""
    parts = zip(Zone, zones, strict=True)
    return TopicAccount(
        topic,
        tuple(ZoneAccount(topic, zone, counts, counts.inserted, waiting=waiting) for zone, (counts, waiting) in parts),
    )


DONE = account_of(
    "a", (Counts(9, 8, errors=1), None), (Counts(8, 6, duplicates=1, errors=1), 0), (Counts(6, 3, 1, 0, 1, 1), 0)
)
WAITING = account_of("b", (Counts(9, 9), None), (Counts(5, 5), 4), (Counts(3, 3), 2))
SHORT = account_of("c", (Counts(7, 7), None), (Counts(7, 6, duplicates=1), 0), (Counts(), None))


def test_fates_add_up_to_all_bodies_also_while_some_wait_or_end_in_standardized() -> None:
    for accounts in ([DONE], [WAITING], [SHORT], [DONE, WAITING, SHORT], []):
        counts = asdict(fates_of(accounts))
        assert counts.pop("bodies") == sum(counts.values())


def test_the_sentence_names_every_fate_that_there_is() -> None:
    assert in_words(fates_of([DONE])) == (
        "9 bodies came in = 3 rows in Curated + 1 replaced by a newer version + 1 superseded + 1 curated errors"
        " + 1 parse errors + 1 duplicates + 1 dead letters"
    )
    assert in_words(fates_of([WAITING, SHORT])) == (
        "16 bodies came in = 3 rows in Curated + 1 duplicates + 6 that end in Standardized"
        " + 2 that wait in Standardized + 4 that wait in RAW"
    )


def test_the_tables_of_what_was_sent_and_of_the_ledger_fit_on_eighty_columns() -> None:
    sent = sent_lines({topic: two_days(topic, STARTED)[1] for topic in TOPICS})
    assert [line["bodies"] for line in sent] == list(two_days("orders", STARTED)[1].kinds)
    counts = Counts(records_in=9999, inserted=9999, updated=99, duplicates=99, superseded=99, errors=99)
    ledger = [ledger_line(ZoneAccount("readings", zone, counts, 9999)) for zone in Zone]
    for lines in (sent, ledger):
        widths = [max(len(str(value)) for value in (name, *(line[name] for line in lines))) for name in lines[0]]
        assert sum(width + 3 for width in widths) - 1 <= 80


@pytest.mark.parametrize("topic", TOPICS)
def test_the_table_says_the_error_that_each_kind_becomes(topic: str) -> None:
    two = two_days(topic, STARTED)[1]
    becomes = {line["bodies"]: line["what becomes of them"] for line in sent_lines({topic: two})}
    for line in two.told:
        words = becomes[line.kind]
        if words.startswith("error "):
            assert (line.fate in {"error", "parse_error"}, f"error {line.reason}") == (True, words)
        else:
            assert (line.reason is not None) is (
                words in {"dead letters", "dead letters, errors", "error, all reasons"}
            )


def test_example_schemas_are_found_in_the_package_before_the_repository(tmp_path: Path) -> None:
    package = tmp_path / "src" / "lean_ops"
    with pytest.raises(TerminalError, match="example schemas are missing"):
        example_schemas(package)
    for folder in (tmp_path / "schemas", package / "examples"):
        folder.mkdir(parents=True)
        for name in FAMILIES:
            (folder / f"{name}.json").touch()
        assert example_schemas(package) == folder
