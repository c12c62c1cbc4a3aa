"""A small production emulation, phase by phase in processes of its own: not one message differs from the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cli import CommandLine

from lean_ops.operate.emulation import Emulation, Phase

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

SMALL = Emulation(size=1_000, seed=11)


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("emulation") / "home")


@pytest.fixture(scope="module")
def emulated(command_line: CommandLine) -> Any:
    """Day 1 in a process of its own, then all the rest in another."""
    day1 = command_line.json("emulate", "day1", "--size", "1000", "--seed", "11")
    rest = command_line.json("emulate", "full")
    return {**rest, "phases": day1["phases"] + rest["phases"]}


def sent_until(phase: Phase) -> int:
    return sum(len(story.rows) for story in SMALL.stories(phase).values())


def test_no_phase_differs_from_the_oracle_and_all_books_balance(emulated: Any) -> None:
    phases = [*Phase, Phase.ENHANCED, Phase.MIXED, Phase.MIXED, "verify"]
    assert sorted(row["phase"] for row in emulated["phases"]) == sorted(map(str, phases))
    assert {row["differences"] for row in emulated["phases"]} == {0}
    assert {row["balanced"] for row in emulated["phases"]} == {True}


def test_every_body_of_every_phase_was_compared(emulated: Any) -> None:
    bodies: dict[str, int] = {}
    for row in emulated["phases"]:
        bodies[row["phase"]] = max(row["bodies"], bodies.get(row["phase"], 0))
    assert bodies == {str(phase): sent_until(phase) for phase in Phase} | {"verify": sent_until(Phase.MIXED)}


def test_what_was_found_is_what_the_plan_foretells(emulated: Any) -> None:
    (last,) = (row for row in emulated["phases"] if row["phase"] == "verify")
    foretold = [story.foretold() for story in SMALL.stories(Phase.MIXED).values()]
    for fate in ("curated", "superseded", "error", "parse_error", "duplicate", "dead_letter"):
        assert last[fate] == sum(one.count(fate) for one in foretold) > 0


def test_before_the_schema_everything_waits(emulated: Any) -> None:
    day1, schema = emulated["phases"][:2]
    assert (day1["phase"], day1["pending"]) == ("day1", 1_000)
    assert (schema["phase"], schema["curated"]) == ("schema", 1_000)


def test_a_phase_that_is_over_is_not_played_again(command_line: CommandLine, emulated: Any) -> None:
    assert emulated["phases"]
    assert "A new emulation needs a new home" in command_line.run("emulate", "day2", code=2)


def test_verify_finds_a_row_that_somebody_changed(command_line: CommandLine, emulated: Any) -> None:
    fates = Path(emulated["fates"])
    lines = fates.read_text(encoding="utf-8").splitlines(keepends=True)
    number = next(n for n, line in enumerate(lines) if '"fate":"curated"' in line and '"status":"paid"' in line)
    changed = fates.with_name("changed.jsonl")
    lines[number] = lines[number].replace('"status":"paid"', '"status":"shipped"')
    changed.write_text("".join(lines), encoding="utf-8")
    found = command_line.json("verify", "--fates", str(changed), "--complete", code=1)
    assert found["differences"] == 1
    (value,) = found["shown"][0]["values"]
    assert (value["column"], value["expected"], value["found"]) == ("status", "shipped", "paid")


def test_a_home_with_topics_of_these_names_is_left_alone(tmp_path: Path) -> None:
    command_line = CommandLine(tmp_path / "home")
    command_line.run(
        "ingest", "emulated_orders", "-", stdin=b'{"message_id":"m","publish_time":"2026-01-01T00:00:00Z","payload":{}}'
    )
    assert "not the emulation's" in command_line.run("emulate", "day1", code=2)
