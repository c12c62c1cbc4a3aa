"""A run stands still until its leases expire and another has taken over; when it goes on it can't do any harm."""

from __future__ import annotations

import signal
import sqlite3
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.e2e.cli import body, with_tests_on_path
from tests.e2e.faults_of_processes.processes import Home, Running, bodies, wait_until

pytestmark = pytest.mark.e2e

SCRIPT = Path(__file__).parents[1] / "stopped_run.py"
LEASE = {"LEAN_OPS_LEASE_SECONDS": "15"}
# Before each of these writes the late run would double a row or disturb the other run's branch.
STANDS = {
    "staged": "standardized:rows staged",
    "refused": "standardized:errors written",
    "published": "standardized:published",
    "ledger": "standardized:ledger written",
    "merged": "curated:rows merged",
    "balanced": "curated:balanced",
}
IN = bodies(4) + b"\n".join(
    [
        body("m0", {"a": 0}, idempotency_key="m0").encode(),  # a duplicate
        body("empty", None, idempotency_key="empty").encode(),  # a parse error
        body("word", {"a": "no number"}, idempotency_key="word").encode(),  # a cast error
    ]
)


LEFT = (
    "SELECT count(*) FROM standardized.{0}",
    "SELECT count(*) FROM curated.{0}",
    "SELECT count(*) FROM standardized.parse_errors WHERE topic_name = '{0}'",
    "SELECT count(*) FROM curated.errors WHERE topic_name = '{0}'",
    "SELECT count(*) FROM ops.reconciliation_log WHERE topic_name = '{0}'",
    "SELECT count(*) FROM ops.drift_log WHERE topic_name = '{0}'",
    "SELECT count(*) FROM ops.job_run_history WHERE topic_name = '{0}' AND status = 'SUCCEEDED'",
)


def rows_of(home: Home, topics: Iterable[str]) -> dict[str, list[int]]:
    """By topic, the rows of each kind that it has left anywhere."""
    lists = ", ".join(f"[{', '.join(f'({part.format(topic)})' for part in LEFT)}] AS {topic}" for topic in topics)
    (row,) = home.json("query", f"SELECT {lists}")
    return dict(row)


def stand_still(home: Home, late: Running) -> None:
    """Stop it, but not in the middle of a write: then nobody else could go on."""
    while True:
        late.signal(signal.SIGSTOP)
        with closing(sqlite3.connect(home.home / "state.db", timeout=0.5, isolation_level=None)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                late.signal(signal.SIGCONT)
                time.sleep(0.05)
            else:
                db.execute("ROLLBACK")
                return


def test_a_run_that_stood_still_while_another_took_over_writes_nothing_more(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", LEASE)
    home.open_topics(dict.fromkeys((*STANDS, "undisturbed"), IN))
    script = (sys.executable, str(SCRIPT), str(home.home), str(tmp_path / "go"))
    stops = [f"{topic}={stand}" for topic, stand in STANDS.items()]
    with home.running(*stops, command=script, PYTHONPATH=with_tests_on_path()["PYTHONPATH"]) as late:
        late.until_said("standing")
        stand_still(home, late)
        end = home.leases_end_at()
        assert end is not None
        wait_until(lambda: datetime.now(UTC) > end, "the leases expire", 30)
        with home.running("run", LEAN_OPS_LEASE_SECONDS="300") as other:
            said = other.end(0)
        assert "held by" not in said
        (tmp_path / "go").touch()
        late.signal(signal.SIGCONT)
        said = late.end(1)
    assert said.count("the lease was lost while working") == len(STANDS)
    assert "finishes the batch" in said
    found = rows_of(home, (*STANDS, "undisturbed"))
    assert found["undisturbed"][:5] == [5, 4, 1, 1, 3]
    assert found == dict.fromkeys((*STANDS, "undisturbed"), found["undisturbed"])
    home.is_settled()
    assert "nothing new" in home.run("run")
