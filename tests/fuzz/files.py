"""Targets that read and write files: the lines of a source, and the archive of dead letters."""

from __future__ import annotations

import base64
import json
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tests.fuzz import judges

from lean_ops.ingest.archive import Archive, Refused
from lean_ops.ingest.archive_file import HEAD_BYTES
from lean_ops.ingest.lines import Spool, read_lines
from lean_ops.model.envelope import DeadLetter
from lean_ops.model.envelope import Refusal as Kind

NOW = datetime(2026, 2, 3, tzinfo=UTC)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the process; kept in the cache, removed when the process ends."""
    memory = Path("/dev/shm")  # noqa: S108  a disk is what this waits for, and it is not what is looked at
    return tempfile.TemporaryDirectory(prefix="lean-ops-fuzz-", dir=memory if memory.is_dir() else None)


def lines(data: bytes) -> None:
    """Lines come out whole and in order, however a source is cut into pieces and whatever fits in memory."""
    step, limit = 1 + data[0] % 40 if data else 1, data[1] if len(data) > 1 else 0
    content = data[2:]
    pieces = iter([content[at : at + step] for at in range(0, len(content), step)])
    found = list(read_lines("f", lambda: next(pieces, b""), limit, Path(_folder().name)))
    bodies = [line.body for line in found if line is not None]
    assert [line.number for line in found if line is not None] == list(range(1, len(bodies) + 1))
    assert all(len(body) <= limit + 1 for body in bodies if isinstance(body, bytes) and step <= limit)
    assert [b"".join(body.chunks()) if isinstance(body, Spool) else body for body in bodies] == judges.lines(content)


def archive(data: bytes) -> None:
    """A dead letter's body comes back from the archive byte for byte, and its row is made again alike."""
    folder = Path(_folder().name)
    letters = Archive(folder / "dlq-archive")
    letter = DeadLetter(Kind.MALFORMED_JSON, data[:30].decode("utf-8", "backslashreplace"), None)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        body = Spool(file, len(data)) if len(data) % 2 else data
        row = letters.put("events", "f1", 1, Refused(letter, body, "in.jsonl", 1, NOW), NOW)
    kept = json.loads((folder / row["archive_path"]).read_bytes())
    assert data == (kept["body"].encode() if "body" in kept else base64.b64decode(kept["body_base64"]))
    assert len(row["body"].encode()) <= HEAD_BYTES
    assert letters.rows_of_flush("events", "f1") == [row]
