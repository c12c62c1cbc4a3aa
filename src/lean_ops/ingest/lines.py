"""Lines of files and of stdin, in bounded memory whatever the size of a file or of a line."""

from __future__ import annotations

import io
import os
import select
import stat
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from lean_ops.model.errors import TerminalError, WrongUseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lean_ops.model.envelope import DeadLetter, RawRow

    # The next bytes; b"" at the end, None when nothing came for a while.
    Read = Callable[[], bytes | None]

STDIN: Final = "-"
_BOM: Final = b"\xef\xbb\xbf"
_CHUNK_BYTES: Final = 1024 * 1024
_IDLE_SECONDS: Final = 1.0


class ReadError(TerminalError):
    """A source that could be opened could not be read to its end."""


@dataclass(frozen=True, slots=True)
class Spool:
    """A line too large for memory, in an unnamed file that goes with the process."""

    file: IO[bytes]
    size: int

    def chunks(self) -> Iterator[bytes]:
        """The line from its beginning, piece by piece."""
        self.file.seek(0)
        left = self.size
        while left > 0 and (chunk := self.file.read(min(left, _CHUNK_BYTES))):
            left -= len(chunk)
            yield chunk

    def head(self, size: int) -> bytes:
        """The line's first bytes."""
        self.file.seek(0)
        return self.file.read(min(size, self.size))


@dataclass(frozen=True, slots=True)
class Brought:
    """A line that is not a queue body but says what became of one: its row, or why it is refused.

    `body` is what is archived of a refused one, `source` who brought it and `attributes` what is said of it.
    """

    outcome: RawRow | DeadLetter
    body: bytes | Spool
    size: int
    source: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Line(NamedTuple):
    """A line without its end; `body` is None if it is blank, a Spool if it is too large for memory."""

    number: int
    body: bytes | Spool | Brought | None


def check_sources(names: list[str]) -> None:
    """WrongUseError for the first source that can't be opened."""
    for name in names:
        if name != STDIN:
            try:
                _check_file(Path(name))
            except OSError as error:
                raise WrongUseError(
                    "can't be read",
                    where=f"file {shown_name(name)!r}",
                    found=error.strerror or str(error),
                    expected="a file of queue bodies, one JSON object a line, or - for stdin",
                ) from error


def _check_file(path: Path) -> None:
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        with path.open("rb"):
            return
    # Opening a pipe and closing it again would end its writer.
    if not os.access(path, os.R_OK):
        raise PermissionError(None, "Permission denied")


def shown_name(name: str) -> str:
    """A file name as text, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def spoken_name(name: str) -> str:
    """A source as a person would call it."""
    return "stdin" if name == STDIN else shown_name(name)


@contextmanager
def open_source(name: str) -> Iterator[Read]:
    """A file or stdin, to be read chunk by chunk."""
    if name == STDIN:
        yield _stdin()
        return
    try:
        # Otherwise a pipe that nobody writes to yet could not even be waited for with a limit.
        file = os.fdopen(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
    except OSError as error:
        raise _read_error(name, error) from error
    with file:
        yield _as_it_comes(file.fileno())


def _stdin() -> Read:
    try:
        return _as_it_comes(sys.stdin.fileno())
    except io.UnsupportedOperation:  # no file behind it
        return lambda: sys.stdin.buffer.read(_CHUNK_BYTES)


def _as_it_comes(descriptor: int) -> Read:
    """A pipe or a file, so that what arrived is not kept waiting for what did not."""

    def read() -> bytes | None:
        ready, _, _ = select.select([descriptor], [], [], _IDLE_SECONDS)
        try:
            return os.read(descriptor, _CHUNK_BYTES) if ready else None
        except BlockingIOError:  # another reader was faster
            return None

    return read


def read_lines(name: str, read: Read, max_body_bytes: int, spool_dir: Path) -> Iterator[Line | None]:
    """The lines of a source, and None whenever it is idle; ReadError if it can't be read on."""
    number = 0
    tail = _Tail(max_body_bytes, spool_dir)
    try:
        for chunk in _chunks(read):
            if chunk is None:
                yield None
                continue
            *lines, rest = chunk.split(b"\n")
            for line in tail.complete(lines):
                number += 1
                yield Line(number, _body(line))
            tail.add(rest)
        for line in tail.complete([b""] if tail.size else []):
            yield Line(number + 1, _body(line))
    except OSError as error:
        raise _read_error(name, error) from error


def _chunks(read: Read) -> Iterator[bytes | None]:
    """All that there is to read, without a byte-order mark at the very beginning."""
    start = b""
    while len(start) < len(_BOM) and _BOM.startswith(start) and (chunk := read()) != b"":
        start += chunk or b""
    yield start.removeprefix(_BOM)
    while (chunk := read()) != b"":
        yield chunk


def _body(line: bytes | Spool) -> bytes | Spool | None:
    if isinstance(line, Spool):
        return line
    body = line.removesuffix(b"\r")
    return None if not body or body.isspace() else body


@dataclass(slots=True)
class _Tail:
    """The line that is not complete yet: in memory up to the limit, in a file beyond it."""

    limit: int
    spool_dir: Path
    size: int = 0
    _parts: list[bytes] = field(default_factory=list)
    _file: IO[bytes] | None = None
    _blank: bool = True
    _ends_in_cr: bool = False

    def add(self, part: bytes) -> None:
        """More of the line."""
        if part:
            self._parts.append(part)
            self.size += len(part)
            self._ends_in_cr = part.endswith(b"\r")
            if self.size > self.limit + 1:  # one more for the \r of the line's end
                self._spool()

    def complete(self, lines: list[bytes]) -> Iterator[bytes | Spool]:
        """The same lines, of which the first is the end of this one."""
        if self.size and lines:
            self.add(lines[0])
            yield self._take()
            lines = lines[1:]
        yield from lines

    def _spool(self) -> None:
        if self._file is None:
            self.spool_dir.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=self.spool_dir)  # noqa: SIM115  lives as long as its Spool
        for part in self._parts:
            self._blank = self._blank and part.isspace()
            self._file.write(part)
        self._parts = []

    def _take(self) -> bytes | Spool:
        """The whole line; after that the tail is empty."""
        line: bytes | Spool = b"".join(self._parts)
        if self._file is not None and not self._blank:
            line = Spool(self._file, self.size - self._ends_in_cr)
        self.size, self._parts, self._file, self._blank, self._ends_in_cr = 0, [], None, True, False
        return line


def _read_error(name: str, error: OSError) -> ReadError:
    return ReadError(
        "reading stopped",
        where=f"file {spoken_name(name)!r}",
        found=error.strerror or str(error),
        remedy="Ingest the rest once it can be read.",
    )
