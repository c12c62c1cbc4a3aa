"""The demo, twice on one home: exact books in every zone, and a home that every other command works on."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cli import CommandLine, schema_of

from lean_ops.lake.query import QuerySession
from lean_ops.model.batch import Counts, Zone
from lean_ops.operate.demo import TOPICS, expected_drift, two_days
from lean_ops.operate.demo_day import Day, Kind
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

pytestmark = pytest.mark.e2e

REPOSITORY = Path(__file__).parents[2]
# The numbers do not depend on the start; the message ids do.
DAYS: dict[str, tuple[Day, Day]] = {topic: two_days(topic, datetime(2026, 2, 3, tzinfo=UTC)) for topic in TOPICS}
# Day 1 of orders once more: every message of it is known.
ONCE_MORE = Counts(DAYS["orders"][0].raw.inserted, duplicates=DAYS["orders"][0].raw.inserted)


# what the data foretells


def total(*counts: Counts) -> Counts:
    return Counts(*(sum(asdict(one)[name] for one in counts) for name in asdict(Counts())))


def foretold(day: Day) -> dict[Zone, Counts]:
    return {Zone.RAW: day.raw, Zone.STANDARDIZED: day.standardized, Zone.CURATED: day.curated}


def books(times: int, **more: dict[Zone, Counts]) -> dict[tuple[str, Zone], Counts]:
    """The ledger after so many demos, and more counts of a topic."""
    return {
        (topic, zone): total(more.get(topic, {}).get(zone, Counts()), *(foretold(day)[zone] for day in days * times))
        for topic, days in DAYS.items()
        for zone in Zone
    }


def ledger(expected: dict[tuple[str, Zone], Counts]) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "zone": str(zone),
            **asdict(counts),
            "records_out": counts.records_out,
            "rows": counts.inserted,
            "waiting": None if zone is Zone.RAW else 0,
            "balanced": True,
        }
        for (topic, zone), counts in expected.items()
    ]


def fates(expected: dict[tuple[str, Zone], Counts]) -> dict[str, int]:
    raw, standardized, curated = (
        total(*(counts for (_, each), counts in expected.items() if each is zone)) for zone in Zone
    )
    return {
        "bodies": raw.records_in,
        "curated": curated.inserted,
        "replaced": curated.updated,
        "superseded": curated.superseded,
        "curated_errors": curated.errors,
        "parse_errors": standardized.errors,
        "duplicates": standardized.duplicates,
        "dead_letters": raw.errors,
        "pending_in_standardized": 0,
        "pending_in_raw": 0,
        "not_curated": 0,
    }


def ingested(day: int) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "sent": {kind.name.lower(): count for kind, count in days[day].kinds.items()},
            "lines": days[day].raw.records_in,
            "raw": days[day].raw.inserted,
            "dead_letters": dict(sorted(days[day].errors(Zone.RAW).items())),
        }
        for topic, days in DAYS.items()
    ]


def hops(day: int) -> dict[tuple[str, str], Counts]:
    return {
        (topic, str(zone)): foretold(days[day])[zone]
        for topic, days in DAYS.items()
        for zone in (Zone.STANDARDIZED, Zone.CURATED)
    }


# what the demo has done


@dataclass(frozen=True)
class Told:
    """A demo's document, and what it said meanwhile."""

    document: Any
    said: list[str]

    @property
    def acts(self) -> list[Any]:
        return list(self.document["acts"])

    def days(self, topic: str) -> tuple[Day, Day]:
        """The days that it has sent; keys begin with the time that they are made from."""
        stamp = self.document["trace"]["idempotency_key"].partition("/")[0]
        return two_days(topic, datetime.strptime(f"{stamp}+0000", "%y%m%d%H%M%S%z"))


def tell(command_line: CommandLine) -> Told:
    done = command_line.start("demo", "--json")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return Told(json.loads(done.stdout), done.stderr.splitlines())


def counts_of(run: dict[str, Any]) -> dict[tuple[str, str], Counts]:
    """The books by topic and zone; each has one batch."""
    assert {outcome["status"] for outcome in run["topics"]} <= {"SUCCEEDED"}
    batches = [(outcome["topic"], batch) for outcome in run["topics"] for batch in outcome["batches"]]
    assert len(batches) == len({(topic, batch["zone"]) for topic, batch in batches})
    return {(topic, batch["zone"]): Counts(**batch["counts"]) for topic, batch in batches}


def rows_of(command_line: CommandLine, table: str, column: str = "", value: str | None = None) -> list[dict[str, Any]]:
    """A table's rows, or those with a value in a column; their values have the types that the table gives them."""
    services = Services(load_settings({"home": command_line.home}, environ={}))
    select = f"SELECT * FROM {table}"  # noqa: S608  names of this file
    rows = QuerySession(services.settings.names, services.lake.file).query(select)
    return [row for row in rows if not column or row[column] == value]


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture(scope="module")
def first(command_line: CommandLine) -> Told:
    """The first demo, on a home that is not there yet."""
    return tell(command_line)


def test_the_acts_have_exactly_the_counts_that_their_data_foretells(first: Told) -> None:
    day_one, schemas, run, day_two, again = first.acts
    assert day_one["ingested"] == ingested(0)
    waiting = [
        {"topic": topic, "records": days[0].raw.inserted, "reason": "no schema deployed"}
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
    assert "1890 bodies came in = 1578 rows in Curated + 77 replaced by a newer version + 39 superseded" in (
        "\n".join(first.said)
    )
    assert any(line.endswith("3 topics, 9 zones: everything balances") for line in first.said)


def test_the_traced_order_came_three_times_was_corrected_and_has_a_late_older_version(first: Told) -> None:
    trace = first.document["trace"]
    _, two = first.days("orders")
    assert sorted(copy["fate"] for copy in trace["copies"]) == ["duplicate"] * 2 + ["standardized"] * 3
    assert [(row["message_id"], row["fate"], row["current"]) for row in trace["curated"]] == [
        (two.first(Kind.LATE).message_id, "superseded", False),
        (two.first(Kind.RETRY).message_id, "replaced", False),
        (two.first(Kind.CORRECTION).message_id, "curated", True),
    ]
    assert trace["parse_errors"] == trace["curated_errors"] == trace["dead_letters"] == []
    shown = first.said[first.said.index(f"idempotency_key {trace['idempotency_key']}") :]
    assert shown.index("") <= 30


def test_every_reading_command_works_on_the_home_and_says_the_same(command_line: CommandLine, first: Told) -> None:
    expected = books(1)
    status = command_line.json("status")
    zones = ("raw_rows", "standardized_rows", "curated_rows")
    assert {row["topic"]: (row["gate"], *(row[name] for name in zones), row["pending"]) for row in status} == {
        topic: ("open", *(expected[topic, zone].inserted for zone in Zone), 0) for topic in TOPICS
    }
    history = command_line.json("history")
    assert sorted((row["topic_name"], row["zone"], row["status"]) for row in history) == [
        (topic, zone, "SUCCEEDED") for topic in TOPICS for zone in ("curated", "standardized") for _ in (1, 2)
    ]
    assert all(check["ok"] for check in command_line.json("doctor"))
    key = first.document["trace"]["idempotency_key"]
    assert command_line.json("trace", "--key", key) == first.document["trace"]


@pytest.mark.parametrize("topic", TOPICS)
def test_errors_and_drift_are_those_that_were_sent(command_line: CommandLine, first: Told, topic: str) -> None:
    assert first.acts
    day = DAYS[topic][1]
    totals = command_line.json("errors", topic)["totals"]
    assert {row["error_type"]: row["records"] for row in totals} == {
        error_type: count for zone in Zone for error_type, count in day.errors(zone).items()
    }
    drift = command_line.json("drift", topic, "--limit", "100")
    newest = {row["batch_id"] for row in drift[:1]}
    found = {(row["kind"], row["json_pointer"], row["records"]) for row in drift if row["batch_id"] in newest}
    assert found == set(expected_drift(day))


# what Curated holds


@pytest.mark.parametrize("topic", TOPICS)
def test_curated_has_the_newest_version_of_every_key_and_nothing_else(
    command_line: CommandLine, first: Told, topic: str
) -> None:
    rows = rows_of(command_line, f"curated.{topic}")
    current = first.days(topic)[1].current
    assert len(rows) == len(current)
    assert {row["idempotency_key"]: row["message_id"] for row in rows} == {
        key: sent.message_id for key, sent in current.items()
    }


def masked(text: str) -> str:
    return "*" * (len(text) - 4) + text[-4:]


def order_of(payload: Any) -> dict[str, Any]:
    return {
        "order_id": "EU-000001",
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
        "user_id": "u-1",
        "event_type": event["eventType"],
        "event_timestamp": datetime.fromisoformat(event["timestamp"]),
        "application_id": event["applicationId"],
        "ip_address": masked(event["metadata"]["ipAddress"]),
        "device_id": "d-1",
        "user_agent": event["metadata"]["userAgent"],
        "period_reference": payload["_metadata"]["periodReference"],
        "correlation_id": payload["_metadata"]["correlationId"],
    }


def reading_of(payload: Any) -> dict[str, Any]:
    return {
        "meter_id": "meter-000001",
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
    command_line: CommandLine, first: Told, topic: str, expected_of: Any
) -> None:
    correction = first.days(topic)[1].first(Kind.CORRECTION)
    (row,) = rows_of(command_line, f"curated.{topic}", "idempotency_key", correction.key)
    expected = expected_of(json.loads(correction.body, parse_float=str)["payload"])
    found = {name: row[name] for name in expected}
    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }
    assert (row["message_id"], row["_schema_version"]) == (correction.message_id, "1.0.0")
    assert row["first_seen_ts"] < row["last_updated_ts"]


def test_a_body_that_breaks_two_rules_is_one_error_with_both_reasons_and_no_personal_data(
    command_line: CommandLine, first: Told
) -> None:
    sent = first.days("orders")[1].first(Kind.BROKEN_RULE)
    (row,) = rows_of(command_line, "curated.errors", "message_id", sent.message_id)
    assert (row["error_type"], row["error_fields"]) == ("RULE_VIOLATION", ["amount", "currency"])
    assert row["error_message"] == "amount: '-4.50' is below 0; currency: 'euro' does not match [A-Z]{3}"
    email = json.loads(sent.body)["payload"]["customer"]["email"]
    assert json.loads(row["raw_record"])["customer_email"] == masked(email)
    assert email not in row["raw_record"]


# what to do next


def suggested(command_line: CommandLine, told: Told) -> list[list[str]]:
    """The suggested commands' words behind the home, which must be this one."""
    commands = [shlex.split(command) for command in told.document["next"]]
    assert all(words[1] == "--home" and Path(words[2]).resolve() == command_line.home for words in commands)
    return [words[3:] for words in commands]


def test_every_suggested_command_works(command_line: CommandLine, first: Told) -> None:
    commands = suggested(command_line, first)
    said = {shlex.join(words): command_line.run(*words) for words in commands}
    names = ["status", "errors", "drift", "reconcile", "reconcile", *["query"] * 5, "trace", "trace", "ingest", "run"]
    assert [words[0] for words in commands] == names
    for words, text in said.items():
        assert "nothing" not in text, words
        assert not words.startswith("reconcile") or "3 topics, 9 zones: everything balances" in text
    *_, of_message, of_key, ingest, run = said.values()
    assert "curated_error: RULE_VIOLATION: amount: '-4.50' is below 0" in of_message
    # One key: its message three times, a correction and a late older version.
    assert of_key.count("raw copy") == 5
    records = ONCE_MORE.records_in
    assert f"{records} lines: {records} in RAW" in ingest
    assert f"orders: {records} in = 0 standardized + {records} duplicates + 0 errors; 0 in = 0 new" in run


def test_a_second_demo_doubles_the_books(command_line: CommandLine, first: Told) -> None:
    second = tell(command_line)
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
    script = "from lean_ops.operate.demo import example_schemas; print(example_schemas())"
    found = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(installed)},
    )
    assert Path(found.stdout.strip()) == installed / "lean_ops" / "examples"
    for topic in TOPICS:
        packaged = json.loads((installed / "lean_ops" / "examples" / f"{topic}.json").read_bytes())
        assert packaged["table_name"] == topic
