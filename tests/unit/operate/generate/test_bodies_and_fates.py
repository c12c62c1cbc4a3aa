"""The oracle is told from the plan alone; the functions that decide in the pipeline must agree with it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from typing import Any

import msgspec
import pytest
from tests.reference.payload import Refusal, parse_payload
from tests.unit.operate.generate.bodies import EVERY_KIND, Sent, everything, sent_by, story_of

from lean_ops.ingest.archive_file import shown_head
from lean_ops.ingest.body import decide
from lean_ops.ledger.oracle import Expected
from lean_ops.model.envelope import RawRow
from lean_ops.operate.generate.families import FAMILIES
from lean_ops.operate.generate.kinds import Kind

LIMIT = 10 * 1024 * 1024
every_family = pytest.mark.parametrize("family", FAMILIES)


def outcome(body: bytes) -> tuple[str, str | None]:
    """What ingestion and the parser make of a body: the fate that ends its way there, or that it goes on."""
    decided = decide(body, "topic", 1, LIMIT)
    if not isinstance(decided, RawRow):
        return "dead_letter", str(decided.error_type)
    payload = None if decided.json_payload is None else decided.json_payload.encode()
    parsed = parse_payload(payload)
    return ("parse_error", parsed.error_type) if isinstance(parsed, Refusal) else ("goes on", None)


def told_outcome(told: dict[str, Any]) -> tuple[str, str | None]:
    ends = told["fate"] in {"dead_letter", "parse_error"}
    return (told["fate"], told["reason"]) if ends else ("goes on", None)


@every_family
def test_what_ingestion_and_the_parser_make_of_each_body_is_what_is_told(family: str) -> None:
    for sent in everything(family):
        if sent.told["fate"] != "duplicate":
            assert outcome(sent.body) == told_outcome(sent.told), sent.told


@every_family
def test_ids_keys_and_times_are_those_that_ingestion_reads(family: str) -> None:
    for body, told in everything(family):
        decided = decide(body, "topic", 1, LIMIT)
        assert decided.message_id == told.get("message_id"), told
        if isinstance(decided, RawRow) and "idempotency_key" in told:
            assert decided.idempotency_key == told["idempotency_key"], told


@every_family
def test_a_dead_letters_digest_is_that_of_the_text_that_its_row_holds(family: str) -> None:
    letters = [sent for sent in everything(family) if sent.told["fate"] == "dead_letter"]
    assert letters
    for body, told in letters:
        assert told["body_sha256"] == hashlib.sha256(shown_head(body[: 64 * 1024 + 1]).encode()).hexdigest()


@every_family
def test_each_line_is_one_that_verify_takes(family: str) -> None:
    for sent in everything(family):
        msgspec.json.decode(json.dumps(sent.told).encode(), type=Expected)


@every_family
def test_every_kind_and_every_way_to_go_wrong_is_there(family: str) -> None:
    counts = Counter(sent.told["kind"] for sent in everything(family))
    assert counts == {str(kind): count for kind, count in EVERY_KIND.items()}
    for kind in Kind:
        assert len(FAMILIES[family].variants_of(kind)) <= EVERY_KIND[kind], f"some variants of {kind} have no turn"


# copies and versions


def copies_of(sents: list[Sent]) -> dict[tuple[str, str], list[Sent]]:
    """The bodies of each message that lands in RAW, in their order."""
    messages = defaultdict(list)
    for sent in sents:
        if sent.told["fate"] != "dead_letter":
            messages[sent.told["message_id"], sent.told["publish_time"]].append(sent)
    return messages


@every_family
def test_of_a_messages_copies_the_first_has_a_fate_and_the_others_are_duplicates(family: str) -> None:
    found = 0
    for copies in copies_of(everything(family)).values():
        assert [sent.told["fate"] == "duplicate" for sent in copies] == [False] + [True] * (len(copies) - 1)
        found += len(copies) - 1
    assert found > 50


@every_family
def test_an_altered_copy_is_a_later_one_and_greater_as_a_text(family: str) -> None:
    altered = 0
    for first, *later in copies_of(everything(family)).values():
        payloads = [decide(sent.body, "topic", 1, LIMIT).json_payload or "" for sent in (first, *later)]
        assert all(payload >= payloads[0] for payload in payloads)
        altered += sum(payload > payloads[0] for payload in payloads)
    assert altered == EVERY_KIND[Kind.ALTERED_RETRY]


def version(family: str, body: bytes) -> tuple[Any, ...]:
    """What decides between two versions of a key, read from the body by hand."""
    content = json.loads(body)
    content |= {"publish_time": content.get("publishTime") or content.get("publish_time")}
    payload = content["payload"] if isinstance(content["payload"], dict) else json.loads(content["payload"])
    published = content["publish_time"].replace("000999+00:00", "Z")
    at = {
        "events": lambda: payload["event"]["timestamp"],
        "orders": lambda: payload["last_updated_ts"],
        "readings": lambda: payload["measuredAt"],
        "payments": lambda: published,
    }[family]()
    return at, published


@every_family
def test_the_current_version_is_the_newest_and_of_equals_the_later_one(family: str) -> None:
    versions = defaultdict(list)
    for number, (body, told) in enumerate(everything(family)):
        if told["fate"] in {"curated", "superseded"}:
            versions[told["idempotency_key"]].append(((*version(family, body), number), told))
    assert max(map(len, versions.values())) > 3
    for found in versions.values():
        newest = max(found, key=lambda one: one[0])[1]
        assert newest["fate"] == "curated"
        assert [told["fate"] for _, told in found].count("curated") == 1
        assert {told["version"] for _, told in found} == {newest["message_id"]}


def test_a_tie_is_won_by_the_message_that_came_later() -> None:
    sents = sent_by(story_of("orders", {Kind.NEW: 5, Kind.TIE: 5}))
    ties = [sent for sent in sents if sent.told["kind"] == "ties"]
    assert {sent.told["fate"] for sent in ties} <= {"curated", "superseded"}
    by_key = defaultdict(list)
    for sent in sents:
        by_key[sent.told["idempotency_key"]].append(sent)
    for versions in by_key.values():
        assert versions[-1].told["fate"] == "curated"
        assert all(sent.told["fate"] == "superseded" for sent in versions[:-1])


# what is foretold before all of it is processed


def test_what_is_not_processed_waits_and_replaces_nothing() -> None:
    story = story_of("payments", {Kind.NEW: 50, Kind.CORRECTION: 50, Kind.RETRY: 20, Kind.REFUSED: 10})
    half, whole = sent_by(story, processed=65), sent_by(story)
    assert {sent.told["fate"] for sent in half[65:]} == {"pending", "dead_letter"}
    assert not any(sent.told["fate"] == "pending" for sent in half[:65])
    current = {sent.told["message_id"] for sent in half if sent.told["fate"] == "curated"}
    assert current <= {sent.told.get("message_id") for sent in half[:65]}
    assert [sent.body for sent in half] == [sent.body for sent in whole]


def test_a_later_schemas_column_is_told_of_rows_that_came_under_it_only() -> None:
    from tests.unit.operate.generate.bodies import ONE_DAY

    from lean_ops.operate.generate.plan import Segment

    before = story_of("orders", {Kind.DRIFT: 6, Kind.NEW: 4})
    story = before.enhanced().with_segment(Segment("later", {Kind.DRIFT: 6, Kind.NEW: 4}, ONE_DAY))
    values = [sent.told["curated"] for sent in sent_by(story)]
    assert not any("loyalty_tier" in curated for curated in values[:10])
    assert Counter(curated["loyalty_tier"] for curated in values[10:]) == {"gold": 2, None: 8}
