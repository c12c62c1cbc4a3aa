"""The demo, twice on one home: exact books, and a home that every other command works on."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cli import CommandLine, schema_of

from lean_ops.model.batch import Counts
from lean_ops.operate.demo import TOPICS, Day, expected_drift, two_days

pytestmark = pytest.mark.e2e

REPOSITORY = Path(__file__).parents[2]
DEAD_LETTERS = {"MALFORMED_JSON", "INVALID_CONTRACT"}
# The numbers do not depend on the start; the message ids do.
DAYS: dict[str, tuple[Day, Day]] = {topic: two_days(topic, datetime(2026, 2, 3, tzinfo=UTC)) for topic in TOPICS}


def total(*counts: Counts) -> Counts:
    names = ("records_in", "inserted", "updated", "duplicates", "superseded", "errors")
    return Counts(*(sum(getattr(one, name) for one in counts) for name in names))


def books(topic: str, zone: str, counts: Counts) -> dict[str, Any]:
    return {
        "topic": topic,
        "zone": zone,
        "records_in": counts.records_in,
        "records_out": counts.records_out,
        "duplicates": counts.duplicates,
        "superseded": 0,
        "errors": counts.errors,
        "balanced": True,
    }


def ledger(times: int, **more: tuple[Counts, Counts]) -> list[dict[str, Any]]:
    """The ledger after so many demos, and more counts (raw, standardized) of a topic."""
    rows = []
    for topic, days in DAYS.items():
        raw, standardized = more.get(topic, (Counts(), Counts()))
        rows.append(books(topic, "raw", total(raw, *(day.raw for day in days * times))))
        rows.append(books(topic, "standardized", total(standardized, *(day.standardized for day in days * times))))
    return rows


def ingested(day: int) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "sent": {kind.name.lower(): count for kind, count in days[day].kinds.items()},
            "lines": days[day].raw.records_in,
            "raw": days[day].raw.inserted,
            "dead_letters": {name: count for name, count in sorted(days[day].errors.items()) if name in DEAD_LETTERS},
        }
        for topic, days in DAYS.items()
    ]


def counts_of(run: dict[str, Any]) -> dict[str, Counts]:
    assert {outcome["status"] for outcome in run["topics"]} <= {"SUCCEEDED"}
    return {
        outcome["topic"]: total(*(Counts(**batch["counts"]) for batch in outcome["batches"]))
        for outcome in run["topics"]
    }


def standardized(day: int) -> dict[str, Counts]:
    return {topic: days[day].standardized for topic, days in DAYS.items()}


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("demo") / "home")


@pytest.fixture(scope="module")
def first(command_line: CommandLine) -> Any:
    """The document of the first demo on a home that is not there yet."""
    return command_line.json("demo")


def test_the_acts_have_exactly_the_counts_that_their_data_foretells(first: Any) -> None:
    day_one, schemas, run, day_two, again = first["acts"]
    assert day_one["ingested"] == ingested(0)
    waiting = [
        {"topic": topic, "records": days[0].raw.inserted, "reason": "no schema deployed"}
        for topic, days in DAYS.items()
    ]
    assert day_one["run"] == {"run_id": None, "topics": [], "waiting": waiting}
    assert schemas["schemas"] == [{"topic": topic, "schema_version": "1.0.0", "activated": True} for topic in TOPICS]
    assert counts_of(run["run"]) == standardized(0)
    assert day_two["ingested"] == ingested(1)
    assert counts_of(again["run"]) == standardized(1)
    assert [act["run"]["waiting"] for act in (run, again)] == [[], []]


def test_the_ledger_balances_and_agrees_with_the_data(first: Any) -> None:
    assert first["ledger"] == ledger(1)


def test_the_traced_message_came_three_times_and_its_first_copy_won(first: Any) -> None:
    trace = first["trace"]
    assert trace["message_id"].startswith("orders-")
    assert sorted(copy["fate"] for copy in trace["copies"]) == ["duplicate", "duplicate", "standardized"]
    assert len(trace["standardized"]) == 1
    assert trace["parse_errors"] == trace["dead_letters"] == []


def test_every_reading_command_works_on_the_home_and_says_the_same(command_line: CommandLine, first: Any) -> None:
    rows = {topic: total(*(day.standardized for day in days)).inserted for topic, days in DAYS.items()}
    raw = {topic: total(*(day.raw for day in days)).inserted for topic, days in DAYS.items()}
    status = command_line.json("status")
    assert {
        row["topic"]: (row["gate"], row["raw_rows"], row["standardized_rows"], row["pending"]) for row in status
    } == {topic: ("open", raw[topic], rows[topic], 0) for topic in TOPICS}
    history = command_line.json("history")
    assert sorted((row["topic_name"], row["status"]) for row in history) == [
        (topic, "SUCCEEDED") for topic in TOPICS for _ in (1, 2)
    ]
    assert all(check["ok"] for check in command_line.json("doctor"))
    assert command_line.json("trace", first["trace"]["message_id"]) == first["trace"]
    found = command_line.json("query", "SELECT count(*) AS rows FROM standardized.readings")
    assert found == [{"rows": rows["readings"]}]


@pytest.mark.parametrize("topic", TOPICS)
def test_errors_and_drift_are_those_that_were_sent(command_line: CommandLine, first: Any, topic: str) -> None:
    assert first["acts"]
    day = DAYS[topic][1]
    totals = command_line.json("errors", topic)["totals"]
    assert {row["error_type"]: row["records"] for row in totals} == dict(day.errors)
    drift = command_line.json("drift", topic, "--limit", "100")
    newest = {row["batch_id"] for row in drift[:1]}
    found = {(row["kind"], row["json_pointer"], row["records"]) for row in drift if row["batch_id"] in newest}
    assert found == set(expected_drift(day))


def suggested(command_line: CommandLine, document: Any) -> list[list[str]]:
    """The suggested commands' words behind the home, which must be this one."""
    commands = [shlex.split(command) for command in document["next"]]
    assert all(words[1] == "--home" and Path(words[2]).resolve() == command_line.home for words in commands)
    return [words[3:] for words in commands]


def test_the_suggested_commands_work(command_line: CommandLine, first: Any) -> None:
    said = {words[0]: command_line.run(*words) for words in suggested(command_line, first)[:-2]}
    assert list(said) == ["status", "errors", "drift", "history", "query", "trace"]
    # One key: its message three times, a correction and a late older version.
    assert said["trace"].count("raw copy") == 5


def test_day_one_once_more_makes_only_duplicates_and_a_second_demo_doubles_the_books(
    command_line: CommandLine, first: Any
) -> None:
    *_, ingest, run = suggested(command_line, first)
    records = DAYS["orders"][0].raw.inserted
    once_more = Counts(records_in=records, duplicates=records)
    assert f"{records} lines: {records} in RAW" in command_line.run(*ingest)
    assert run == ["run"]  # the demo's own run will take it along

    second = command_line.json("demo")
    day_one, schemas, what_waited, day_two, again = second["acts"]
    assert day_one["ingested"] == ingested(0)
    expected = standardized(0)
    assert counts_of(day_one["run"]) == {**expected, "orders": total(expected["orders"], once_more)}
    assert not any(schema["activated"] for schema in schemas["schemas"])
    assert what_waited["run"] == {"run_id": None, "topics": [], "waiting": []}
    assert day_two["ingested"] == ingested(1)
    assert counts_of(again["run"]) == standardized(1)
    assert second["ledger"] == ledger(2, orders=(Counts(records, records), once_more))
    assert second["trace"]["message_id"] != first["trace"]["message_id"]
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
