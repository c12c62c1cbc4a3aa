"""`lean-ops ingest --from-firehose-errors` on a real lake."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.ingest_home import TOPIC, Home

from lean_ops.entrypoints.cli import main
from lean_ops.ingest.firehose_errors import FirehoseErrors
from lean_ops.ingest.firehose_record import to_record
from lean_ops.ingest.intake import Report
from lean_ops.ledger.recount import Recounter
from lean_ops.model.envelope import RawRow

ROW = RawRow(TOPIC, "m-1", "k-1", None, "c", 1_770_000_000_123_456, 1_770_000_060, '{"a": "é 1.10"}')
BODY = b'{"message_id": "m-9", "publish_time": "2026-02-03T10:15:30Z", "payload": 1}'


def line(data: bytes, code: str = "Lambda.FunctionError") -> str:
    whole = {"attemptsMade": 4, "errorCode": code, "rawData": base64.b64encode(data).decode()}
    return json.dumps(whole) + "\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.services.presence.leave()


def take(home: Home, content: str) -> tuple[Report, FirehoseErrors]:
    file, errors = home.folder / "errors", FirehoseErrors(TOPIC)
    file.write_text(content)
    return replace(home.intake(), read_lines=errors.read_lines).take(TOPIC, [str(file)]), errors


def assert_balanced(home: Home) -> None:
    reconciler = home.services.reconciler(home.services.state)
    for account in (Recounter(reconciler).recount(TOPIC).account, *reconciler.reconcile([TOPIC])):
        assert [finding.message for zone in account.zones for finding in zone.findings] == []


def test_records_land_as_they_were(home: Home) -> None:
    report, _ = take(home, line(to_record(ROW)))
    assert (report.raw, report.lines) == (1, 1)
    (row,) = home.raw
    assert {**row, "publish_time": round(row["publish_time"].timestamp() * 1_000_000)} == ROW._asdict()
    assert_balanced(home)


def test_what_is_no_record_is_a_dead_letter_of_firehose_and_the_books_balance(home: Home) -> None:
    report, _ = take(home, line(to_record(ROW)) + line(BODY) + line(b"\xff") + "no error output\n\n")
    assert (report.raw, report.blank, dict(report.dead_letters)) == (1, 1, {"INVALID_CONTRACT": 1, "MALFORMED_JSON": 2})
    rows = {row["body"]: row for row in home.dead_letters}
    assert set(rows) == {BODY.decode(), "\\xff", "no error output"}
    assert {row["source"] for row in rows.values()} == {"firehose"}
    assert json.loads(rows[BODY.decode()]["attributes"]) == {"attemptsMade": 4, "errorCode": "Lambda.FunctionError"}
    assert rows[BODY.decode()]["message_id"] == "m-9"
    home.assert_books_are_right(raw=1, dead=3)
    assert_balanced(home)


def test_a_crash_before_the_books_is_finished_by_the_next_ingestion(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CutOffError(BaseException): ...

    def cut_off(*_: object) -> None:
        raise CutOffError

    with monkeypatch.context() as patch:
        patch.setattr(home.services.landing, "settle", cut_off)
        with pytest.raises(CutOffError):
            take(home, line(to_record(ROW)) + line(BODY))
    home.services.presence.leave()
    next_one = Home(home.folder)
    assert next_one.finish() == 1
    assert [row["source"] for row in next_one.dead_letters] == ["firehose"]
    next_one.assert_books_are_right(raw=1, dead=1)
    assert_balanced(next_one)
    next_one.services.presence.leave()


def test_other_topics_records_are_left_alone_and_write_nothing(home: Home) -> None:
    report, errors = take(home, line(to_record(ROW._replace(topic_name="orders"))) * 3)
    assert (report.lines, errors.others) == (0, {"orders": 3})
    assert not home.services.lake.exists(home.services.lake.names.raw(TOPIC))


def test_a_queue_body_among_them_can_be_replayed(home: Home) -> None:
    take(home, line(BODY))
    assert home.services.dlq_replay().replay(TOPIC).landed == 1
    assert [row["message_id"] for row in home.raw] == ["m-9"]
    assert_balanced(home)


# the command


def run(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(["--home", str(folder / "home"), *arguments])
    return int(left.value.code or 0), capsys.readouterr().out


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """A folder as it comes from the bucket."""
    folder = tmp_path / "firehose-errors" / "processing-failed" / "2026" / "02" / "03" / "10"
    folder.mkdir(parents=True)
    (folder / "stream-1").write_text(line(to_record(ROW)) + line(to_record(ROW._replace(topic_name="orders"))))
    (folder / "stream-2.gz").write_bytes(gzip.compress((line(to_record(ROW._replace(message_id="m-2")))).encode()))
    return tmp_path / "firehose-errors"


def test_the_command_takes_a_folder_and_says_whose_records_are_left(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(capsys, tmp_path, "ingest", TOPIC, "--from-firehose-errors", str(output))
    assert code == 0
    assert "left alone, because they are other topics': orders 1" in out
    assert "2 in RAW, 0 dead letters" in out


def test_the_command_speaks_json(output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, tmp_path, "ingest", TOPIC, "--from-firehose-errors", str(output), "--json")
    document: dict[str, Any] = json.loads(out)
    assert (code, document["totals"]["raw"], document["other_topics"]) == (0, 2, {"orders": 1})


def test_an_empty_folder_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run(capsys, tmp_path, "ingest", TOPIC, "--from-firehose-errors", str(tmp_path / "empty"))[0] == 2


def test_broken_gzip_ends_the_ingestion_and_what_was_read_has_landed(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (output / "zzz").write_bytes(gzip.compress(line(to_record(ROW)).encode())[:-9])
    code, out = run(capsys, tmp_path, "ingest", TOPIC, "--from-firehose-errors", str(output))
    assert code == 1
    assert "2 in RAW" in out
