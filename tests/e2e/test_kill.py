"""Killed after any step of either hop while RAW goes on growing, the tables end as if nothing had happened."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cli import CommandLine, curated_schema_of, with_tests_on_path
from tests.spark.driver import OpenGate, TopicDriver, at

from lean_ops.lake.snapshots import history_of
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

_TO_PUBLISH = ("balanced", "published", "ledger written", "history written", "checkpoint moved")
STEPS = {
    Zone.STANDARDIZED: (
        *("intent stored", "rows staged", "errors written", "columns added", "rows staged again", "drift logged"),
        *("view made", *_TO_PUBLISH),
    ),
    Zone.CURATED: ("intent stored", "rows merged", "errors written", *_TO_PUBLISH),
}


def message(
    message_id: str, payload: str, day: int = 0, ingestion_ts: int = 1, key: str | None = None
) -> dict[str, Any]:
    return {
        "message_id": message_id,
        "json_payload": payload,
        "publish_time": at(day),
        "ingestion_ts": ingestion_ts,
        "idempotency_key": key or f"key-{message_id}",
    }


BEFORE = [
    *(message(f"m{number}", f'{{"a":{number},"b":{{"c":"x"}}}}', day=number % 3) for number in range(40)),
    message("m1", '{"a":"retry"}', day=1, ingestion_ts=2),
    message("bad1", "{"),
    message("bad2", ""),
    message("wrong1", '{"a":"no number"}'),
    message("newer", '{"a":100}', day=9, key="key-m3"),
]
AFTER = [
    message("m2", '{"a":"a late copy"}', day=2),
    message("bad1", '{"a":"a copy of a refused one"}'),
    message("bad3", "[]"),
    message("wrong2", '{"a":"1.5"}'),
    message("corrected", '{"a":200}', day=9, key="key-m5"),
    message("late", '{"a":300}', day=-60, key="key-m6"),
    *(message(f"n{number}", f'{{"A":{number},"a":{number},"new":true}}', day=number % 5) for number in range(20)),
]


def killed_at(home: Path, topics: dict[str, str]) -> int:
    """The exit code of a run that was killed when every topic stood at its step."""
    script = Path(__file__).with_name("stopped_run.py")
    stops = [f"{topic}={step}" for topic, step in topics.items()]
    done = subprocess.run(
        [sys.executable, script, home, "kill", *stops], check=False, capture_output=True, env=with_tests_on_path()
    )
    return done.returncode


class Reader:
    """A topic's rows in words that two topics share: batches and snapshots by their number, no times, no names."""

    def __init__(self, topic: TopicDriver) -> None:
        self.topic = topic
        lake = topic.services.lake
        self.tables = {zone: lake.load(lake.names.of_zone(zone, topic.name)) for zone in Zone}
        histories = {zone: history_of(table) for zone, table in self.tables.items()}
        self.snapshots = {
            zone: [str(snapshot.snapshot_id) for snapshot in history.ancestors(history.head)]
            for zone, history in histories.items()
        }
        self.checkpoints = {zone: histories[zone].checkpoint() for zone in (Zone.STANDARDIZED, Zone.CURATED)}
        self.ledger = sorted(topic.shared("reconciliation_log"), key=lambda row: row["recorded_at"])
        zones: dict[str, int] = {}
        self.batches = {}
        for row in self.ledger:
            zones[row["zone"]] = zones.get(row["zone"], 0) + 1
            self.batches[row["batch_id"]] = f"{row['zone']} {zones[row['zone']]}"

    def tidy(self, rows: list[dict[str, Any]], *hidden: str) -> list[str]:
        kept = []
        for row in rows:
            known = {key: value for key, value in row.items() if key not in {"topic_name", *hidden}}
            for key in ("batch_id", "_batch_id"):
                if key in known:
                    known[key] = self.batches[known[key]]
            for key in ("from_snapshot", "to_snapshot"):
                if known.get(key):
                    known[key] = self.snapshots[Zone(row["zone"]).source].index(known[key])
            kept.append(repr(sorted(known.items())).replace(self.topic.name, "its topic"))
        return sorted(kept)

    def curated_rows(self) -> list[dict[str, Any]]:
        """The rows with the times reduced to whether a correction came."""
        rows = list(self.topic.curated().values())
        return [{**row, "corrected": row["first_seen_ts"] < row["last_updated_ts"]} for row in rows]

    def standing(self, zone: Zone) -> dict[str, Any]:
        """How far the zone is, by its table and by the store, and that nothing is left lying about."""
        stored = self.topic.services.state.checkpoint(pipeline_id(zone, self.topic.name))
        source, checkpoint = self.snapshots[zone.source], self.checkpoints[zone]
        assert checkpoint is not None
        return {
            f"{zone} checkpoint": source.index(str(checkpoint.to_snapshot)),
            f"{zone} stored checkpoint": source.index(str(stored.last_snapshot_id)),
            f"{zone} open batch": stored.intent,
            f"{zone} branches": sorted(self.tables[zone].refs()),
        }


def result(topic: TopicDriver) -> dict[str, Any]:
    """Everything that a reader can see of a topic."""
    reader = Reader(topic)
    history = [row for row in topic.shared("job_run_history") if row["status"] == "SUCCEEDED"]
    times = ("started_at", "ended_at", "duration_ms", "run_id")
    return {
        "rows": reader.tidy(topic.standardized()),
        "parse errors": reader.tidy(topic.shared("parse_errors"), "processed_ts"),
        "curated": reader.tidy(reader.curated_rows(), "first_seen_ts", "last_updated_ts"),
        "errors": reader.tidy(topic.shared("errors"), "processed_ts"),
        "ledger": reader.tidy(reader.ledger, "recorded_at"),
        "drift": reader.tidy(topic.shared("drift_log"), "detected_at"),
        "history": reader.tidy(history, *times),
        "alerts": reader.tidy(topic.shared("alerts"), "opened_at", "alert_id"),
        **reader.standing(Zone.STANDARDIZED),
        **reader.standing(Zone.CURATED),
    }


def seen_by_an_analyst(topic: TopicDriver) -> list[str]:
    """The Curated rows whatever batches brought them."""
    hidden = ("first_seen_ts", "last_updated_ts", "_batch_id", "topic_name")
    return sorted(repr([(k, v) for k, v in row.items() if k not in hidden]) for row in topic.curated().values())


def test_killed_after_every_step_the_tables_end_equal_to_an_undisturbed_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    services = Services(load_settings({"home": home}, environ={}))
    services.lake.ensure_shared()
    steps = {f"{zone}_{step.replace(' ', '_')}": f"{zone}:{step}" for zone, names in STEPS.items() for step in names}
    topics = {name: TopicDriver(services, name, OpenGate()) for name in (*steps, "undisturbed")}
    for topic in topics.values():
        schema = curated_schema_of(topic.name, {"a": {"type": "INT"}}).encode()
        services.submissions.submit(topic.name, schema, submitted_by="test", now=services.clock())
        topic.put(*BEFORE)
    command_line = CommandLine(home)

    assert killed_at(home, steps) == -signal.SIGKILL
    command_line.run("run", "undisturbed")
    for topic in topics.values():
        topic.put(*AFTER)
    command_line.run("run")

    reference = result(topics["undisturbed"])
    assert [len(reference[name]) for name in ("rows", "parse errors", "curated", "errors")] == [65, 3, 60, 2]
    assert len(reference["ledger"]) == len(reference["history"]) == 4
    assert {value for name, value in reference.items() if name.endswith("checkpoint")} == {0}
    assert {str(value) for name, value in reference.items() if name.endswith("open batch")} == {"None"}
    assert {str(value) for name, value in reference.items() if name.endswith("branches")} == {"['main']"}
    # Killed before its first Curated batch began, a topic has one such batch in the end, which reads all there is.
    one_batch = result(topics["standardized_checkpoint_moved"])
    assert len(one_batch["ledger"]) == 3
    for name, step in steps.items():
        assert seen_by_an_analyst(topics[name]) == seen_by_an_analyst(topics["undisturbed"])
        found, expected = result(topics[name]), one_batch if step.startswith("standardized") else reference
        assert {step: found} == {step: expected}
        for table in ("rows", "parse errors", "drift", "standardized checkpoint", "standardized branches"):
            assert found[table] == reference[table]
    assert "nothing new" in command_line.run("run")
