"""The dead-letter archive: each refused message whole, in a JSON file of its own.

A file has two lines: the facts, then the body. Both are written and read piece by piece, so that a body of any
size needs little memory, and the facts of a huge one can be read without it.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final

from lean_ops.ingest.lines import Spool
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from lean_ops.model.envelope import DeadLetter

SOURCE: Final = "ingest"
HEAD_BYTES: Final = 64 * 1024
# Of a text's bytes, escaping makes six at the most.
_WRITTEN_HEAD_BYTES: Final = 6 * HEAD_BYTES + 64
_BASE64_STEP: Final = 3 * 256 * 1024
_whole_characters: Final = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+').match


@dataclass(frozen=True, slots=True)
class Refused:
    """A dead letter with its body and where it came from."""

    letter: DeadLetter
    body: bytes | Spool
    file: str
    line: int
    arrived: datetime


class Archive:
    """The archive of one home; a row's `archive_path` is relative to the home."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, topic: str, flush_id: str, number: int, refused: Refused, now: datetime) -> dict[str, Any]:
        """Archive a dead letter of a flush; its row for `dlq_errors`."""
        letter = refused.letter
        facts: dict[str, Any] = {
            "topic_name": topic,
            "message_id": letter.message_id,
            "error_type": str(letter.error_type),
            "error_message": letter.error_message,
            "attributes": {},
            "receive_count": 1,
            "source": SOURCE,
            "archived_at": now.astimezone(UTC).isoformat(),
            "flush_id": flush_id,
            "line": refused.line,
            "file": refused.file,
        }
        path = (
            self._folder / topic / refused.arrived.astimezone(UTC).strftime("%Y-%m-%d/%H") / f"{flush_id}-{number}.json"
        )
        _write(path, facts, refused.body)
        head = refused.body.head(HEAD_BYTES + 1) if isinstance(refused.body, Spool) else refused.body[: HEAD_BYTES + 1]
        return self._row(path, facts, head)

    def rows_of_flush(self, topic: str, flush_id: str) -> list[dict[str, Any]]:
        """The rows of every dead letter that a flush archived, made again from the files."""
        files = (self._folder / topic).glob(f"*/*/{flush_id}-*.json")
        return [self._row(path, *_read_head(path)) for path in sorted(files)]

    def _row(self, path: Path, facts: dict[str, Any], head: bytes) -> dict[str, Any]:
        same = ("topic_name", "message_id", "error_type", "error_message", "receive_count", "source")
        return {
            **{name: facts[name] for name in same},
            "body": _shown_head(head),
            "attributes": json.dumps(facts["attributes"]),
            "archive_path": path.relative_to(self._folder.parent).as_posix(),
            "archived_at": datetime.fromisoformat(facts["archived_at"]),
            "replay_status": "NEW",
            "replay_id": None,
        }


def _shown_head(head: bytes) -> str:
    """The first 64 KB as text: cut between two characters, bytes that are no text shown as escapes."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    text = decoder.decode(head[:HEAD_BYTES], final=len(head) <= HEAD_BYTES)
    return text.encode()[:HEAD_BYTES].decode("utf-8", "ignore")


def _write(path: Path, facts: dict[str, Any], body: bytes | Spool) -> None:
    """Write a file whole or not at all: it gets its name when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        with unfinished.open("wb") as file:
            file.write(json.dumps(facts, ensure_ascii=False).encode()[:-1] + b",\n")
            _write_body(file, body)
            file.write(b'"}\n')
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _write_body(file: IO[bytes], body: bytes | Spool) -> None:
    if _is_utf8(_chunks(body)):
        file.write(b'"body": "')
        decoder = codecs.getincrementaldecoder("utf-8")()
        for chunk in _chunks(body):
            # Characters are escaped one by one, so a text may be escaped in pieces.
            file.write(json.dumps(decoder.decode(chunk), ensure_ascii=False)[1:-1].encode())
    else:
        file.write(b'"body_base64": "')
        for chunk in _in_steps(_chunks(body), _BASE64_STEP):
            file.write(base64.b64encode(chunk))


def _chunks(body: bytes | Spool) -> Iterable[bytes]:
    return body.chunks() if isinstance(body, Spool) else (body,)


def _is_utf8(chunks: Iterable[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in chunks:
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _in_steps(chunks: Iterable[bytes], step: int) -> Iterator[bytes]:
    """The same bytes in pieces of one size, the last one shorter: base64 pads only at the end."""
    left = b""
    for chunk in chunks:
        left += chunk
        whole = len(left) // step * step
        for start in range(0, whole, step):
            yield left[start : start + step]
        left = left[whole:]
    yield left


def _read_head(path: Path) -> tuple[dict[str, Any], bytes]:
    """The facts of an archived file, and its body's beginning."""
    try:
        with path.open("rb") as file:
            facts: dict[str, Any] = json.loads(file.readline().rstrip(b",\n") + b"}")
            name, _, body = file.read(_WRITTEN_HEAD_BYTES).partition(b': "')
        return facts, _unescaped(body) if name == b'"body"' else _from_base64(body)
    except ValueError as error:
        raise TerminalError(
            "a dead letter in the archive is damaged",
            where=str(path),
            found=str(error),
            remedy="Restore the file from a backup, or move it out of the archive.",
        ) from error


def _unescaped(written: bytes) -> bytes:
    """The bytes of a JSON string that may break off anywhere."""
    whole = _whole_characters(written.decode("utf-8", "ignore"))
    return str(json.loads(f'"{whole[0] if whole else ""}"')).encode()


def _from_base64(written: bytes) -> bytes:
    """The bytes of a base64 text that may break off anywhere."""
    text = written.partition(b'"')[0]
    return base64.b64decode(text[: len(text) // 4 * 4])
