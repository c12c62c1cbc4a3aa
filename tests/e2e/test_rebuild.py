"""`lean-ops rebuild` as a person calls it: shown, refused without a yes, published, and killed in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import In
from tests.e2e.cli import CommandLine, with_tests_on_path

from lean_ops.settings import load_settings
from lean_ops.wiring import Services

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

FAULTS = ("--duplicates", "0.1", "--corrections", "0.1", "--late", "0.05", "--malformed", "0.05", "--bad-types", "0.05")


def ids_of(home: Path, few: int) -> list[str]:
    rows = CommandLine(home).json("query", f"SELECT message_id FROM standardized.orders ORDER BY 1 LIMIT {few}")  # noqa: S608
    return [row["message_id"] for row in rows]


def delete(home: Path, ids: list[str]) -> None:
    lake = Services(load_settings({"home": home}, environ={})).lake
    lake.load(lake.names.standardized("orders")).delete(In("message_id", set(ids)))


def killed_at(home: Path, step: str) -> int:
    script = Path(__file__).with_name("killed_rebuild.py")
    command = [sys.executable, script, home, "orders", step]
    return subprocess.run(command, check=False, capture_output=True, env=with_tests_on_path()).returncode


def rows_of(document: dict[str, Any], zone: str) -> dict[str, Any]:
    [found] = [each for each in document["zones"] if each["zone"] == zone]
    rows: dict[str, Any] = found["rows"]
    return rows


def test_a_damaged_topic_is_shown_rebuilt_and_as_the_oracle_says(tmp_path: Path) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    lean_ops = CommandLine(home)
    lean_ops.run("init")
    lean_ops.run("generate", "orders", "-n", "400", "--seed", "7", "--files", "2", *FAULTS, "-o", str(data))
    lean_ops.run("schema", "submit", "orders", str(data / "schemas" / "orders.json"))
    for file in sorted(data.glob("*.jsonl")):
        if file.name != "fates.jsonl":
            lean_ops.run("ingest", "orders", str(file))
            lean_ops.run("run")
    fates = ("verify", "--fates", str(data / "fates.jsonl"), "--complete")
    lean_ops.run(*fates)
    gone = ids_of(home, 3)
    delete(home, gone)
    lean_ops.run("reconcile", "--recount", code=1)

    assert "nobody is here to be asked" in lean_ops.run("rebuild", "orders", code=2)
    assert "no such topic" in lean_ops.run("rebuild", "nobody", "--yes", code=2)
    shown = lean_ops.json("rebuild", "orders", "--explain")
    assert (shown["status"], shown["published"], shown["unchanged"]) == ("SKIPPED", False, False)
    assert (rows_of(shown, "standardized")["new"], rows_of(shown, "standardized")["ids"]) == (3, {"new": gone})
    assert (rows_of(shown, "curated")["gone"], rows_of(shown, "curated")["new"]) == (0, 0)
    lean_ops.run("reconcile", "--recount", code=1)

    assert killed_at(home, "standardized switched") == -signal.SIGKILL
    lean_ops.run("run")
    lean_ops.run("reconcile", "--recount")
    lean_ops.run(*fates)

    assert killed_at(home, "curated rows merged") == -signal.SIGKILL
    done = lean_ops.json("rebuild", "orders", "--yes")
    assert (done["status"], done["published"], done["unchanged"]) == ("SUCCEEDED", True, True)
    lean_ops.run("reconcile", "--recount")
    lean_ops.run(*fates)
    assert "nothing new" in lean_ops.run("run")
