"""The product as a person starts it: `lean-ops` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.home import MASTER, BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path


def lean_ops(home: Path, *words: str, **settings: Any) -> Any:
    """What a command prints with --json; exit code 1 is told in it. BenchmarkError if there is no such answer."""
    command = [sys.executable, "-m", "lean_ops", "--home", str(home), "--json", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, env=environment(settings)
    )
    if done.returncode not in {0, 1} or not done.stdout.strip():
        raise BenchmarkError(f"lean-ops {' '.join(words)}: exit code {done.returncode}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    if isinstance(found, dict) and "error" in found:
        raise BenchmarkError(f"lean-ops {' '.join(words)}: {found['error']['message']}")
    return found


def unbalanced(home: Path, *topics: str) -> list[str]:
    """The topics whose books do not agree with their tables."""
    return [each["topic"] for each in lean_ops(home, "reconcile", *topics)["topics"] if not each["balanced"]]


def environment(settings: dict[str, Any]) -> dict[str, str]:
    """The variables of a process that runs the product with some settings, and with no others of this process's."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("LEAN_OPS_")}
    given = {"spark_master": MASTER, **settings}
    return {**own, **{f"LEAN_OPS_{key.upper()}": str(value) for key, value in given.items()}}
