"""One home from `init` on, by real commands: exact results, exit codes, and JSON that is alone on stdout.

The home is prepared once, because its one batch needs Spark; the tests look at what each command said.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.e2e.cli import CommandLine, body, schema_of

from lean_ops.model.tables import Names
from lean_ops.settings import Settings

pytestmark = pytest.mark.e2e

FROM_FILE = [
    body("m1", {"a": 1.5, "b": {"c": "x"}}, idempotency_key="k1"),
    body("m2", {"a": 2}, idempotency_key="k2"),
    "",
    body("m2", {"a": 2}, idempotency_key="k2"),
    body("m3", '{"a": '),
    "not a message",
    '{"publish_time": "2026-02-03T10:15:30Z", "payload": {}}',
]
FROM_STDIN = [
    body("m4", ""),
    body("m5", {"A": "same name"}, idempotency_key="k1", publish_time="2026-02-04T00:00:00Z"),
    '{"message_id": "m6", "publish_time": "now", "payload": 1}',
]
LATER = [body("m7", {"a": "7"})]


@dataclass
class Session:
    """A home and what each command on it said, under a name of its own."""

    command_line: CommandLine
    folder: Path
    said: dict[str, CompletedProcess[str]] = field(default_factory=dict)
    with_spark: set[str] = field(default_factory=set)

    def do(self, name: str, *arguments: str, stdin: bytes | None = None) -> None:
        before = self._spark_starts()
        self.said[name] = self.command_line.start(*arguments, stdin=stdin)
        if self._spark_starts() != before:
            self.with_spark.add(name)

    def _spark_starts(self) -> tuple[bool, int]:
        """Changes with every start of Spark, which writes its log settings anew."""
        logs = self.command_line.home / "logs"
        settings = logs / "log4j2.properties"
        return (logs / "spark-start.log").exists(), settings.stat().st_mtime_ns if settings.exists() else 0

    def file(self, name: str, content: str) -> str:
        path = self.folder / name
        path.write_text(content)
        return str(path)

    def text(self, name: str, code: int = 0) -> str:
        done = self.said[name]
        assert done.returncode == code, f"{name}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def json(self, name: str, code: int = 0) -> Any:
        self.text(name, code)
        return json.loads(self.said[name].stdout)

    def files(self) -> dict[str, int]:
        """Every file of the home with its time of change, but for what SQLite keeps beside its databases."""
        home = self.command_line.home
        found = [path for path in home.rglob("*") if path.is_file() and ".db" not in path.name]
        return {str(path.relative_to(home)): path.stat().st_mtime_ns for path in found}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("command-line")
    session = Session(CommandLine(folder / "home"), folder)
    _arrive(session)
    _deploy_and_run(session)
    _pause_and_resume(session)
    return session


def _arrive(session: Session) -> None:
    session.do("status before init", "status")
    session.do("init", "init")
    session.do("init again", "init", "--json")
    session.do("ingest file", "ingest", "my-events", session.file("bodies.jsonl", "\n".join(FROM_FILE) + "\n"))
    session.do("ingest stdin", "ingest", "my-events", "-", "--json", stdin="\n".join(FROM_STDIN).encode())
    session.do("run while shut", "run")
    session.do("run while shut as json", "run", "--json")
    session.do("trace while shut", "trace", "m1", "--json")


def _deploy_and_run(session: Session) -> None:
    wrong, right = session.file("wrong.json", schema_of("orders")), session.file("right.json", schema_of("my_events"))
    session.do("submit wrong", "schema", "submit", "my_events", wrong, "--json")
    session.do("submit", "schema", "submit", "my_events", right)
    session.do("submit again", "schema", "submit", "my_events", right, "--json")
    before = session.files()
    session.do("explain", "run", "--explain", "--json")
    assert session.files() == before, "--explain changed the home"
    session.do("run", "run", "--json")
    session.do("run again", "run")
    session.do("run again as json", "run", "my_events", "--json")


def _pause_and_resume(session: Session) -> None:
    session.do("ingest later", "ingest", "my_events", session.file("later.jsonl", "\n".join(LATER)))
    session.do("pause", "pause", "my_events", "--reason", "stock-taking")
    session.do("run while paused", "run")
    session.do("resume", "resume", "my_events", "--json")
    session.do("explain after resume", "run", "--explain", "--json")


# what arrives


def test_reading_before_init_fails_and_makes_nothing(session: Session) -> None:
    assert "no lake here" in session.text("status before init", code=1)
    assert "`lean-ops init`" in session.text("status before init", code=1)


def test_init_makes_the_shared_tables_and_may_be_repeated(session: Session) -> None:
    tables = [str(name) for name in Names().shared]
    assert session.text("init") == f"home {session.command_line.home} is ready: {len(tables)} shared tables\n"
    assert session.json("init again") == {"home": str(session.command_line.home), "tables": tables}


def test_config_tells_every_setting_and_where_it_came_from(session: Session) -> None:
    rows = {row["setting"]: row for row in session.command_line.json("config")}
    assert list(rows) == list(Settings.model_fields)
    assert (rows["home"]["value"], rows["home"]["from"]) == (str(session.command_line.home), "--home")
    assert rows["spark_java_options"]["from"] == "LEAN_OPS_SPARK_JAVA_OPTIONS"
    assert (rows["workers"]["value"], rows["workers"]["from"]) == (4, "default")


def test_doctor_finds_everything_in_order(session: Session) -> None:
    checks = session.command_line.json("doctor")
    assert [check["name"] for check in checks if not check["ok"]] == []
    assert {"java", "jars", "home", "catalog", "state", "clock"} <= {check["name"] for check in checks}


def test_ingest_tells_the_fate_of_every_line(session: Session) -> None:
    said = session.text("ingest file")
    assert "my_events: 7 lines: 4 in RAW, 2 dead letters (1 INVALID_CONTRACT, 1 MALFORMED_JSON), 1 blank\n" in said
    assert "bodies.jsonl:6: MALFORMED_JSON: not a JSON object" in said
    assert "bodies.jsonl:7: INVALID_CONTRACT: message_id: found no such member" in said
    document = session.json("ingest stdin")
    assert document["totals"] == {"lines": 3, "raw": 2, "dead_letters": 1, "blank": 0}
    (refused,) = document["refused"]
    assert (refused["file"], refused["line"], refused["error_type"]) == ("-", 3, "INVALID_CONTRACT")
    kept = json.loads((session.command_line.home / refused["archive_path"]).read_bytes())
    assert kept["message_id"] == "m6"


# the gate, the run


def test_a_run_before_the_schema_skips_the_topic_says_why_and_starts_no_spark(session: Session) -> None:
    assert "my_events: skipped, no schema deployed; 6 records wait in RAW\n" in session.text("run while shut")
    waiting = [{"topic": "my_events", "records": 6, "reason": "no schema deployed"}]
    assert session.json("run while shut as json") == {"run_id": None, "topics": [], "waiting": waiting}
    (copy,) = session.json("trace while shut")["copies"]
    assert (copy["fate"], copy["reason"]) == ("pending", "gate shut: NO_SCHEMA")


def test_spark_was_started_by_the_one_run_that_had_work(session: Session) -> None:
    assert session.with_spark == {"run"}


def test_a_wrong_schema_is_refused_and_a_right_one_opens_the_gate_once(session: Session) -> None:
    refused = session.json("submit wrong", code=1)
    assert (refused["activated"], [problem["path"] for problem in refused["problems"]]) == (False, ["$.table_name"])
    assert session.text("submit") == "schema 1.0.0 of my_events is active (NEW)\n"
    assert session.json("submit again")["activated"] is False


def test_explain_shows_the_batch_that_the_run_then_does(session: Session) -> None:
    (planned,) = session.json("explain")
    assert (planned["topic"], planned["plan"], planned["zone"]) == ("my_events", "process", "standardized")
    assert (planned["records"], planned["from_snapshot"]) == (6, None)
    (done,) = session.json("run")["topics"]
    assert [batch["batch_id"] for batch in done["batches"]] == [planned["batch_id"]]


def test_a_run_counts_every_record_once(session: Session) -> None:
    document = session.json("run")
    (done,) = document["topics"]
    assert (done["topic"], done["status"], document["waiting"]) == ("my_events", "SUCCEEDED", [])
    counts = {"records_in": 6, "inserted": 3, "updated": 0, "duplicates": 1, "superseded": 0, "errors": 2}
    assert [batch["counts"] for batch in done["batches"]] == [counts]


def test_a_second_run_finds_nothing_new(session: Session) -> None:
    assert session.text("run again") == "nothing new to process: 1 topics looked at\n"
    assert session.json("run again as json") == {"run_id": None, "topics": [], "waiting": []}


def test_a_paused_topic_is_skipped_with_its_reason_until_it_is_resumed(session: Session) -> None:
    assert "paused: stock-taking" in session.text("run while paused").lower()
    assert "1 records wait in RAW" in session.text("run while paused")
    assert "PAUSED: stock-taking" in session.text("pause")
    assert session.json("resume")["processing_enabled"] is True
    assert [(row["plan"], row["records"]) for row in session.json("explain after resume")] == [("process", 1)]


# looking


def test_status_counts_rows_and_what_waits(session: Session) -> None:
    (topic,) = session.command_line.json("status")
    assert (topic["topic"], topic["gate"], topic["open_batch"], topic["lease"]) == ("my_events", "open", None, None)
    assert (topic["raw_rows"], topic["standardized_rows"], topic["pending"]) == (7, 3, 1)


def test_errors_has_dead_letters_and_parse_errors(session: Session) -> None:
    document = session.command_line.json("errors", "my_events")
    totals = {(row["table"], row["error_type"]): row["records"] for row in document["totals"]}
    assert totals == {
        ("dlq_errors", "INVALID_CONTRACT"): 2,
        ("dlq_errors", "MALFORMED_JSON"): 1,
        ("parse_errors", "EMPTY_PAYLOAD"): 1,
        ("parse_errors", "INVALID_JSON"): 1,
    }
    assert len(document["errors"]) == 5
    parse_errors = {row["message_id"] for row in document["errors"] if row["table"] == "parse_errors"}
    assert parse_errors == {"m3", "m4"}


def test_drift_has_a_line_for_each_new_column_and_each_collision(session: Session) -> None:
    rows = session.command_line.json("drift")
    found = sorted((row["kind"], row["json_pointer"], row["records"]) for row in rows)
    assert found == [
        ("COLLISION", "/A", 1),
        ("NEW_COLUMN", "/A", 1),
        ("NEW_COLUMN", "/a", 2),
        ("NEW_COLUMN", "/b/c", 1),
    ]


def test_history_has_the_one_attempt(session: Session) -> None:
    (attempt,) = session.command_line.json("history")
    assert (attempt["topic_name"], attempt["status"], attempt["zone"]) == ("my_events", "SUCCEEDED", "standardized")
    assert (attempt["records_in"], attempt["records_out"]) == (6, 3)


def test_query_answers_a_select_over_every_zone(session: Session) -> None:
    ask = session.command_line.json
    assert ask("query", "SELECT message_id, a, b_c FROM standardized.my_events ORDER BY message_id") == [
        {"message_id": "m1", "a": "1.5", "b_c": "x"},
        {"message_id": "m2", "a": "2", "b_c": None},
        {"message_id": "m5", "a": None, "b_c": None},
    ]
    latest = ask("query", "SELECT message_id FROM standardized.my_events_latest ORDER BY message_id")
    assert latest == [{"message_id": "m2"}, {"message_id": "m5"}]
    assert ask("query", "SELECT count(*) AS rows FROM raw.my_events") == [{"rows": 7}]
    assert ask("query", "SELECT bool_and(balanced) AS all_balanced FROM ops.reconciliation_log") == [
        {"all_balanced": True}
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM raw.my_events",
        "CREATE TABLE t AS SELECT 1",
        "COPY (SELECT 1) TO '/tmp/lean-ops-must-not-be-written'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM raw.nothing",
        "SELECT 1; DROP TABLE raw.my_events",
        "no SQL at all",
    ],
)
def test_query_refuses_what_writes_reads_files_or_is_no_query(session: Session, sql: str) -> None:
    assert session.command_line.json("query", sql, code=2)["error"]["message"]


def test_trace_shows_both_copies_of_a_message_and_the_one_that_won(session: Session) -> None:
    story = session.command_line.json("trace", "m2")
    assert sorted(copy["fate"] for copy in story["copies"]) == ["duplicate", "standardized"]
    assert "standardized" in session.command_line.run("trace", "m2")


def test_trace_knows_parse_errors_dead_letters_and_what_waits(session: Session) -> None:
    trace = session.command_line.json
    assert [error["error_type"] for error in trace("trace", "m3")["parse_errors"]] == ["INVALID_JSON"]
    assert [letter["error_type"] for letter in trace("trace", "m6")["dead_letters"]] == ["INVALID_CONTRACT"]
    assert [copy["fate"] for copy in trace("trace", "m7")["copies"]] == ["pending"]
    assert [copy["message_id"] for copy in trace("trace", "--key", "k1")["copies"]] == ["m1", "m5"]


def test_trace_of_an_unknown_message_fails(session: Session) -> None:
    assert "no message with this id" in session.command_line.run("trace", "nobody", code=1)
    assert session.command_line.json("trace", "nobody", code=1)["error"]["where"] == "id 'nobody'"


# wrong use


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "nobody"),
        ("run", "no topic"),
        ("ingest", "events_latest", "-"),
        ("ingest", "events", "no-such-file.jsonl"),
        ("schema", "submit", "my_events", "no-such-file.json"),
        ("trace",),
        ("trace", "m1", "--key", "k1"),
    ],
)
def test_wrong_use_is_told_in_one_document_with_exit_2(session: Session, arguments: tuple[str, ...]) -> None:
    error = session.command_line.json(*arguments, code=2)["error"]
    assert error["what"]
    assert error["message"]


def test_an_unknown_command_is_wrong_use(session: Session) -> None:
    assert "No such command" in session.command_line.run("nothing", code=2)


def test_an_unknown_setting_is_told_with_its_file(tmp_path: Path) -> None:
    settings = tmp_path / "lean-ops.toml"
    settings.write_text("nothing = 1")
    error = CommandLine(tmp_path).json("config", code=2)["error"]
    assert (error["what"], error["where"]) == ("no such setting", f"{settings}, key 'nothing'")
