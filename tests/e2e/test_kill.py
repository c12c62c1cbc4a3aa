"""Killed after any step, with RAW growing before the restart, the tables end as if nothing had happened."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cli import CommandLine, schema_of, with_tests_on_path
from tests.spark.driver import OpenGate, TopicDriver, at

from lean_ops.lake.snapshots import history_of
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

STEPS = (
    "intent stored",
    "rows staged",
    "errors written",
    "columns added",
    "rows staged again",
    "drift logged",
    "balanced",
    "published",
    "ledger written",
    "history written",
    "checkpoint moved",
)


def message(message_id: str, payload: str, day: int = 0, ingestion_ts: int = 1) -> dict[str, Any]:
    return {
        "message_id": message_id,
        "json_payload": payload,
        "publish_time": at(day),
        "ingestion_ts": ingestion_ts,
        "idempotency_key": f"key-{message_id}",
    }


BEFORE = [
    *(message(f"m{number}", f'{{"a":{number},"b":{{"c":"x"}}}}', day=number % 3) for number in range(40)),
    message("m1", '{"a":"retry"}', day=1, ingestion_ts=2),
    message("bad1", "{"),
    message("bad2", ""),
]
AFTER = [
    message("m2", '{"a":"a late copy"}', day=2),
    message("bad1", '{"a":"a copy of a refused one"}'),
    message("bad3", "[]"),
    *(message(f"n{number}", f'{{"A":{number},"new":true}}', day=number % 5) for number in range(20)),
]


def killed_after(home: Path, topic: str, step: str) -> int:
    script = Path(__file__).with_name("stopped_run.py")
    command = [sys.executable, script, home, topic, step, "kill"]
    return subprocess.run(command, check=False, capture_output=True, env=with_tests_on_path()).returncode


def result(topic: TopicDriver) -> dict[str, Any]:
    """Everything that a reader can see of a topic, with batch ids as first and second."""
    ledger = sorted(topic.shared("reconciliation_log"), key=lambda row: row["recorded_at"])
    order = {row["batch_id"]: number for number, row in enumerate(ledger)}
    raw = history_of(topic.services.lake.load(topic.services.lake.names.raw(topic.name)))
    snapshots = [str(snapshot.snapshot_id) for snapshot in raw.ancestors(raw.head)]

    def tidy(rows: list[dict[str, Any]], *hidden: str) -> list[str]:
        kept = []
        for row in rows:
            known = {key: value for key, value in row.items() if key not in {"topic_name", *hidden}}
            for key in ("batch_id", "_batch_id"):
                if key in known:
                    known[key] = order[known[key]]
            for key in ("from_snapshot", "to_snapshot"):
                if known.get(key):
                    known[key] = snapshots.index(known[key])
            kept.append(repr(sorted(known.items())))
        return sorted(kept)

    standardized = topic.services.lake.load(topic.services.lake.names.standardized(topic.name))
    stored = topic.services.state.checkpoint(f"standardization_{topic.name}")
    history = [row for row in topic.shared("job_run_history") if row["status"] == "SUCCEEDED"]
    times = ("started_at", "ended_at", "duration_ms", "run_id")
    return {
        "rows": tidy(topic.standardized()),
        "errors": tidy(topic.shared("parse_errors"), "processed_ts"),
        "ledger": tidy(ledger, "recorded_at"),
        "drift": tidy(topic.shared("drift_log"), "detected_at"),
        "history": tidy(history, *times),
        "alerts": tidy(topic.shared("alerts"), "opened_at", "alert_id"),
        "checkpoint": snapshots.index(str(topic.checkpoint())),
        "stored checkpoint": snapshots.index(str(stored.last_snapshot_id)),
        "open batch": stored.intent,
        "branches": sorted(standardized.refs()),
    }


def test_killed_after_every_step_the_tables_end_equal_to_an_undisturbed_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    services = Services(load_settings({"home": home}, environ={}))
    services.lake.ensure_shared()
    topics = {step: TopicDriver(services, step.replace(" ", "_"), OpenGate()) for step in (*STEPS, "undisturbed")}
    for topic in topics.values():
        services.submissions.submit(
            topic.name, schema_of(topic.name).encode(), submitted_by="test", now=services.clock()
        )
        topic.put(*BEFORE)
    command_line = CommandLine(home)

    with ThreadPoolExecutor(2) as pool:
        codes = pool.map(lambda step: killed_after(home, topics[step].name, step), STEPS)
        command_line.run("run", "undisturbed")
        assert list(codes) == [-signal.SIGKILL] * len(STEPS)
    for topic in topics.values():
        topic.put(*AFTER)
    command_line.run("run")

    reference = result(topics["undisturbed"])
    assert len(reference["rows"]) == 60
    assert len(reference["errors"]) == 3
    assert len(reference["ledger"]) == len(reference["history"]) == 2
    assert reference["checkpoint"] == reference["stored checkpoint"] == 0
    assert (reference["open batch"], reference["branches"]) == (None, ["main"])
    for step in STEPS:
        assert {step: result(topics[step])} == {step: reference}
    assert "nothing new" in command_line.run("run")
