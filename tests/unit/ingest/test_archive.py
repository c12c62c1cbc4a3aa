"""Dead letters on disk."""

from __future__ import annotations

import base64
import json
import tempfile
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from lean_ops.ingest.archive import Archive, Refused
from lean_ops.ingest.archive_file import HEAD_BYTES
from lean_ops.ingest.lines import Spool
from lean_ops.model.envelope import DeadLetter, Refusal
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 2, 3, 11, 0, 0, 123456, tzinfo=UTC)
ARRIVED = datetime(2026, 2, 3, 0, 59, 59, tzinfo=timezone(timedelta(hours=1)))
LETTER = DeadLetter(Refusal.MALFORMED_JSON, "found 'x'\n\"é\"", "m/../1")


def spooled(body: bytes) -> Spool:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(body)
    return Spool(file, len(body))


def put(archive: Archive, body: bytes | Spool, number: int = 1) -> dict[str, Any]:
    return archive.put("events", "f1", number, Refused(LETTER, body, "in/put.jsonl", 7, ARRIVED), NOW)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "dlq-archive")


def test_a_dead_letter_is_kept_whole_under_the_hour_of_its_arrival(archive: Archive, tmp_path: Path) -> None:
    row = put(archive, b'{"a": "\xc3\xa9\\n')
    assert row == {
        "topic_name": "events",
        "message_id": "m/../1",
        "error_type": "MALFORMED_JSON",
        "error_message": "found 'x'\n\"é\"",
        "body": '{"a": "é\\n',
        "attributes": "{}",
        "receive_count": 1,
        "source": "ingest",
        "archive_path": "dlq-archive/events/2026-02-02/23/f1-1.json",
        "archived_at": NOW,
        "replay_status": "NEW",
        "replay_id": None,
    }
    assert json.loads((tmp_path / row["archive_path"]).read_bytes()) == {
        "topic_name": "events",
        "message_id": "m/../1",
        "error_type": "MALFORMED_JSON",
        "error_message": "found 'x'\n\"é\"",
        "attributes": {},
        "receive_count": 1,
        "source": "ingest",
        "archived_at": "2026-02-03T11:00:00.123456+00:00",
        "flush_id": "f1",
        "line": 7,
        "file": "in/put.jsonl",
        "body": '{"a": "é\\n',
    }


@pytest.mark.parametrize("wrap", [bytes, spooled])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"plain",
        b'"quotes" \\ and \x00\x1f controls',
        "é日😀".encode() * 50_000,
        b"\\" * 300_000,
        b"\x01" * 300_000,
        b"\xff\xfe binary",
        b"\xff" * 300_000,
        b"text that breaks off \xe2\x82",
        b"x" * (HEAD_BYTES - 1) + "é".encode() + b"y",
        bytes(range(256)) * 5000,
    ],
)
def test_bodies_come_back_from_the_file_and_rows_are_made_again_alike(
    body: bytes, wrap: Any, archive: Archive, tmp_path: Path
) -> None:
    row = put(archive, wrap(body))
    kept = json.loads((tmp_path / row["archive_path"]).read_bytes())
    assert (kept["body"].encode() if "body" in kept else base64.b64decode(kept["body_base64"])) == body
    assert len(row["body"].encode()) <= HEAD_BYTES
    if "body" in kept:
        assert kept["body"].startswith(row["body"])
        assert len(row["body"].encode()) > min(len(body), HEAD_BYTES) - 4
    assert archive.rows_of_flush("events", "f1") == [row]


def test_bytes_that_are_no_text_are_shown_as_escapes(archive: Archive) -> None:
    assert put(archive, b"a\xffb")["body"] == "a\\xffb"


def test_rows_of_a_flush_are_its_own(archive: Archive) -> None:
    rows = [put(archive, b"a", number) for number in (1, 2)]
    archive.put("events", "f10", 1, Refused(LETTER, b"b", "x", 1, ARRIVED), NOW)
    archive.put("others", "f1", 1, Refused(LETTER, b"c", "x", 1, ARRIVED), NOW)
    assert archive.rows_of_flush("events", "f1") == rows
    assert archive.rows_of_flush("unknown", "f1") == []


def test_a_huge_body_is_archived_in_little_memory(archive: Archive, tmp_path: Path) -> None:
    for body in (b"x" * 12_000_000, b"\xff" * 12_000_000):
        spool = spooled(body)
        del body
        tracemalloc.start()
        row = put(archive, spool)
        archive.rows_of_flush("events", "f1")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 9_000_000
        assert (tmp_path / row["archive_path"]).stat().st_size > 12_000_000


def test_a_write_that_fails_leaves_nothing(archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lean_ops.ingest.archive_file._write_body", fail)
    with pytest.raises(OSError, match="No space"):
        put(archive, b"a")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_damaged_file_is_named(archive: Archive, tmp_path: Path) -> None:
    path = tmp_path / put(archive, b"a")["archive_path"]
    path.write_bytes(b"junk")
    with pytest.raises(TerminalError, match=path.name):
        archive.rows_of_flush("events", "f1")
