"""A fates file: what must become of each queue body that was sent, a JSON object a line.

`verify` compares it with the lake, message by message. docs/fates.md has the format in words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lean_ops.model.errors import WrongUseError
from lean_ops.model.time_text import read_iso_time

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

FATES_FILE: Final = "fates.jsonl"
_CHUNK_LINES: Final = 20_000
_SHOWN: Final = 200
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class ExpectedFate(StrEnum):
    """What can become of a body; the words are those of the ledger."""

    DEAD_LETTER = "dead_letter"
    DUPLICATE = "duplicate"
    PARSE_ERROR = "parse_error"
    STANDARDIZED = "standardized"  # the end of the way in topics whose schema stops there
    CURATED = "curated"  # the current version of its key
    SUPERSEDED = "superseded"  # came too late, or was replaced later
    ERROR = "error"
    PENDING = "pending"  # not read by the next hop yet


class Expected(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line: a body and its fate. What is None is not told, and so not compared.

    `file` and `line` say where the body stands, `kind` what sort of body it is. `reason` is the error type of a dead
    letter, parse error or error, `fields` are the error's fields, `version` is the id of the message that Curated
    shows for the key, `curated` has values of a current row's columns, and `body_sha256` is what a dead letter is
    found by: of its row's `body`, in hex.
    """

    topic: str
    file: str | None = None
    line: int | None = None
    kind: str | None = None
    message_id: str | None = None
    publish_time: str | None = None
    idempotency_key: str | None = None
    fate: ExpectedFate
    reason: str | None = None
    fields: tuple[str, ...] | None = None
    version: str | None = None
    curated: dict[str, Any] | None = None
    body_sha256: str | None = None

    def __post_init__(self) -> None:
        if self.fate is ExpectedFate.DEAD_LETTER:
            if self.body_sha256 is None or not _SHA256.fullmatch(self.body_sha256):
                raise ValueError("a dead letter needs body_sha256, 64 hex digits in lower case")
        elif self.message_id is None or self.publish_time is None:
            raise ValueError(f"{self.fate} needs message_id and publish_time")


# A number keeps its text: it is compared as the type of its column, which may hold more digits than a float.
_decode: Final[Callable[[bytes], Expected]] = msgspec.json.Decoder(Expected, float_hook=str).decode
_encode: Final = msgspec.json.Encoder().encode


def encode_line(expected: Expected) -> bytes:
    """The line as a fates file has it, with its end."""
    return _encode(expected) + b"\n"


@dataclass(frozen=True, slots=True)
class Oracle:
    """All lines of some fates files: a table for each topic, in which `place` tells lines apart."""

    topics: Mapping[str, pa.Table]
    files: Sequence[tuple[int, Path]]

    def where(self, place: int) -> str:
        """The fates file and line at a place."""
        before, path = next(found for found in reversed(self.files) if found[0] < place)
        return f"{path}:{place - before}"


def read_oracle(paths: Sequence[Path], topics: Collection[str] = ()) -> Oracle:
    """The lines of all files, of these topics or of all; WrongUseError for a file that is none, with the line."""
    batches: dict[str, list[pa.RecordBatch]] = {}
    files: list[tuple[int, Path]] = []
    place = 0
    for path in paths:
        files.append((place, path))
        place = _read(path, place, batches, frozenset(topics))
    return Oracle({topic: _table(found) for topic, found in sorted(batches.items())}, files)


def _read(path: Path, before: int, batches: dict[str, list[pa.RecordBatch]], topics: frozenset[str]) -> int:
    """Add a file's lines to the topics' batches; the place of its last line."""
    last = before
    try:
        with path.open("rb") as file:
            lines = enumerate(file, start=1)
            while chunk := list(islice(lines, _CHUNK_LINES)):
                for topic, told in _by_topic(path, chunk, topics).items():
                    batches.setdefault(topic, []).append(_batch(path, before, told))
                last = before + chunk[-1][0]
    except OSError as error:
        raise WrongUseError(
            "can't be read", where=str(path), found=error.strerror or str(error), expected="a fates file"
        ) from error
    return last


def _by_topic(
    path: Path, chunk: Iterable[tuple[int, bytes]], topics: frozenset[str]
) -> dict[str, list[tuple[int, Expected]]]:
    told: dict[str, list[tuple[int, Expected]]] = {}
    for number, text in chunk:
        if text.isspace():
            continue
        try:
            expected = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _wrong_line(path, number, f"{str(error).strip()}: {_short(text)}") from error
        if not topics or expected.topic in topics:
            told.setdefault(expected.topic, []).append((number, expected))
    return told


def _wrong_line(path: Path, number: int, found: str) -> WrongUseError:
    return WrongUseError(
        "not a line of a fates file",
        where=f"{path}:{number}",
        found=found,
        expected=f"an object with topic and fate ({', '.join(ExpectedFate)}); docs/fates.md has all members",
    )


def _short(text: bytes) -> str:
    return ascii(text[:_SHOWN].decode(errors="replace")) + ("…" if len(text) > _SHOWN else "")


# lines as Arrow


def _batch(path: Path, before: int, told: Sequence[tuple[int, Expected]]) -> pa.RecordBatch:
    import pyarrow as pa

    schema = oracle_schema()
    columns = dict(
        zip(
            Expected.__struct_fields__,
            zip(*(msgspec.structs.astuple(line) for _, line in told), strict=True),
            strict=True,
        )
    )
    values = {
        **columns,
        "place": [before + number for number, _ in told],
        "publish_time": _times(path, told),
        "curated": [None if value is None else _encode(value).decode() for value in columns["curated"]],
    }
    return pa.RecordBatch.from_arrays([pa.array(values[field.name], field.type) for field in schema], schema=schema)


def oracle_schema() -> pa.Schema:
    """The columns of a topic's lines; `topic` is the table's name, `curated` is JSON text."""
    import pyarrow as pa

    types = {"place": pa.int64(), "line": pa.int64(), "publish_time": pa.timestamp("us", tz="UTC")}
    types["fields"] = pa.list_(pa.string())
    names = ("place", *(name for name in Expected.__struct_fields__ if name != "topic"))
    return pa.schema([(name, types.get(name, pa.string())) for name in names])


def _times(path: Path, told: Sequence[tuple[int, Expected]]) -> pa.Array:
    """Publish times. Arrow reads the usual form fast; what it refuses is looked at one by one.

    A dead letter may be one because its time is none, so there such a time is no fault.
    """
    import pyarrow as pa

    kind = pa.timestamp("us", tz="UTC")
    try:
        return pa.array([line.publish_time for _, line in told], pa.string()).cast(kind)
    except pa.ArrowInvalid:
        return pa.array([_time(path, number, line) for number, line in told], kind)


def _time(path: Path, number: int, line: Expected) -> Any:
    try:
        return None if line.publish_time is None else read_iso_time(line.publish_time)
    except ValueError as error:
        if line.fate is ExpectedFate.DEAD_LETTER:
            return None
        found = f"publish_time {line.publish_time!a}, expected {error}"
        raise _wrong_line(path, number, found) from error


def _table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches(batches)
