"""What a cold start loads: nothing that a call would not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"pyspark", "pyarrow", "pyiceberg", "duckdb", "pandas", "numpy"}
# Loaded by the first call, or not at all.
LATER = {"boto3", "botocore.client", "pydantic", "structlog", "typer", "rich", "sqlite3"}
LISTING = "import sys, {0}; print(*sys.modules)"


def loaded_by(module: str) -> set[str]:
    listed = subprocess.run(
        [sys.executable, "-c", LISTING.format(module)], capture_output=True, text=True, check=True, timeout=60
    )
    return set(listed.stdout.split())


@pytest.mark.parametrize("module", ["sqs_processor", "firehose_transform"])
def test_a_cold_start_loads_nothing_heavy(module: str) -> None:
    loaded = loaded_by(f"lean_ops.entrypoints.lambdas.{module}")
    assert f"lean_ops.entrypoints.lambdas.{module}" in loaded
    assert not loaded & (HEAVY | LATER)


@pytest.mark.parametrize(
    "module",
    [
        "lean_ops.aws.clients",
        "lean_ops.aws.firehose",
        "lean_ops.aws.letters",
        "lean_ops.state.dynamodb_deliveries",
        "lean_ops.state.dynamodb_breaker",
    ],
)
def test_what_the_first_call_loads_is_not_heavy_either(module: str) -> None:
    assert not loaded_by(module) & HEAVY
