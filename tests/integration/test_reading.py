"""The read commands over a real home: tables written through pyiceberg, state in SQLite, no Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.registry import put

from lean_ops.entrypoints.cli import main
from lean_ops.ledger.fates import Fate
from lean_ops.ledger.trace import Tracer, Wanted
from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

DAY = datetime(2026, 2, 3, 10, tzinfo=UTC)


def append(table: Table, *rows: dict[str, Any], **properties: str) -> int:
    """Append rows and return the snapshot; `batch_id="b"` becomes `lean-ops.batch-id`."""
    table.append(
        pa.Table.from_pylist(list(rows), schema=table.schema().as_arrow()),
        snapshot_properties={f"lean-ops.{name.replace('_', '-')}": value for name, value in properties.items()},
    )
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def message(topic: str, message_id: str, ingested: int, **values: Any) -> dict[str, Any]:
    return {"topic_name": topic, "message_id": message_id, "publish_time": DAY, "ingestion_ts": ingested, **values}


class Story:
    """A home in which every fate occurs."""

    def __init__(self, home: Path) -> None:
        self.services = Services(load_settings({"home": home}, environ={}), clock=lambda: DAY)
        self.lake = self.services.lake
        self.lake.ensure_shared()
        self._events()
        self._shut_topics()
        self._shared_tables()

    def _events(self) -> None:
        raw, standardized = self.lake.ensure_raw("events"), self.lake.ensure_standardized("events")
        self.s1 = append(
            raw,
            message("events", "m1", 20, idempotency_key="k1", json_payload='{"b":1}'),
            message("events", "m1", 10, idempotency_key="k1", json_payload='{"a":1}'),
            message("events", "bad", 10, json_payload="{"),
            message("events", "lost", 10, json_payload="{}"),
        )
        self.s2 = append(
            raw,
            message("events", "m1", 30, idempotency_key="k1", json_payload="{}"),
            message("events", "m2", 30, idempotency_key="k1", json_payload="{}"),
        )
        self.published = append(
            standardized,
            message("events", "m1", 10, idempotency_key="k1", _batch_id="b1"),
            message("events", "m2", 30, idempotency_key="k1", _batch_id="b1"),
            batch_id="b1",
            to_snapshot=str(self.s2),
        )
        self.s3 = append(raw, message("events", "m3", 40, json_payload="{}"), message("events", "m1", 40))
        put(self.services.state, RegistryItem("events", Status.READY, schema_version="1.0.0"))

    def _shut_topics(self) -> None:
        for topic in ("orders", "paused", "working", "fresh"):
            setattr(self, topic, append(self.lake.ensure_raw(topic), message(topic, f"in_{topic}", 10)))
        state = self.services.state
        put(state, RegistryItem("paused", Status.READY, Flow.PAUSED, "3 failures"))
        put(state, RegistryItem("fresh", Status.READY))
        put(state, RegistryItem("working", Status.READY))
        lease = state.acquire("working", "elsewhere/1/x", DAY)
        self.batch = Batch("working", Zone.STANDARDIZED, None, self.working, "1")  # type: ignore[attr-defined]
        state.save_intent(Intent(self.batch, (), DAY.isoformat()), lease, DAY)  # type: ignore[arg-type]

    def _shared_tables(self) -> None:
        names, shared = self.lake.names, self.services.shared
        error = {
            "error_type": "INVALID_JSON",
            "error_message": "[stopped] {at 1}",
            "batch_id": "b1",
            "replay_status": "NEW",
        }
        parse_error = {**message("events", "bad", 10), **error, "raw_payload": "{", "processed_ts": DAY}
        shared.append_rows(names.parse_errors, [parse_error])
        dead = {
            "topic_name": "events",
            "error_type": "OVERSIZED",
            "error_message": "too big",
            "archive_path": "a/b.json",
        }
        shared.append_rows(
            names.dlq_errors,
            [
                {**dead, "message_id": "d1", "archived_at": DAY + timedelta(minutes=1), "source": "ingest"},
                {**dead, "message_id": "d2", "archived_at": DAY - timedelta(minutes=1), "topic_name": "orders"},
                {**dead, "message_id": None, "archived_at": DAY - timedelta(days=1), "error_type": "MALFORMED_JSON"},
            ],
        )
        shared.append_rows(
            names.ops("drift_log"),
            [
                {"topic_name": topic, "column_name": f"c{n}", "kind": "NEW_COLUMN", "detected_at": DAY + timedelta(n)}
                for n, topic in enumerate(("events", "orders", "events"))
            ],
        )
        shared.append_rows(
            names.ops("job_run_history"),
            [
                {
                    "topic_name": "events",
                    "zone": "standardized",
                    "status": "SUCCEEDED",
                    "started_at": DAY,
                    "records_in": 6,
                }
            ],
        )

    def fates(self, wanted: Wanted, topic: str | None = None) -> list[tuple[str, int | None, str, str]]:
        found = self.tracer.trace(wanted, topic)
        return [(one.copy.message_id, one.copy.ingestion_ts, one.fate.value, one.reason) for one in found.copies]

    @property
    def tracer(self) -> Tracer:
        return Tracer(self.lake.file, self.lake.names, self.services.state)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("reading") / "home with spaces")


@pytest.fixture
def run(
    story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str, home: Path | None = None) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["--home", str(home or story.services.settings.home), *arguments])
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return call


# trace


def test_of_several_copies_the_first_is_standardized_and_a_newer_one_waits(story: Story) -> None:
    duplicate = f"the copy of snapshot {story.s1} with ingestion_ts 10 is the standardized one"
    assert story.fates(Wanted.message("m1")) == [
        ("m1", 10, "standardized", f"batch b1, snapshot {story.published}"),
        ("m1", 20, "duplicate", duplicate),
        ("m1", 30, "duplicate", duplicate),
        ("m1", 40, "pending", f"newer than the checkpoint (RAW snapshot {story.s2})"),
    ]
    found = story.tracer.trace(Wanted.message("m1"))
    assert [one.copy.snapshot_id for one in found.copies] == [story.s1, story.s1, story.s2, story.s3]
    assert [(row.ingestion_ts, row.batch_id, row.snapshot_id) for row in found.standardized] == [
        (10, "b1", story.published)
    ]


def test_a_parse_error_is_told_with_its_row(story: Story) -> None:
    found = story.tracer.trace(Wanted.message("bad"), "events")
    assert [(one.fate, one.reason) for one in found.copies] == [(Fate.PARSE_ERROR, "INVALID_JSON: [stopped] {at 1}")]
    assert [(error.payload, error.batch_id, error.replay_status) for error in found.parse_errors] == [
        ("{", "b1", "NEW")
    ]


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("orders", "gate shut: NO_SCHEMA"),
        ("paused", "gate shut: PAUSED: 3 failures"),
        ("fresh", "no batch of this topic has run yet"),
    ],
)
def test_a_message_that_waits_says_why(story: Story, topic: str, reason: str) -> None:
    assert story.fates(Wanted.message(f"in_{topic}")) == [(f"in_{topic}", 10, "pending", reason)]


def test_a_message_of_an_open_batch_waits_for_it(story: Story) -> None:
    [(_, _, fate, reason)] = story.fates(Wanted.message("in_working"))
    assert (fate, reason) == ("pending", f"batch {story.batch.batch_id} is open: the next run finishes it")


def test_a_record_that_a_batch_lost_is_not_hidden(story: Story) -> None:
    [(_, _, fate, _)] = story.fates(Wanted.message("lost"))
    assert fate == "missing"


def test_a_key_leads_to_all_its_messages(story: Story) -> None:
    found = story.fates(Wanted.key("k1"))
    assert [(message_id, ingested, fate) for message_id, ingested, fate, _ in found] == [
        ("m1", 10, "standardized"),
        ("m1", 20, "duplicate"),
        ("m1", 30, "duplicate"),
        ("m2", 30, "standardized"),
    ]


def test_a_dead_letter_is_found_by_its_id(story: Story) -> None:
    found = story.tracer.trace(Wanted.message("d1"))
    assert found.copies == ()
    [letter] = found.dead_letters
    assert (letter["error_type"], letter["archive_path"], letter["topic_name"]) == ("OVERSIZED", "a/b.json", "events")
    assert letter["archived_at"] == DAY + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("wanted", "topic"), [("nobody", None), ("m1", "orders"), ("d1", "orders"), ("m' OR 1=1 --", None)]
)
def test_nothing_found_is_said(story: Story, wanted: str, topic: str | None) -> None:
    with pytest.raises(TerminalError, match=r"no message with this id in RAW or among dead letters"):
        story.tracer.trace(Wanted.message(wanted), topic)


def test_files_that_maintenance_rewrote_do_not_make_a_record_pending(tmp_path: Path) -> None:
    services = Services(load_settings({"home": tmp_path}, environ={}))
    raw, standardized = services.lake.ensure_raw("events"), services.lake.ensure_standardized("events")
    rows = [message("events", "m", 10, json_payload="x"), message("events", "m", 10, json_payload="x")]
    first = append(raw, rows[0])
    append(standardized, message("events", "m", 10, _batch_id="b1"), batch_id="b1", to_snapshot=str(first))
    append(raw, rows[1])
    raw.overwrite(pa.Table.from_pylist(rows, schema=raw.schema().as_arrow()))
    put(services.state, RegistryItem("events", Status.READY))
    found = Tracer(services.lake.file, services.lake.names, services.state).trace(Wanted.message("m"))
    assert [one.fate for one in found.copies] == [Fate.STANDARDIZED, Fate.PENDING]


def test_a_checkpoint_that_left_raws_history_is_no_reason_to_call_records_missing(tmp_path: Path) -> None:
    services = Services(load_settings({"home": tmp_path}, environ={}))
    raw, standardized = services.lake.ensure_raw("events"), services.lake.ensure_standardized("events")
    append(raw, message("events", "in", 10), message("events", "out", 10))
    append(standardized, message("events", "in", 10, _batch_id="b1"), batch_id="b1", to_snapshot="77")
    tracer = Tracer(services.lake.file, services.lake.names, None)
    assert [one.fate for one in tracer.trace(Wanted.message("in")).copies] == [Fate.STANDARDIZED]
    assert [one.fate for one in tracer.trace(Wanted.message("out")).copies] == [Fate.PENDING]


# the commands


def test_status_has_a_row_per_topic(story: Story, run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("status", "--json")
    rows = {row["topic"]: row for row in json.loads(out)}
    assert code == 0
    assert list(rows) == ["events", "fresh", "orders", "paused", "working"]
    published = story.lake.load(story.lake.names.standardized("events")).current_snapshot()
    assert published is not None
    at = datetime.fromtimestamp(published.timestamp_ms / 1000, UTC).isoformat().replace("+00:00", "Z")
    assert rows["events"] == {
        "topic": "events",
        "gate": "open",
        "raw_rows": 8,
        "standardized_rows": 2,
        "curated_rows": None,
        "pending": 2,
        "snapshots_waiting": 1,
        "checkpoint_at": at,
        "open_batch": None,
        "failures": 0,
        "curated_pending": None,
        "curated_checkpoint_at": None,
        "curated_open_batch": None,
        "curated_failures": 0,
        "lease": None,
        "problem": None,
    }
    assert (rows["orders"]["gate"], rows["orders"]["pending"]) == ("NO_SCHEMA", 1)
    assert (rows["paused"]["gate"], rows["working"]["open_batch"]) == ("PAUSED: 3 failures", story.batch.batch_id)
    _, out, _ = run("status")
    assert "PAUSED: 3 failures" in out
    assert "problem" not in out


def test_errors_of_all_tables_come_newest_first_with_totals(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("errors", "--json")
    found = json.loads(out)
    assert code == 0
    assert [(row["table"], row["error_type"], row["records"]) for row in found["totals"]] == [
        ("dlq_errors", "OVERSIZED", 2),
        ("dlq_errors", "MALFORMED_JSON", 1),
        ("parse_errors", "INVALID_JSON", 1),
    ]
    assert [row["message_id"] for row in found["errors"]] == ["d1", "bad", "d2", None]
    assert found["errors"][1] == {
        "table": "parse_errors",
        "topic_name": "events",
        "error_type": "INVALID_JSON",
        "error_message": "[stopped] {at 1}",
        "message_id": "bad",
        "error_fields": None,
        "occurred_at": "2026-02-03T10:00:00Z",
        "batch_id": "b1",
        "replay_status": "NEW",
    }


def test_errors_of_one_topic_within_a_limit(run: Callable[..., tuple[int, str, str]]) -> None:
    found = json.loads(run("errors", "events", "--limit", "2", "--json")[1])
    assert [row["message_id"] for row in found["errors"]] == ["d1", "bad"]
    assert sum(row["records"] for row in found["totals"]) == 3
    _, out, _ = run("errors")
    assert "[stopped] {at 1}" in out


def test_drift_and_history_are_lists(run: Callable[..., tuple[int, str, str]]) -> None:
    assert [row["column_name"] for row in json.loads(run("drift", "--json")[1])] == ["c2", "c1", "c0"]
    assert [row["column_name"] for row in json.loads(run("drift", "events", "--json")[1])] == ["c2", "c0"]
    [row] = json.loads(run("history", "events", "--json")[1])
    assert (row["status"], row["records_in"], row["started_at"]) == ("SUCCEEDED", 6, "2026-02-03T10:00:00Z")
    assert "SUCCEEDED" in run("history")[1]


@pytest.mark.parametrize("command", ["errors", "drift", "history"])
def test_a_topic_that_nobody_knows_is_said_with_near_names(
    run: Callable[..., tuple[int, str, str]], command: str
) -> None:
    code, _, err = run(command, "evnts")
    assert code == 2
    assert "there is no such topic" in err
    assert "events" in err


def test_trace_tells_the_story_to_a_person_and_to_a_machine(
    story: Story, run: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, _ = run("trace", "m1", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["copies"][0] == {
        "topic": "events",
        "message_id": "m1",
        "publish_time": "2026-02-03T10:00:00Z",
        "idempotency_key": "k1",
        "ingestion_ts": 10,
        "snapshot_id": story.s1,
        "zone": "raw",
        "fate": "standardized",
        "reason": f"batch b1, snapshot {story.published}",
    }
    assert document["message_id"] == "m1"
    assert document["standardized"][0]["batch_id"] == "b1"
    assert (document["parse_errors"], document["dead_letters"]) == ([], [])
    _, out, _ = run("trace", "bad")
    assert "parse_error: INVALID_JSON: [stopped] {at 1}" in out
    _, out, _ = run("trace", "d1")
    assert "dead letter: OVERSIZED: too big (topic events)" in out


def test_trace_wants_one_thing_and_an_id_that_exists(run: Callable[..., tuple[int, str, str]]) -> None:
    assert run("trace")[0] == 2
    assert run("trace", "m1", "--key", "k1")[0] == 2
    code, out, err = run("trace", "nobody", "--json")
    assert code == 1
    assert json.loads(out)["error"]["what"] == "no message with this id in RAW or among dead letters"
    assert "nobody" in err


def test_query_prints_rows(run: Callable[..., tuple[int, str, str]]) -> None:
    sql = "SELECT message_id, publish_time, 'nan'::DOUBLE AS x, 'ab'::BLOB AS b FROM raw.events WHERE message_id = 'm3'"
    assert json.loads(run("query", sql, "--json")[1]) == [
        {"message_id": "m3", "publish_time": "2026-02-03T10:00:00Z", "x": "nan", "b": "6162"}
    ]
    assert "m3" in run("query", sql)[1]
    assert json.loads(run("query", "SELECT 1 WHERE false", "--json")[1]) == []


def test_query_refuses_with_exit_code_2(run: Callable[..., tuple[int, str, str]]) -> None:
    for sql in (
        "DROP TABLE raw.events",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM raw.nothing",
        "SELEC",
    ):
        code, out, err = run("query", sql)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")


COMMANDS = (("status",), ("errors",), ("drift", "events"), ("history",), ("trace", "m1"), ("query", "SELECT 1"))


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_home_it_is_said_what_to_do_and_nothing_is_made(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, command: tuple[str, ...]
) -> None:
    code, out, err = run(*command, home=tmp_path / "nowhere")
    assert (code, out) == (1, "")
    assert "no lake here" in err
    assert "Run `lean-ops init` or `lean-ops demo`." in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS[:1] + COMMANDS[4:])
def test_reading_makes_no_state_store(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, command: tuple[str, ...]
) -> None:
    services = Services(load_settings({"home": tmp_path}, environ={}))
    append(services.lake.ensure_raw("events"), message("events", "m1", 1))
    before = sorted(path for path in tmp_path.rglob("*") if path.suffix not in {".db-shm", ".db-wal"})
    assert run(*command, home=tmp_path)[0] == 0
    after = sorted(path for path in tmp_path.rglob("*") if not path.name.endswith(("-shm", "-wal")))
    assert [path for path in after if path not in before] == []
    assert not (tmp_path / "state.db").exists()


@pytest.mark.parametrize(
    ("command", "unwanted"),
    [
        ("'status'", {"pyiceberg", "pyarrow", "duckdb", "pandas", "numpy", "pyspark"}),
        ("'query', 'SELECT count(*) FROM raw.events'", {"pandas", "pyspark", "sqlalchemy", "pyiceberg.io.pyarrow"}),
        ("'trace', 'm1'", {"pandas", "pyspark", "sqlalchemy", "pyiceberg.io.pyarrow"}),
        ("'errors'", {"pandas", "pyspark", "sqlalchemy", "pyiceberg.io.pyarrow"}),
    ],
)
def test_a_read_command_imports_only_what_it_needs(story: Story, command: str, unwanted: set[str]) -> None:
    program = (
        "import sys\nfrom lean_ops.entrypoints.cli import main\n"
        f"try:\n    main(['--home', {str(story.services.settings.home)!r}, '--json', {command}])\n"
        f"except SystemExit as left:\n    assert not left.code, left.code\n"
        f"print(sorted(set(sys.modules) & {unwanted!r}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert json.loads(done.stdout)
    assert done.stderr.strip().endswith("[]")
