"""The demo, twice on one home: exact books in every zone, and a home that every other command works on."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from tests.e2e.cli import CommandLine, schema_of
from tests.e2e.demo_books import (
    DAYS,
    DRIFT,
    ONCE_MORE,
    Looked,
    Told,
    books,
    counts_of,
    fates,
    hops,
    ingested,
    ledger,
    rows_of,
    sent_as,
    services_of,
    suggested,
    tell,
)

from lean_ops.entrypoints.commands.demo import _leave
from lean_ops.entrypoints.commands.demo_ending import Ending
from lean_ops.entrypoints.console import Console
from lean_ops.entrypoints.context import App
from lean_ops.ledger.oracle import Expected, encode_line
from lean_ops.model.batch import Counts, Zone
from lean_ops.operate.demo import TOPICS
from lean_ops.operate.demo_folder import DemoFolder
from lean_ops.operate.generate.families import FAMILIES
from lean_ops.operate.generate.kinds import Kind

pytestmark = pytest.mark.e2e

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("demo") / "home")


# Each of these is the home's state that the next one begins with, so tests may come in any order.


@pytest.fixture(scope="module")
def first(command_line: CommandLine) -> Told:
    """The first demo, on a home that is not there yet."""
    return tell(command_line)


@pytest.fixture(scope="module")
def looked(command_line: CommandLine, first: Told) -> Looked:
    return Looked(
        status=command_line.json("status"),
        history=command_line.json("history"),
        doctor=command_line.json("doctor"),
        trace=command_line.json("trace", "--key", first.document["trace"]["idempotency_key"]),
        errors={topic: command_line.json("errors", topic)["totals"] for topic in TOPICS},
        drift={topic: command_line.json("drift", topic, "--limit", "100") for topic in TOPICS},
        curated={topic: rows_of(command_line, f"curated.{topic}") for topic in TOPICS},
        curated_errors=rows_of(command_line, "curated.errors"),
    )


@pytest.fixture(scope="module")
def tried(command_line: CommandLine, first: Told, looked: Looked) -> dict[str, str]:
    """What each suggested command said."""
    assert looked.status
    return {shlex.join(words): command_line.run(*words) for words in suggested(command_line, first)}


@pytest.fixture(scope="module")
def second(command_line: CommandLine, tried: dict[str, str]) -> Told:
    """Another demo on the same home."""
    assert tried
    return tell(command_line)


def test_the_acts_have_exactly_the_counts_that_their_data_foretells(first: Told) -> None:
    day_one, schemas, run, day_two, again = first.acts
    assert day_one["ingested"] == ingested(0)
    waiting = [
        {"topic": topic, "records": days[0].counts(Zone.RAW).inserted, "reason": "no schema deployed"}
        for topic, days in DAYS.items()
    ]
    assert day_one["run"] == {"run_id": None, "topics": [], "waiting": waiting}
    assert schemas["schemas"] == [{"topic": topic, "schema_version": "1.0.0", "activated": True} for topic in TOPICS]
    assert counts_of(run["run"]) == hops(0)
    assert day_two["ingested"] == ingested(1)
    assert counts_of(again["run"]) == hops(1)
    assert [act["run"]["waiting"] for act in (run, again)] == [[], []]


def test_the_ledger_balances_and_agrees_with_the_data(first: Told) -> None:
    assert first.document["ledger"] == ledger(books(1))
    found = first.document["fates"]
    assert found == fates(books(1))
    assert sum(found.values()) == 2 * found["bodies"]


def test_each_act_is_announced_in_a_line_and_every_body_is_accounted_for(first: Told) -> None:
    assert [line[:2] for line in first.said if re.match(r"\d\. ", line)] == ["1.", "2.", "3.", "4.", "5."]
    assert "1903 bodies came in = 1578 rows in Curated + 77 replaced by a newer version + 39 superseded" in (
        "\n".join(first.said)
    )
    assert any(line.endswith("3 topics, 9 zones: everything balances") for line in first.said)


def test_every_message_is_as_foretold(first: Told) -> None:
    verified, counted = first.document["verified"], first.document["fates"]
    assert (verified["matches"], verified["unknown"], verified["problems"]) == (True, 0, {})
    found = {line["fate"]: (line["expected"], line["found"]) for line in verified["fates"]}
    expected = {
        "dead_letter": counted["dead_letters"],
        "duplicate": counted["duplicates"],
        "parse_error": counted["parse_errors"],
        "curated": counted["curated"],
        "superseded": counted["replaced"] + counted["superseded"],
        "error": counted["curated_errors"],
    }
    assert found == {fate: (count, count) for fate, count in expected.items()}
    assert verified["lines"] == counted["bodies"]
    words = f"as `lean-ops verify` does: {verified['messages']} messages as the oracle says"
    assert any(line.endswith(words) for line in first.said)


def test_a_demo_fails_if_a_message_is_not_as_foretold_or_was_not_foretold(
    command_line: CommandLine, first: Told, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = DemoFolder(shutil.copytree(command_line.home / "demo", tmp_path / "demo"))
    lines = [msgspec.json.decode(line, type=Expected) for line in folder.fates()[0].read_bytes().splitlines()]
    refused, untold = (first.days("orders")[1].first(kind) for kind in (Kind.BROKEN_RULE, Kind.CDE_NULL))
    lines[lines.index(refused)] = msgspec.structs.replace(refused, reason="TYPE_CAST")
    lines.remove(untold)
    folder.fates()[0].write_bytes(b"".join(map(encode_line, lines)))
    call = App(Console(False), lambda _: services_of(command_line))
    verified = Ending(call, folder, TOPICS).verified()
    assert {row["message_id"]: row["differs"] for row in verified["shown"]} == {
        refused.message_id: ["reason"],
        untold.message_id: ["unknown"],
    }
    said = capsys.readouterr().out
    assert f"message {refused.message_id}, " in said
    assert f"does: 1 of {verified['messages']} messages differ, and no line knows of 1 more message\n" in said
    with pytest.raises(typer.Exit):
        _leave(call, {**first.document, "verified": verified})
    (folder.path / ".fates-1.jsonl.partial").touch()  # a demo that was stopped may have sent more
    assert Ending(call, folder, TOPICS).verified()["differences"] == 1


def test_the_traced_order_came_three_times_was_corrected_and_has_a_late_older_version(first: Told) -> None:
    trace = first.document["trace"]
    one, two = first.days("orders")
    assert sorted(copy["fate"] for copy in trace["copies"]) == ["duplicate"] * 2 + ["standardized"] * 4
    key = one.first(Kind.NEW).idempotency_key or ""
    corrections = [it.message_id for it in two.told if (it.kind, it.idempotency_key) == (Kind.CORRECTION, key)]
    overtaken = next(message_id for message_id in corrections if message_id != two.current[key])
    assert [(row["message_id"], row["fate"], row["current"]) for row in trace["curated"]] == [
        (two.first(Kind.LATE).message_id, "superseded", False),
        (one.first(Kind.NEW).message_id, "replaced", False),
        (overtaken, "superseded", False),
        (two.current[key], "curated", True),
    ]
    assert trace["parse_errors"] == trace["curated_errors"] == trace["dead_letters"] == []
    shown = first.said[first.said.index(f"idempotency_key {trace['idempotency_key']}") :]
    assert shown.index("") <= 34


def test_every_reading_command_works_on_the_home_and_says_the_same(first: Told, looked: Looked) -> None:
    expected = books(1)
    zones = ("raw_rows", "standardized_rows", "curated_rows")
    assert {row["topic"]: (row["gate"], *(row[name] for name in zones), row["pending"]) for row in looked.status} == {
        topic: ("open", *(expected[topic, zone].inserted for zone in Zone), 0) for topic in TOPICS
    }
    assert sorted((row["topic_name"], row["zone"], row["status"]) for row in looked.history) == [
        (topic, zone, "SUCCEEDED") for topic in TOPICS for zone in ("curated", "standardized") for _ in (1, 2)
    ]
    assert all(check["ok"] for check in looked.doctor)
    assert looked.trace == first.document["trace"]


@pytest.mark.parametrize("topic", TOPICS)
def test_errors_and_drift_are_those_that_were_sent(looked: Looked, topic: str) -> None:
    day = DAYS[topic][1]
    assert {row["error_type"]: row["records"] for row in looked.errors[topic]} == {
        error_type: count for zone in Zone for error_type, count in day.errors(zone).items()
    }
    drift = looked.drift[topic]
    newest = {row["batch_id"] for row in drift[:1]}
    names = ("kind", "json_pointer", "new_value", "records")
    assert sorted(tuple(row[name] for name in names) for row in drift if row["batch_id"] in newest) == DRIFT[topic]


# what Curated holds


@pytest.mark.parametrize("topic", TOPICS)
def test_curated_has_the_newest_version_of_every_key_and_nothing_else(first: Told, looked: Looked, topic: str) -> None:
    rows = looked.curated[topic]
    current = first.days(topic)[1].current
    assert len(rows) == len(current)
    assert {row["idempotency_key"]: row["message_id"] for row in rows} == current


def masked(text: str) -> str:
    return "*" * (len(text) - 4) + text[-4:]


def order_of(payload: Any) -> dict[str, Any]:
    return {
        "order_id": "EU-00000000",
        "customer_id": payload["customer"]["id"],
        "customer_email": masked(payload["customer"]["email"]),
        "status": payload["status"],
        "amount": Decimal(payload["amount"]),
        "currency": payload["currency"],
        "item_count": payload["items"]["count"],
        "express": payload["shipping"]["express"],
        "ordered_on": date.fromisoformat(payload["orderDate"]),
        "updated_at": datetime.fromisoformat(payload["last_updated_ts"]),
    }


def event_of(payload: Any) -> dict[str, Any]:
    event = payload["event"]
    return {
        "session_id": payload["sessionId"],
        "user_id": "u-0",
        "event_type": event["eventType"],
        "event_timestamp": datetime.fromisoformat(event["timestamp"]),
        "application_id": event["applicationId"],
        "ip_address": masked(event["metadata"]["ipAddress"]),
        "device_id": "d-0",
        "user_agent": event["metadata"]["userAgent"],
        "period_reference": payload["_metadata"]["periodReference"],
        "correlation_id": payload["_metadata"]["correlationId"],
    }


def reading_of(payload: Any) -> dict[str, Any]:
    return {
        "meter_id": "meter-00000000",
        "firmware": payload["meter"]["fw-version"],
        "measured_at": datetime.fromtimestamp(payload["measuredAt"] / 1000, UTC),
        "value": Decimal(payload["reading"]["value"]),
        "unit": payload["reading"]["unit"],
        "quality": float(payload["reading"]["quality"]),
        "estimated": payload["reading"]["estimated"],
        "battery_mv": payload["meter"]["batteryMillivolt"],
    }


@pytest.mark.parametrize(
    ("topic", "expected_of"), [("events", event_of), ("orders", order_of), ("readings", reading_of)]
)
def test_a_corrected_keys_row_has_the_corrections_values_typed_and_protected(
    first: Told, looked: Looked, topic: str, expected_of: Any
) -> None:
    one, two = first.days(topic)
    key = one.first(Kind.NEW).idempotency_key or ""
    (row,) = (row for row in looked.curated[topic] if row["idempotency_key"] == key)
    correction, body = sent_as(two, two.current[key])
    assert correction.kind == Kind.CORRECTION
    expected = expected_of(json.loads(body, parse_float=str)["payload"])
    found = {name: row[name] for name in expected}
    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }
    assert (row["message_id"], row["_schema_version"]) == (correction.message_id, "1.0.0")
    assert row["first_seen_ts"] < row["last_updated_ts"]


def test_a_body_that_breaks_two_rules_is_one_error_with_both_reasons_and_no_personal_data(
    first: Told, looked: Looked
) -> None:
    two = first.days("orders")[1]
    line, body = sent_as(two, two.first(Kind.COMBINED).message_id)
    (row,) = (row for row in looked.curated_errors if row["message_id"] == line.message_id)
    assert (row["error_type"], row["error_fields"]) == ("RULE_VIOLATION", ["amount", "currency"])
    assert row["error_message"] == "amount: '-4.50' is below 0; currency: 'euro' does not match [A-Z]{3}"
    email = json.loads(body)["payload"]["customer"]["email"]
    assert json.loads(row["raw_record"])["customer_email"] == masked(email)
    assert email not in row["raw_record"]


# what to do next


def test_every_suggested_command_works(tried: dict[str, str]) -> None:
    names = ["status", "errors", "drift", "reconcile", "reconcile", *["query"] * 5, "verify", "trace", "trace"]
    assert [words.partition(" ")[0] for words in tried] == [*names, "ingest", "run"]
    for words, text in tried.items():
        assert "nothing" not in text, words
        assert not words.startswith("reconcile") or "3 topics, 9 zones: everything balances" in text
    *_, verify, of_message, of_key, ingest, run = tried.values()
    assert verify.endswith(" messages as the oracle says\n")
    assert "curated_error: RULE_VIOLATION: amount: '-4.50' is below 0" in of_message
    # One key: its message three times, two corrections and a late older version.
    assert of_key.count("raw copy") == 6
    records = ONCE_MORE.records_in
    assert f"{records} lines: {records} in RAW" in ingest
    assert f"orders: {records} in = 0 standardized + {records} duplicates + 0 errors; 0 in = 0 new" in run


def test_a_second_demo_doubles_the_books(command_line: CommandLine, first: Told, second: Told) -> None:
    day_one, schemas, what_waited, day_two, again = second.acts
    assert day_one["ingested"] == ingested(0)
    assert counts_of(day_one["run"]) == hops(0)
    assert not any(schema["activated"] for schema in schemas["schemas"])
    assert what_waited["run"] == {"run_id": None, "topics": [], "waiting": []}
    assert day_two["ingested"] == ingested(1)
    assert counts_of(again["run"]) == hops(1)
    records = ONCE_MORE.records_in
    expected = books(2, orders={Zone.RAW: Counts(records, records), Zone.STANDARDIZED: ONCE_MORE})
    assert second.document["ledger"] == ledger(expected)
    assert second.document["fates"] == fates(expected)
    assert second.document["trace"]["idempotency_key"] != first.document["trace"]["idempotency_key"]
    assert "nothing new" in command_line.run("run")


def test_a_second_demo_compares_what_both_have_sent(first: Told, second: Told) -> None:
    once, twice = first.document["verified"], second.document["verified"]
    assert (twice["matches"], twice["unknown"], twice["redelivered"]) == (True, 0, ONCE_MORE.records_in)
    assert twice["lines"] == 2 * once["lines"]
    assert second.document["next"][-5].count("--fates ") == 2


def test_a_home_with_an_own_topic_of_the_same_name_is_left_alone(tmp_path: Path) -> None:
    command_line = CommandLine(tmp_path / "home")
    schema = tmp_path / "orders.json"
    schema.write_text(schema_of("orders"))
    command_line.run("schema", "submit", "orders", str(schema))
    said = command_line.run("demo", code=2)
    assert "found orders" in said
    assert "Choose another home" in said
    assert not (command_line.home / "demo").exists()


def test_an_installed_wheel_brings_the_example_schemas(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, check=True, capture_output=True, cwd=REPOSITORY)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    script = "from lean_ops.operate.generate.families import example_schemas; print(example_schemas())"
    found = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(installed)},
    )
    assert Path(found.stdout.strip()) == installed / "lean_ops" / "examples"
    for name in FAMILIES:
        packaged = json.loads((installed / "lean_ops" / "examples" / f"{name}.json").read_bytes())
        assert packaged["table_name"] == name
