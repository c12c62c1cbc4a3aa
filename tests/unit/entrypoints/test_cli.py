from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.entrypoints.cli import hoist_global_options, main
from lean_ops.entrypoints.context import fail_with
from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Batch, Counts, Zone
from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError, WrongUseError
from lean_ops.model.registry import Gate
from lean_ops.operate.hop_run import BatchOutcome
from lean_ops.operate.plan import HopPlan, PlannedBatch, RunPlan, TopicPlan
from lean_ops.operate.run import TopicOutcome
from lean_ops.wiring import Services

HEAVY = ("pyspark", "pyarrow", "pyiceberg", "duckdb", "pandas")


@pytest.mark.parametrize(
    ("given_words", "hoisted"),
    [
        ([], []),
        (["status"], ["status"]),
        (["--home", "h", "status"], ["--home", "h", "status"]),
        (["status", "--home", "h"], ["--home", "h", "status"]),
        (["status", "--home=h"], ["--home=h", "status"]),
        (["schema", "--home", "h", "list"], ["--home", "h", "schema", "list"]),
        (["errors", "events", "--json"], ["--json", "errors", "events"]),
        (["errors", "--json", "events"], ["--json", "errors", "events"]),
        (["run", "--profile", "embedded", "a"], ["--profile", "embedded", "run", "a"]),
        (["run", "--profile=embedded", "a"], ["--profile=embedded", "run", "a"]),
        (
            ["run", "a", "--json", "--home", "h", "--explain", "--profile=p"],
            ["--json", "--home", "h", "--profile=p", "run", "a", "--explain"],
        ),
        (["--home", "one", "status", "--home", "two"], ["--home", "one", "--home", "two", "status"]),
        (["run", "--home", "--json"], ["--home", "--json", "run"]),
        (["--home=", "status"], ["--home=", "status"]),
        (["ingest", "t", "-"], ["ingest", "t", "-"]),
        (["query", "SELECT '--json'"], ["query", "SELECT '--json'"]),
        (["status", "--homely", "--jsonx"], ["status", "--homely", "--jsonx"]),
    ],
)
def test_global_options_may_stand_anywhere(given_words: list[str], hoisted: list[str]) -> None:
    assert hoist_global_options(given_words) == hoisted


@pytest.mark.parametrize(
    ("given_words", "hoisted"),
    [
        (["query", "--", "--json"], ["query", "--", "--json"]),
        (["run", "--json", "--", "--home", "h"], ["--json", "run", "--", "--home", "h"]),
        (["--", "--home=h", "--", "--json"], ["--", "--home=h", "--", "--json"]),
        (["ingest", "--", "-", "--home"], ["ingest", "--", "-", "--home"]),
    ],
)
def test_what_follows_the_double_dash_stays_where_it_is(given_words: list[str], hoisted: list[str]) -> None:
    assert hoist_global_options(given_words) == hoisted


words = st.lists(st.sampled_from(["run", "a", "--json", "--home", "--home=x", "--profile", "--", "-", "--explain"]))


@given(words)
def test_hoisting_loses_no_word_and_does_nothing_the_second_time(given_words: list[str]) -> None:
    before = list(given_words)
    hoisted = hoist_global_options(given_words)
    assert given_words == before
    assert sorted(hoisted) == sorted(before)
    assert hoist_global_options(hoisted) == hoisted


# exit codes


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with an empty catalog, and a working directory without settings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "catalog.db").touch()
    return tmp_path / "home"


class Said:
    """What a call left: its exit code and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


@pytest.fixture
def call(home: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str) -> Said:
        with pytest.raises(SystemExit) as left:
            main([*arguments, "--home", str(home)])
        out, err = capsys.readouterr()
        assert left.value.code is None or isinstance(left.value.code, int)
        return Said(left.value.code or 0, out, err)

    return run


@pytest.mark.parametrize(
    "arguments", [["config"], ["run"], ["run", "--explain"], ["schema", "list"], ["--help"], ["run", "--help"]]
)
def test_a_command_that_is_done_leaves_with_zero(call: Any, arguments: list[str]) -> None:
    said = call(*arguments)
    assert (said.code, said.err) == (0, "")
    assert said.out


@pytest.mark.parametrize("arguments", [["config"], ["run"], ["run", "--explain"], ["schema", "list"]])
def test_with_json_the_only_thing_on_stdout_is_one_document(call: Any, arguments: list[str]) -> None:
    said = call(*arguments, "--json")
    assert said.code == 0
    assert json.loads(said.out) is not None


def test_an_idle_run_makes_no_warehouse(call: Any, home: Path) -> None:
    assert "nothing new to process: 0 topics looked at" in call("run").out
    assert not (home / "warehouse").exists()


def test_a_run_can_be_repeated_until_it_is_stopped(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("lean_ops.entrypoints.commands.run.sleep", sleep)
    said = call("run", "--every", "15m")
    assert said.out.count("nothing new to process") == 3
    assert all(0 < seconds <= 900 for seconds in pauses)


def test_a_repeated_run_that_is_stopped_while_it_plans_has_begun_nothing(
    call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(*_: object) -> None:
        raise KeyboardInterrupt("SIGTERM")

    monkeypatch.setattr("lean_ops.operate.plan.Planner.plan", planned)
    said = call("run", "--every", "15m")
    assert said.code == 0
    assert "stopped between two cycles by SIGTERM; nothing was begun" in said.out


@pytest.mark.parametrize("every", ["", "15", "m", "0s", "25h", "-1m", "1.5h", "15 m", "15m\n"])
def test_what_is_no_time_to_wait_is_wrong_use(call: Any, every: str) -> None:
    said = call("run", f"--every={every}")
    assert said.code == 2
    assert "--every: not a time to wait" in said.err


def test_a_repeated_run_has_no_single_answer_to_print(call: Any) -> None:
    assert call("run", "--every", "1m", "--json").code == 2
    assert call("run", "--every", "1m", "--explain").code == 2


def test_a_run_where_no_lake_is_says_so_and_makes_none(call: Any, home: Path) -> None:
    (home / "catalog.db").unlink()
    said = call("run")
    assert said.code == 1
    assert "no lake here. Run `lean-ops init`" in said.err
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["run", "--no-such-option"],
        ["ingest"],
        ["run", "no_such_topic"],
        ["run", "not a topic"],
        ["run", "events_latest"],
        ["--profile", "moon", "config"],
    ],
)
def test_wrong_use_leaves_with_two_and_says_why_on_stderr(call: Any, home: Path, arguments: list[str]) -> None:
    said = call(*arguments)
    assert said.code == 2
    assert said.err.strip()
    assert said.out == ""
    assert not (home / "warehouse").exists()


def test_a_home_whose_name_was_forgotten_is_wrong_use(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["config", "--home"])
    assert left.value.code == 2
    assert capsys.readouterr().err
    assert list(home.parent.iterdir()) == [home]


def test_a_wrong_setting_is_wrong_use_that_names_file_and_key(call: Any, home: Path) -> None:
    (home / "lean-ops.toml").write_text("workers = 0\n")
    said = call("config")
    assert said.code == 2
    assert "lean-ops.toml, key 'workers'" in said.err


def test_a_wrong_use_with_json_is_a_document_that_names_all_parts(call: Any) -> None:
    said = call("run", "no such", "--json")
    assert said.code == 2
    assert set(json.loads(said.out)) == {"error"}
    error = json.loads(said.out)["error"]
    assert set(error) == {"message", "what", "where", "found", "expected", "remedy"}
    assert (error["what"], error["where"], error["found"]) == ("not a topic name", "topic 'no such'", None)
    assert error["message"] in said.err


def test_json_behind_the_double_dash_is_no_flag(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--home", str(home), "run", "--", "--json"])
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert "not a topic name" in err
    assert out == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (WrongUseError("no such topic"), 2),
        (TerminalError("damaged"), 1),
        (TransientError("locked"), 1),
        (LeanOpsError("interrupted"), 1),
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_an_error_leaves_with_the_code_of_its_kind(
    error: LeanOpsError, code: int, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        fail_with(error, as_json)
    assert left.value.code == code
    out, err = capsys.readouterr()
    assert err == f"error: {error}\n"
    assert (json.loads(out)["error"]["message"] if as_json else out) == (str(error) if as_json else "")


def test_an_errors_text_is_printed_as_it_is_and_not_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "[red]not markup[/red] [/] 'ü' \\[x] " + "long " * 60 + ":smile: https://example.org"
    with pytest.raises(SystemExit):
        fail_with(TerminalError(hostile), as_json=True)
    out, err = capsys.readouterr()
    assert err == f"error: {hostile}\n"
    assert json.loads(out)["error"]["what"] == hostile


def test_reading_a_home_that_is_not_there_leaves_with_one_and_makes_none(call: Any, home: Path) -> None:
    (home / "catalog.db").unlink()
    home.rmdir()
    said = call("status")
    assert (said.code, said.out) == (1, "")
    assert "no lake here. Run `lean-ops init`" in said.err
    assert not home.exists()


def test_a_terminal_error_inside_a_command_leaves_with_one(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Services) -> NoReturn:
        raise TerminalError("its metadata file is damaged", where="db.t", remedy="Restore it.")

    monkeypatch.setattr(Services, "planner", property(refuse))
    said = call("run")
    assert (said.code, said.out) == (1, "")
    assert said.err == "error: db.t: its metadata file is damaged. Restore it.\n"


# runs that found work


OPEN = Gate(open=True, reason="")
DAMAGED = HopPlan(Zone.STANDARDIZED, problem=TerminalError("[damaged]"))


class FakePlanner:
    """A plan of the given topics."""

    def __init__(self, *topics: TopicPlan) -> None:
        self.topics = topics

    def plan(self, _: Any) -> RunPlan:
        return RunPlan(self.topics)


class FakeRun:
    """A run that does what the test says."""

    run_id = "run"

    def __init__(self, *outcomes: TopicOutcome | BaseException) -> None:
        self.outcomes = outcomes

    def execute(self, _: RunPlan) -> Iterator[TopicOutcome]:
        for outcome in self.outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome


STANDARDIZED = BatchOutcome("s", Zone.STANDARDIZED, Counts(records_in=9, inserted=6, duplicates=2, errors=1))
CURATED = BatchOutcome("c", Zone.CURATED, Counts(records_in=6, inserted=2, updated=1, superseded=2, errors=1))
STANDARDIZED_BOOKS = "9 in = 6 standardized + 2 duplicates + 1 errors"
CURATED_BOOKS = "6 in = 2 new + 1 updated + 2 superseded + 1 errors in curated"
GOOD = TopicOutcome("good", RunStatus.SUCCEEDED, None, (STANDARDIZED,))
HELD = TopicOutcome("bad", RunStatus.SKIPPED, "the lease is held by [ann]")
BAD = TopicOutcome("bad", RunStatus.FAILED, "it [fell] over")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Any:
    def prepare(*outcomes: TopicOutcome | BaseException) -> None:
        topics = (TopicPlan(name, OPEN, (DAMAGED,)) for name in ("bad", "good"))
        monkeypatch.setattr(Services, "planner", FakePlanner(*topics))
        monkeypatch.setattr(Services, "new_run", lambda _: FakeRun(*outcomes))
        monkeypatch.setattr("lean_ops.entrypoints.logs.log_into", lambda _: None)

    return prepare


def test_a_run_with_a_failed_topic_leaves_with_one_after_all_are_told(call: Any, runs: Any) -> None:
    runs(BAD, GOOD)
    said = call("run")
    assert said.code == 1
    assert "1/2 bad: failed: it [fell] over" in said.out
    assert f"2/2 good: {STANDARDIZED_BOOKS}\n" in said.out
    assert "1 of 2 topics failed" in said.err


def test_a_failed_run_with_json_still_prints_its_one_document(call: Any, runs: Any) -> None:
    runs(BAD, GOOD)
    said = call("run", "--json")
    assert said.code == 1
    document = json.loads(said.out)
    assert [(topic["topic"], topic["status"]) for topic in document["topics"]] == [
        ("bad", "FAILED"),
        ("good", "SUCCEEDED"),
    ]
    assert document["run_id"] == "run"


def test_a_lease_held_by_another_is_a_notice_and_no_failure(call: Any, runs: Any) -> None:
    runs(HELD, GOOD)
    said = call("run")
    assert said.code == 0
    assert "the lease is held by [ann]" in said.out


def test_an_interrupted_run_leaves_with_one_and_says_how_it_goes_on(call: Any, runs: Any) -> None:
    runs(GOOD, KeyboardInterrupt())
    said = call("run")
    assert said.code == 1
    assert "interrupted between commits" in said.err
    assert "next `lean-ops run` continues" in said.err


@pytest.mark.parametrize(
    ("batches", "books"),
    [
        ((STANDARDIZED, STANDARDIZED), "18 in = 12 standardized + 4 duplicates + 2 errors"),
        ((STANDARDIZED, CURATED), f"{STANDARDIZED_BOOKS}; {CURATED_BOOKS}"),
        ((CURATED,), CURATED_BOOKS),
        ((), "nothing new"),
    ],
    ids=["two batches", "both hops", "curated alone", "none"],
)
def test_a_topic_that_is_done_is_told_with_the_books_of_each_zone(
    call: Any, runs: Any, batches: tuple[BatchOutcome, ...], books: str
) -> None:
    runs(TopicOutcome("good", RunStatus.SUCCEEDED, None, batches))
    assert f"1/2 good: {books}\n" in call("run").out


def test_a_topic_that_failed_is_told_with_what_was_done_before(call: Any, runs: Any) -> None:
    runs(TopicOutcome("bad", RunStatus.FAILED, "it [fell] over", (STANDARDIZED,)))
    assert f"1/2 bad: failed: it [fell] over (done: {STANDARDIZED_BOOKS})\n" in call("run").out


# plans


def planned(zone: Zone, start: int | None, resumes: bool = False) -> PlannedBatch:
    return PlannedBatch(Batch("events", zone, start, 7, "1.0.0"), 5, resumes)


def row(topic: str, plan: str, **values: Any) -> dict[str, Any]:
    """A row of the plan in which everything that is not said is not known."""
    keys = ("records", "zone", "from_snapshot", "to_snapshot", "batch_id")
    return {"topic": topic, "plan": plan, **dict.fromkeys(keys), **values}


def explained(call: Any, monkeypatch: pytest.MonkeyPatch, *topics: TopicPlan) -> list[dict[str, Any]]:
    monkeypatch.setattr(Services, "planner", FakePlanner(*topics))
    said = call("run", "--explain", "--json")
    assert said.code == 0
    rows: list[dict[str, Any]] = json.loads(said.out)
    return rows


def test_a_plan_is_a_row_for_each_batch_of_each_hop(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = planned(Zone.STANDARDIZED, 3, resumes=True), planned(Zone.CURATED, None)
    hops = (HopPlan(Zone.STANDARDIZED, (first,)), HopPlan(Zone.CURATED, (second,), follows=True))
    known = {"records": 5, "to_snapshot": "7"}
    assert explained(call, monkeypatch, TopicPlan("events", OPEN, hops)) == [
        row("events", "resume", **known, zone="standardized", from_snapshot="3", batch_id=first.batch.batch_id),
        row("events", "process", **known, zone="curated", batch_id=second.batch.batch_id),
        row("events", "process what the hop before brings", zone="curated"),
    ]


def test_a_hop_that_can_not_be_planned_says_why(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = TopicPlan("bad", OPEN, (DAMAGED, HopPlan(Zone.CURATED)))
    assert explained(call, monkeypatch, plan) == [row("bad", "can't be planned: [damaged]", zone="standardized")]
    assert "can't be planned: [damaged]" in call("run", "--explain").out


def test_a_topic_without_a_batch_is_a_row_of_the_plan_too(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = TopicPlan("idle", OPEN, (HopPlan(Zone.STANDARDIZED), HopPlan(Zone.CURATED)))
    shut = TopicPlan("shut", Gate(open=False, reason="paused: night"), waiting=23)
    assert explained(call, monkeypatch, idle, shut) == [
        row("idle", "nothing new", records=0),
        row("shut", "skipped, paused: night", records=23),
    ]


# what a command does not pay for


def loaded_by(program: str, *arguments: str) -> set[str]:
    """The heavy packages that a program in a process of its own has imported."""
    tell = f"; import json, sys; print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", program + tell, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    assert loaded_by("import lean_ops.entrypoints.cli") == set()


@pytest.mark.parametrize("command", ["run", "status"])
def test_an_idle_command_loads_nothing_heavy(home: Path, command: str) -> None:
    assert home.is_dir()
    with closing(sqlite3.connect(home / "catalog.db")) as catalog:
        columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
        catalog.execute(f"CREATE TABLE iceberg_tables ({columns})")
    program = "from lean_ops.entrypoints.cli import app; import sys; app(sys.argv[1:], standalone_mode=False)"
    assert loaded_by(program, "--home", str(home), command) == set()
