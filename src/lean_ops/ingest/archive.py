"""The dead-letter archive of a home: each refused message whole, in a JSON file of its own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, Final

from lean_ops.ingest.archive_file import head_of, read_head, row_of, write
from lean_ops.model.errors import TerminalError, WrongUseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from lean_ops.ingest.lines import Spool
    from lean_ops.model.envelope import DeadLetter

SOURCE: Final = "ingest"


@dataclass(frozen=True, slots=True)
class Refused:
    """A dead letter with its body and where it came from; `attributes` is what was said of it on its way."""

    letter: DeadLetter
    body: bytes | Spool
    file: str
    line: int
    arrived: datetime
    source: str = SOURCE
    attributes: Mapping[str, Any] = field(default_factory=dict)


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
            "attributes": dict(refused.attributes),
            "receive_count": 1,
            "source": refused.source,
            "archived_at": now.astimezone(UTC).isoformat(),
            "flush_id": flush_id,
            "line": refused.line,
            "file": refused.file,
        }
        path = (
            self._folder / topic / refused.arrived.astimezone(UTC).strftime("%Y-%m-%d/%H") / f"{flush_id}-{number}.json"
        )
        _write(path, facts, refused.body)
        return row_of(self._shown(path), facts, head_of(refused.body))

    def rows_of_flush(self, topic: str, flush_id: str) -> list[dict[str, Any]]:
        """The rows of every dead letter that a flush archived, made again from the files."""
        files = (self._folder / topic).glob(f"*/*/{flush_id}-*.json")
        return [self._read_row(path) for path in sorted(files)]

    @contextmanager
    def opened(self, archive_path: str) -> Iterator[IO[bytes]]:
        """An archived dead letter's file."""
        path = self._folder.parent / archive_path
        if not path.resolve().is_relative_to(self._folder.resolve()):
            raise WrongUseError("not in the archive", where=archive_path, expected=f"a file in {self._folder}")
        try:
            file = path.open("rb")
        except FileNotFoundError as error:
            raise TerminalError(
                "a dead letter is missing from the archive", where=archive_path, remedy="Restore it from a backup."
            ) from error
        with file:
            yield file

    def _read_row(self, path: Path) -> dict[str, Any]:
        with path.open("rb") as file:
            return row_of(self._shown(path), *read_head(file, str(path)))

    def _shown(self, path: Path) -> str:
        return path.relative_to(self._folder.parent).as_posix()


def _write(path: Path, facts: dict[str, Any], body: bytes | Spool) -> None:
    """Write a file whole or not at all: it gets its name when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        with unfinished.open("wb") as file:
            write(file, facts, body)
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
