"""Firehose's error output brought back: what it could not deliver, as rows for RAW again or as dead letters.

An error object has one JSON object a line. Its `rawData` is, in base64, the record that was put to the stream; the
other members say what happened to it. Files may be packed by gzip, as Firehose does on demand.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from lean_ops.ingest.archive_file import HEAD_BYTES
from lean_ops.ingest.body import decide, oversized
from lean_ops.ingest.firehose_record import MAX_RECORD_BYTES, NotARecordError, from_record
from lean_ops.ingest.lines import Brought, Line, ReadError, Spool, read_lines, spoken_name
from lean_ops.ingest.scan import members_of
from lean_ops.model.envelope import DeadLetter, RawRow, Refusal
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from typing_extensions import Buffer

    from lean_ops.ingest.lines import Read

SOURCE: Final = "firehose"
RAW_DATA: Final = "rawData"
# A whole record in base64, and room for all that is said of it.
MAX_LINE_BYTES: Final = MAX_RECORD_BYTES * 2
_GZIP: Final = b"\x1f\x8b"
_STEP: Final = 1024 * 1024
_KEPT_MEMBERS: Final = 32
_KEPT_CHARACTERS: Final = 1024
_members_of: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def error_files(names: Iterable[str]) -> list[str]:
    """The files that are meant: those named, and all that lie in a folder that is named, however deep."""
    files: list[str] = []
    for name in names:
        folder = Path(name)
        if name != "-" and folder.is_dir():
            found = sorted(str(path) for path in folder.rglob("*") if path.is_file())
            if not found:
                raise WrongUseError("no files in it", where=f"folder {name!r}", expected="error output of Firehose")
            files += found
        else:
            files.append(name)
    return files


@dataclass(frozen=True, slots=True)
class FirehoseErrors:
    """The lines of error output as one topic's ingestion takes them.

    One stream serves all topics: `others` counts the records of other topics, which are left where they are.
    """

    topic: str
    others: Counter[str] = field(default_factory=Counter)

    def read_lines(self, name: str, read: Read, max_body_bytes: int, spool_dir: Path) -> Iterator[Line | None]:
        """The lines that are this topic's or nobody's, in the place of the file's own."""
        for line in read_lines(name, unpacked(name, read), MAX_LINE_BYTES, spool_dir):
            if line is None or line.body is None:
                yield line
                continue
            brought = self._brought(line.body, max_body_bytes)
            yield Line(line.number, brought) if brought else None

    def _brought(self, line: bytes | Spool | Brought, max_body_bytes: int) -> Brought | None:
        if isinstance(line, Spool):
            letter = oversized(line.head(HEAD_BYTES), line.size, MAX_LINE_BYTES)
            return Brought(letter, line, HEAD_BYTES, SOURCE)
        assert isinstance(line, bytes)  # noqa: S101  lines of a file are nothing else
        try:
            data, said = _record_of(line)
        except ValueError as error:
            return Brought(_not_error_output(str(error)), line, len(line), SOURCE)
        return self._judged(data, said, max_body_bytes)

    def _judged(self, data: bytes, said: Mapping[str, Any], max_body_bytes: int) -> Brought | None:
        """What becomes of a record: it is one of ours, as it was, or a dead letter."""
        outcome: RawRow | DeadLetter
        try:
            outcome = from_record(data)
        except NotARecordError as error:
            outcome = _not_a_record(data, str(error), self.topic, max_body_bytes)
        if isinstance(outcome, RawRow) and outcome.topic_name != self.topic:
            self.others[outcome.topic_name] += 1
            return None
        return Brought(outcome, data, len(data), SOURCE, said)


def _record_of(line: bytes) -> tuple[bytes, dict[str, Any]]:
    """The record in a line of error output, and what is said of it; ValueError if the line is none."""
    members = _members(line)
    if RAW_DATA not in members:
        raise ValueError(f"no member {RAW_DATA!r}")
    try:
        data = base64.b64decode(msgspec.json.decode(members.pop(RAW_DATA), type=str), validate=True)
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(f"{RAW_DATA} is not base64: {error}") from None
    return data, {_clean(name)[:_KEPT_CHARACTERS]: _short(text) for name, text in list(members.items())[:_KEPT_MEMBERS]}


def _members(line: bytes) -> dict[str, str]:
    """The texts of a JSON object's members; the scanner has the last word on what the fast parser refuses."""
    try:
        return {name: str(value, "utf-8", "replace") for name, value in _members_of(line).items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        text = line.decode("utf-8", "replace")
        return {member.name: text[member.start : member.end] for member in members_of(text)}


def _short(text: str) -> Any:
    """A member's value, as far as an attribute should hold it."""
    if len(text) > _KEPT_CHARACTERS or text[:1] in {"{", "["}:
        return text[:_KEPT_CHARACTERS]
    said = json.loads(text)
    if isinstance(said, float):  # which may be too large to be written as one again
        return text
    return _clean(said) if isinstance(said, str) else said


def _clean(text: str) -> str:
    """A text that every store takes: halves of surrogate pairs are shown as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _not_error_output(reason: str) -> DeadLetter:
    return DeadLetter(Refusal.MALFORMED_JSON, f"not a line of Firehose's error output: {reason}")


def _not_a_record(data: bytes, reason: str, topic: str, max_body_bytes: int) -> DeadLetter:
    """Why a record that is not ours is refused; its message id if one can be read."""
    as_body = decide(data, topic, 0, max_body_bytes)
    if isinstance(as_body, DeadLetter) and as_body.error_type is not Refusal.INVALID_CONTRACT:
        return as_body
    return DeadLetter(Refusal.INVALID_CONTRACT, f"not a record of the stream: {reason}", as_body.message_id)


def unpacked(name: str, read: Read) -> Read:
    """The same bytes, unpacked if they are gzip; what they begin with tells, not the file's name."""
    chosen: list[Read] = []

    def first() -> bytes | None:
        start = b""
        while len(start) < len(_GZIP) and (chunk := read()) != b"":
            start += chunk or b""
        if not start.startswith(_GZIP):
            chosen.append(read)
            return start
        chosen.append(_gunzipped(name, io.BufferedReader(_Source(read, start), _STEP)))
        return chosen[0]()

    return lambda: chosen[0]() if chosen else first()


def _gunzipped(name: str, source: IO[bytes]) -> Read:
    file = gzip.GzipFile(fileobj=source)

    def read() -> bytes:
        try:
            return file.read(_STEP)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ReadError("not whole gzip", where=f"file {spoken_name(name)!r}", found=str(error)) from error

    return read


class _Source(io.RawIOBase):
    """Bytes that come chunk by chunk, as a file; one that is idle is waited for."""

    def __init__(self, read: Read, start: bytes) -> None:
        self._read = read
        self._left = start

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer as far as the next chunk does; 0 at the end."""
        while not self._left:
            chunk = self._read()
            if chunk == b"":
                return 0
            self._left = chunk or b""
        view = memoryview(buffer).cast("B")
        size = min(len(view), len(self._left))
        view[:size], self._left = self._left[:size], self._left[size:]
        return size
