"""`lean-ops ingest` on a real lake: what lands, what is refused, and what a crash leaves behind."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from lean_ops.entrypoints.cli import main
from lean_ops.ingest.flush import SETTLED_PROPERTY
from lean_ops.ingest.intake import StoppedError
from lean_ops.ingest.recovery import unsettled_snapshots
from lean_ops.lake.snapshots import history_of
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lean_ops.model.tables import TableName
from tests.integration.ingest_home import START, TOPIC, Home, bodies, body


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.services.presence.leave()


def test_every_line_has_its_fate_and_the_books_balance(home: Home) -> None:
    report = home.take(bodies(5) + "junk\n\n{}\n", body(5).rstrip())
    assert (report.lines, report.raw, report.blank) == (9, 6, 1)
    assert dict(report.dead_letters) == {"MALFORMED_JSON": 1, "INVALID_CONTRACT": 1}
    home.assert_books_are_right(raw=6, dead=2)
    (row,) = [row for row in home.raw if row["message_id"] == "m-4"]
    assert row == {
        "topic_name": TOPIC,
        "message_id": "m-4",
        "idempotency_key": "k-4",
        "period_reference": None,
        "correlation_id": None,
        "publish_time": datetime(2026, 2, 2, 10, 15, 30, 123456, tzinfo=UTC),
        "ingestion_ts": int(START.timestamp()),
        "json_payload": '{"_metadata": {"idempotencyKeyResource": "k-4"}, "n": 4}',
    }
    (entry,), (snapshot,) = home.ledger, home.snapshots
    flush = report.flushes[0].flush
    assert entry == {
        "topic_name": TOPIC,
        "zone": "raw",
        "kind": "BATCH",
        "batch_id": flush.flush_id,
        "from_snapshot": None,
        "to_snapshot": str(snapshot.snapshot_id),
        "records_in": 8,
        "records_out": 6,
        "inserted": 6,
        "updated": 0,
        "duplicates": 0,
        "superseded": 0,
        "errors": 2,
        "variance": 0.0,
        "balanced": True,
        "recorded_at": START,
    }
    assert snapshot.summary["lean-ops.flush-id"] == flush.flush_id
    assert snapshot.summary["lean-ops.records-in"] == "8"
    assert snapshot.summary["lean-ops.errors"] == "2"
    item = home.services.state.item(TOPIC)
    assert item is not None
    assert item.status == "NO_SCHEMA"


def test_a_dead_letter_has_a_row_and_an_archive_file(home: Home) -> None:
    report = home.take("junk\n")
    (row,) = home.dead_letters
    assert row["archive_path"] == report.refused[0].archive_path
    assert row["archive_path"].startswith(f"dlq-archive/{TOPIC}/2026-02-03/12/")
    assert (row["replay_status"], row["source"], row["attributes"], row["body"]) == ("NEW", "ingest", "{}", "junk")
    kept = json.loads((home.services.settings.home / row["archive_path"]).read_bytes())
    assert (kept["line"], kept["body"], kept["error_type"]) == (1, "junk", "MALFORMED_JSON")
    home.assert_books_are_right(raw=0, dead=1)


def test_an_oversized_line_is_archived_whole(tmp_path: Path) -> None:
    home = Home(tmp_path, max_body_bytes=1024, flush_bytes=1024 * 1024)
    huge = body(1, payload={"x": "é" * 2_000_000})
    report = home.take(huge + body(2))
    assert dict(report.dead_letters) == {"OVERSIZED": 1}
    (row,) = home.dead_letters
    assert row["message_id"] == "m-1"
    assert huge.startswith(row["body"])
    kept = json.loads((home.services.settings.home / row["archive_path"]).read_bytes())
    assert kept["body"] == huge.rstrip()
    home.assert_books_are_right(raw=1, dead=1)
    home.services.presence.leave()


def test_a_flush_is_committed_when_enough_bytes_are_there(tmp_path: Path) -> None:
    home = Home(tmp_path, flush_bytes=1024)
    report = home.take(bodies(30))
    assert len(report.flushes) > 2
    places = [(landed.first.line, landed.last.line) for landed in report.flushes]
    assert places[0][0] == 1
    assert places[-1][1] == 30
    assert all(last + 1 == first for (_, last), (first, _) in itertools.pairwise(places))
    assert [row["from_snapshot"] for row in home.ledger].count(None) == 1
    home.assert_books_are_right(raw=30, dead=0)
    home.services.presence.leave()


def test_a_flush_is_committed_when_enough_time_has_passed(tmp_path: Path) -> None:
    home = Home(tmp_path, flush_seconds=60)
    intake = home.intake()
    ticks = itertools.count()

    def clock() -> datetime:
        return START + timedelta(seconds=25 * next(ticks))

    intake.clock = clock
    file = tmp_path / "in.jsonl"
    file.write_text(bodies(8))
    report = intake.take(TOPIC, [str(file)])
    assert len(report.flushes) == 2
    assert report.raw == 8
    home.services.presence.leave()


def test_empty_input_creates_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    report = home.take(b"", b"\xef\xbb\xbf\r\n  \n")
    assert (report.lines, report.blank, report.flushes) == (2, 2, [])
    assert not (tmp_path / "home").exists()


def crash(*_: object, **__: object) -> None:
    raise SystemError("killed")


def take_and_crash(home: Home, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(where, crash)
        with pytest.raises(SystemError, match="killed"):
            home.take(CONTENT)


CONTENT = bodies(3) + "junk\n{}\n"


@pytest.mark.parametrize("where", ["dlq_errors", "reconciliation_log"])
def test_what_a_crash_after_the_commit_left_is_finished_once(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Home(tmp_path)
    first.take(bodies(2, start=100))
    shared = first.services.shared
    append_rows = shared.append_rows

    def append_rows_or_crash(name: TableName, rows: Any) -> None:
        if name.table == where:
            crash()
        append_rows(name, rows)

    monkeypatch.setattr(shared, "append_rows", append_rows_or_crash)
    with pytest.raises(SystemError):
        first.take(CONTENT)
    first.services.presence.leave()
    second = Home(tmp_path)
    assert len(second.raw) == 5
    assert len(second.ledger) == 1
    assert second.finish() == 1
    second.assert_books_are_right(raw=5, dead=2)
    assert second.finish() == 0
    second.assert_books_are_right(raw=5, dead=2)
    second.services.presence.leave()


def test_the_next_ingest_finishes_what_was_left(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    take_and_crash(home, "lean_ops.ingest.landing.Landing.settle", monkeypatch)
    home.take(bodies(1, start=50))
    home.assert_books_are_right(raw=4, dead=2)


def test_a_crash_before_the_commit_leaves_no_trace_in_the_books(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.take(bodies(1, start=50))
    take_and_crash(home, "lean_ops.ingest.landing.append_files", monkeypatch)
    assert home.finish() == 0
    home.assert_books_are_right(raw=1, dead=0)


def test_a_flush_behind_one_that_is_in_the_ledger_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process starts, another dies after its commit, then the first goes on."""
    going_on, dying = Home(tmp_path), Home(tmp_path)
    going_on.services.prepare_topic(TOPIC, TOPIC)
    take_and_crash(dying, "lean_ops.ingest.landing.Landing.settle", monkeypatch)
    intake = going_on.intake()
    intake.prepare = lambda: None
    file = tmp_path / "in.jsonl"
    file.write_text(bodies(1, start=50))
    intake.take(TOPIC, [str(file)])
    assert going_on.finish() == 0  # the other process still lives as far as anyone knows
    dying.services.presence.leave()
    assert going_on.finish() == 1
    going_on.assert_books_are_right(raw=4, dead=2)
    going_on.services.presence.leave()


def test_a_flush_of_a_living_process_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    living, other = Home(tmp_path), Home(tmp_path)
    settle = living.services.landing.settle

    def look_from_outside(committed: Any) -> None:
        assert living.finish() == 0  # from another thread of the same process it looks the same
        assert other.finish() == 0
        settle(committed)

    monkeypatch.setattr(living.services.landing, "settle", look_from_outside)
    living.take(CONTENT)
    living.assert_books_are_right(raw=3, dead=2)
    for home in (living, other):
        home.services.presence.leave()


def test_recovery_looks_no_further_back_than_it_must(tmp_path: Path) -> None:
    home = Home(tmp_path, flush_bytes=1024)
    home.take(bodies(30))
    home.take(bodies(30))
    assert SETTLED_PROPERTY in home.snapshots[-1].summary
    table = home.services.lake.load(home.services.lake.names.raw(TOPIC))
    assert len(home.snapshots) > 6
    assert len(unsettled_snapshots(history_of(table))) == 1
    home.services.presence.leave()


def test_ingests_of_one_topic_at_the_same_time_both_land(tmp_path: Path) -> None:
    homes = [Home(tmp_path, flush_bytes=2048) for _ in range(3)]
    homes[0].take(bodies(1, start=1000))
    errors: list[BaseException] = []

    def take(home: Home, start: int) -> None:
        try:
            home.take(bodies(40, start) + "junk\n")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take, args=(home, 100 * number)) for number, home in enumerate(homes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    homes[0].assert_books_are_right(raw=121, dead=3)
    assert len({row["message_id"] for row in homes[0].raw}) == 121
    for home in homes:
        assert home.finish() == 0
        home.services.presence.leave()


def test_a_flush_that_fails_says_how_far_everything_landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path, flush_bytes=1024)
    commit = home.services.landing._commit
    calls = itertools.count()

    def fail_later(gathered: Any) -> Any:
        if next(calls) == 2:
            raise TransientError("lost")
        return commit(gathered)

    monkeypatch.setattr(home.services.landing, "_commit", fail_later)
    with pytest.raises(StoppedError, match=r"everything up to line \d+ of") as stopped:
        home.take(bodies(30))
    report = stopped.value.report
    assert report.raw == report.flushes[-1].last.line == len(home.raw)
    home.services.presence.leave()


def test_what_was_read_before_a_fault_lands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)

    @contextmanager
    def faulty(_: str) -> Iterator[Any]:
        chunks = iter([bodies(3).encode() + b'{"half'])

        def read() -> bytes:
            for chunk in chunks:
                return chunk
            raise OSError(5, "Input/output error")

        yield read

    monkeypatch.setattr("lean_ops.ingest.intake.open_source", faulty)
    with pytest.raises(StoppedError, match=r"Input/output error.*everything up to line 3 of"):
        home.take(b"")
    home.assert_books_are_right(raw=3, dead=0)
    home.services.presence.leave()


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_the_command_tells_what_became_of_every_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "in[red].jsonl"
    file.write_text(bodies(2) + "junk\n" * 25 + "\n")
    home = ("--home", str(tmp_path / "home"))
    code, out, _ = call(capsys, *home, "ingest", "My-Topic.x", str(file))
    assert code == 0
    assert f"lines 1-27 of {file}: 2 rows in RAW snapshot" in out
    assert f"{file}:3: MALFORMED_JSON: not a JSON object" in out
    assert out.count("MALFORMED_JSON: ") == 20
    assert "and 5 more dead letters, in dlq-archive/my_topic_x/" in out
    assert "my_topic_x: 28 lines: 2 in RAW, 25 dead letters (25 MALFORMED_JSON), 1 blank" in out
    code, out, err = call(capsys, *home, "--json", "ingest", "my_topic_x", str(file))
    document = json.loads(out)
    assert code == 0
    assert document["totals"] == {"lines": 28, "raw": 2, "dead_letters": 25, "blank": 1}
    assert document["dead_letters_by_type"] == {"MALFORMED_JSON": 25}
    assert document["refused_not_listed"] == 0
    assert document["refused"][0]["line"] == 3
    assert document["flushes"][0]["first"] == {"file": str(file), "line": 1}
    assert document["flushes"][0]["raw"] == 2
    assert "2 rows in RAW" in err


def test_the_command_says_that_the_input_was_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "empty"
    file.touch()
    code, out, _ = call(capsys, "--home", str(tmp_path / "home"), "ingest", "events", str(file))
    assert code == 0
    assert "the input is empty" in out
    assert not (tmp_path / "home").exists()


def test_wrong_use_is_found_before_anything_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text(bodies(1))
    home = ("--home", str(tmp_path / "home"), "ingest")
    for arguments, named in (
        (("events", str(good), str(tmp_path / "missing.jsonl")), "missing.jsonl"),
        (("events", str(good), str(tmp_path)), tmp_path.name),
        (("9lives", str(good)), "9lives"),
        (("dlq", str(good)), "reserved"),
    ):
        code, _, err = call(capsys, *home, *arguments)
        assert code == 2
        assert named in err
        assert not (tmp_path / "home").exists()


def test_two_names_that_become_one_topic_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text(bodies(1))
    home = ("--home", str(tmp_path / "home"), "ingest")
    assert call(capsys, *home, "a-b", str(good))[0] == 0
    code, _, err = call(capsys, *home, "a.b", str(good))
    assert code == 2
    assert "'a-b' both become topic 'a_b'" in err


COMMAND = (sys.executable, "-c", "from lean_ops.entrypoints.cli import main; main()")


def test_ctrl_c_lands_what_was_read_and_says_so(tmp_path: Path) -> None:
    arguments = ("--home", str(tmp_path / "home"), "--json", "ingest", TOPIC, "-")
    with subprocess.Popen(
        (*COMMAND, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(bodies(3).encode() + b'{"half')
        process.stdin.flush()
        _wait_for(tmp_path / "home" / "catalog.db", process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    document = json.loads(out)
    assert process.returncode == 1
    assert document["totals"]["raw"] == 3
    assert "everything up to line 3 of stdin landed" in document["error"]["message"]
    assert b"stopped by Ctrl-C" in err
    Home(tmp_path).assert_books_are_right(raw=3, dead=0)


def _wait_for(file: Path, process: subprocess.Popen[bytes]) -> None:
    pause = threading.Event()
    while not file.exists() and process.poll() is None:
        pause.wait(0.05)


def test_two_processes_may_begin_the_same_home(tmp_path: Path) -> None:
    files = []
    for number in range(2):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text(bodies(20, start=100 * number) + "junk\n")
    arguments = ("--home", str(tmp_path / "home"), "ingest", TOPIC)
    processes = [
        subprocess.Popen((*COMMAND, *arguments, str(file)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for file in files
    ]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err.decode()
    Home(tmp_path).assert_books_are_right(raw=40, dead=2)
