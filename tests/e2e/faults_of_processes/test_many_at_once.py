"""Many processes on one home: ten ingests into one topic and ten into ten, and runs beside them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.e2e.faults_of_processes.processes import Home, Running, bodies

pytestmark = pytest.mark.e2e

TOPICS = [f"topic_{n}" for n in range(10)]
REFUSED = b"no JSON at all\n"


def start(stack: ExitStack, home: Home, *arguments: str, **environ: str) -> Running:
    return stack.enter_context(home.running(*arguments, **environ))


def write(home: Home, name: str, rows: int) -> str:
    """A file of bodies of which one is refused, so that every ingest writes to all shared tables."""
    file = home.home.parent / f"{name}.jsonl"
    file.write_bytes(bodies(rows, name) + REFUSED)
    return str(file)


def test_ten_ingests_at_once_into_one_topic_and_ten_into_ten_all_land(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    files = [write(home, f"f{n}", 7) for n in range(10)]
    with ExitStack() as stack:
        every = [start(stack, home, "ingest", "one", file) for file in files]
        every += [start(stack, home, "ingest", topic, file) for topic, file in zip(TOPICS, files, strict=True)]
        said = [ingest.end(0) for ingest in every]
    assert all("8 lines: 7 in RAW, 1 dead letters" in words for words in said)
    assert home.rows("raw.one_staging") == [(70, 70)]
    assert home.rows(*(f"raw.{topic}_staging" for topic in TOPICS)) == [(7, 7)] * 10
    (letters,) = home.json("query", "SELECT count(*) AS n FROM raw.dlq_errors")
    assert letters == {"n": 20}
    home.is_settled()


def test_ten_runs_at_once_beside_ingests_do_each_batch_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", {"LEAN_OPS_SPARK_DRIVER_MEMORY": "700m", "LEAN_OPS_WORKERS": "2"})
    home.open_topics(dict.fromkeys(TOPICS, bodies(20)))
    file = write(home, "more", 5)
    with ExitStack() as stack:
        first = start(stack, home, "run")
        first.java()
        # The first run holds the leases of the topics it works on; these ask for the same and for the others.
        second = start(stack, home, "run")
        same = [start(stack, home, "run", *sorted(home.leases())) for _ in range(8)]
        ingests = [start(stack, home, "ingest", topic, file) for topic in TOPICS[:3]]
        reader = start(stack, home, "reconcile")
        for command in (reader, *ingests, *same, second, first):
            assert "failed" not in command.end(0)
    home.run("run")
    expected = [(20, 20) if n > 2 else (25, 25) for n in range(10)]
    for zone in ("standardized", "curated"):
        assert home.rows(*(f"{zone}.{topic}" for topic in TOPICS)) == expected
    batches = "SELECT batch_id FROM ops.reconciliation_log GROUP BY topic_name, batch_id, zone HAVING count(*) > 1"
    assert home.json("query", batches) == []
    assert home.json("query", "SELECT reason FROM ops.job_run_history WHERE status = 'FAILED'") == []
    home.is_settled()
