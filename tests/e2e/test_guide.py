"""The commands of README.md and docs/guide.md, run as a reader would: in order, in a folder of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from tests.quick_java import QUICK_JAVA

from lean_ops.entrypoints.cli import app
from lean_ops.settings import Settings

pytestmark = pytest.mark.e2e

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text()
GUIDE = (REPOSITORY / "docs" / "guide.md").read_text()
_FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# At the start of a line, also with the virtual environment's folder or a variable before it.
_COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )?(?:\.venv/bin/)?(lean-ops\b.*)$", re.MULTILINE)


_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "<end of block>\n"


def outputs_of(parts: list[str], folder: Path) -> list[str]:
    """What each part of a script printed in a shell of its own; every command of it must succeed."""
    for name in (".venv", "docs", "schemas"):
        (folder / name).symlink_to(sys.prefix if name == ".venv" else REPOSITORY / name)
    script = "\n".join(["set -euo pipefail", *(f"{part}\necho '{_END.strip()}'" for part in parts)])
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LEAN_OPS_")}
    done = subprocess.run(
        ["bash", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=540,
        env={**environ, "LEAN_OPS_SPARK_JAVA_OPTIONS": QUICK_JAVA, "COLUMNS": "250"},  # wide: no cell is folded
    )
    *outputs, rest = done.stdout.split(_END)
    assert done.returncode == 0, f"in block {len(outputs) + 1}:\n{rest}\n{done.stderr}"
    return outputs


def told_in_order(shown: list[str], output: str) -> bool:
    """Whether the shown lines are lines of the output, in their order; `…` stands for anything, a blank for several."""
    wanted = (re.escape(" ".join(line.split())).replace("…", ".*") for line in shown)
    said = iter(" ".join(line.split()) for line in output.splitlines())
    return all(any(re.fullmatch(pattern, line) for line in said) for pattern in wanted)


def blocks(text: str) -> list[str]:
    """The fenced blocks that hold a command."""
    return [block for block in _FENCED.findall(text) if _COMMAND.search(block)]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each block of the guide printed, by its commands; every one of them must succeed."""
    parts = blocks(GUIDE)
    outputs = outputs_of(parts, tmp_path_factory.mktemp("guide"))
    return {"; ".join(_COMMAND.findall(block)): output for block, output in zip(parts, outputs, strict=True)}


def test_the_readmes_story_is_told_as_it_is_printed(tmp_path: Path) -> None:
    (console,) = _CONSOLE.findall(README)
    commands = [part.splitlines() for part in console.removeprefix("$ ").split("\n$ ")]
    outputs = outputs_of([lines[0] for lines in commands], tmp_path)
    for lines, output in zip(commands, outputs, strict=True):
        assert told_in_order(lines[1:], output), f"{lines[0]} printed:\n{output}"
    assert len(commands) == 9


def test_the_guides_messages_land_and_wait_for_their_schema(said: dict[str, str]) -> None:
    assert "payments: 4 lines: 3 in RAW, 1 dead letters" in said["lean-ops ingest payments bodies.jsonl"]
    deployed = said["lean-ops status; lean-ops schema submit payments payments.json"]
    assert "NO_SCHEMA" in deployed
    assert "schema 1.0.0 of payments is active (NEW)" in deployed


def test_the_guides_run_has_two_rows_and_one_duplicate_and_then_nothing_new(said: dict[str, str]) -> None:
    first = said["lean-ops run --explain; lean-ops run"]
    assert "payments: 3 in = 2 standardized + 1 duplicates + 0 errors; 2 in = 2 new + 0 updated" in first
    assert said["lean-ops run"] == "nothing new to process: 1 topics looked at\n"


def test_the_guides_look_at_it_shows_what_its_text_says(said: dict[str, str]) -> None:
    (looked,) = (output for commands, output in said.items() if commands.startswith("lean-ops query"))
    assert "1.10" in looked
    assert "1e5" in looked
    assert "duplicate: the copy of snapshot" in looked
    assert looked.count("NEW_COLUMN") == 2
    assert "100000.00" in looked
    assert "1 topic, 3 zones: everything balances" in looked


def test_the_guides_correction_takes_the_rows_place_and_the_wrong_value_is_refused(said: dict[str, str]) -> None:
    (corrected,) = (output for commands, output in said.items() if commands.startswith("lean-ops ingest payments more"))
    assert "2 in = 0 new + 1 updated + 0 superseded + 1 errors in curated" in corrected
    assert told_in_order(["k-1 2.20", "k-2 100000.00"], corrected)
    assert "amount: 'a lot' is no DECIMAL(10,2)" in corrected
    assert told_in_order(["1: replaced", "3: curated (current)"], corrected)


def test_every_setting_is_in_the_guide() -> None:
    assert [name for name in Settings.model_fields if f"`{name}`" not in GUIDE] == []


def test_the_readmes_table_has_every_command_and_no_other() -> None:
    cells = [line.split("|")[1] for line in README.splitlines() if line.startswith("| `")]
    named = {word for cell in cells for word in re.findall(r"(?<=[`\s])[a-z]+(?=[`\s])", cell)} - {"or"}
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert named == {*commands, *commands["schema"].commands, *commands["replay"].commands}


def test_the_readmes_make_targets_are_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
