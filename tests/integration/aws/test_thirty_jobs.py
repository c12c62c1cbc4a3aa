"""Thirty jobs, each a process of its own, append to the tables that all share: every row is there, once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.integration.aws.catalogs import Cloud, glue_cloud, strict_glue
from tests.integration.aws.job_scene import Account, account_on
from tests.integration.aws.one_of_thirty import TABLES
from tests.servers.server import Server

__all__ = ["glue_cloud", "strict_glue"]

pytestmark = pytest.mark.timeout(1800)  # thirty Pythons start, then wait for each other's commits

JOBS = 30
SECONDS = 300
PROGRAM = Path(__file__).with_name("one_of_thirty.py")


@pytest.fixture
def account(
    glue_cloud: Cloud, dynamodb: Server, seaweed: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Account:
    return account_on(glue_cloud, dynamodb, seaweed, tmp_path / "home", monkeypatch)


def test_thirty_processes_commit_to_the_shared_tables_at_once(account: Account, tmp_path: Path) -> None:
    go = tmp_path / "go"
    jobs = [_started(number, go) for number in range(JOBS)]
    try:
        for job in jobs:
            assert job.stdout is not None
            assert job.stdout.readline() == "ready\n", job.communicate(timeout=60)[1][-2000:]
        go.touch()
        said = [job.communicate(timeout=SECONDS)[1] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
            job.communicate(timeout=60)
    assert [job.returncode for job in jobs] == [0] * JOBS, "\n".join(said)[-4000:]
    expected = Counter({(f"topic_{number}", f"{number}-{batch}"): 1 for number in range(JOBS) for batch in range(2)})
    for table in (*(f"ops.{name}" for name in TABLES), "standardized.parse_errors"):
        rows = account.query(f"SELECT topic_name, batch_id FROM {table}")  # noqa: S608  our own names
        assert Counter((row["topic_name"], row["batch_id"]) for row in rows) == expected, table


def _started(number: int, go: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), str(number), str(go)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
