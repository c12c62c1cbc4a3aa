"""The dead-letter queue's consumer: each letter is archived, indexed and booked, and only then done with.

A letter may come again, from a crash at any point or from two consumers at once. The tracker knows what was archived,
and `dlq_errors` takes a row only if it has none for that archive file, so that every letter has exactly one.
"""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from lean_ops.aws import letters as names
from lean_ops.aws.objects import MissingObjectError
from lean_ops.ingest.archive_file import head_of, read_body, row_of, write
from lean_ops.ingest.letter_facts import archive_ids, archive_key, bytes_of, facts_of, topic_of
from lean_ops.ingest.lines import Spool
from lean_ops.model.errors import LeanOpsError, TransientError
from lean_ops.state.port import TrackedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from lean_ops.aws.objects import Objects
    from lean_ops.lake.once import OnceTable
    from lean_ops.model.letter import ReceivedLetter
    from lean_ops.state.port import ErrorTracker

    Body = bytes | Spool

NEW: Final = "NEW"
KEY: Final = "archive_path"
_IN_MEMORY: Final = 4 * 1024 * 1024
# Filing a letter is waiting for answers.
_AT_A_TIME: Final = 8


@dataclass(frozen=True, slots=True)
class _Filed:
    """A letter that is in the archive and in the tracker; `is_new` if this call has brought it there."""

    row: dict[str, Any]
    is_new: bool


@dataclass(frozen=True, slots=True)
class _Content:
    """A letter's body; its beginning if the object that holds the rest is `missing`."""

    body: Body
    missing: str | None = None

    def told_in(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The facts, which say so if something is missing."""
        if self.missing is None:
            return facts
        return {
            **facts,
            "error_message": f"{facts['error_message']}; only its beginning is here, {self.missing} is gone",
        }


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Takes letters to their end."""

    archive: Objects
    tracker: ErrorTracker
    table: OnceTable
    topic_of_arn: Callable[[str], str]
    clock: Callable[[], datetime]

    def take(self, letters: Sequence[ReceivedLetter]) -> dict[str, str]:
        """Bring letters to their end; the ids of those that must stay in the queue, with the reason."""
        # Before the first of them is indexed: a row that another consumer writes of it is newer than this.
        since = self.table.head()
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            outcomes = dict(zip([letter.message_id for letter in letters], pool.map(self._tried, letters), strict=True))
        filed = {message_id: outcome for message_id, outcome in outcomes.items() if isinstance(outcome, _Filed)}
        failed = {message_id: outcome for message_id, outcome in outcomes.items() if isinstance(outcome, str)}
        return failed | self._book(filed, since)

    def _tried(self, letter: ReceivedLetter) -> _Filed | str:
        """The letter filed, or why it could not be."""
        try:
            return self._file(letter)
        except Exception as error:
            # Whatever is wrong with one letter, or with what we make of it, must not keep the others here.
            return _told(error)

    def _book(self, filed: dict[str, _Filed], since: int | None) -> dict[str, str]:
        """Write the rows of all letters in one commit; if that can't be, all of them stay."""
        new = {entry.row[KEY] for entry in filed.values() if entry.is_new}
        try:
            self.table.append_missing([entry.row for entry in filed.values()], new, since)
        except LeanOpsError as error:
            return dict.fromkeys(filed, _told(error))
        return {}

    def _file(self, letter: ReceivedLetter) -> _Filed:
        """Archive and index a letter, unless that was done before."""
        for error_id in archive_ids(letter):
            filed = self._file_as(letter, error_id)
            if filed is not None:
                return filed
        raise TransientError("another letter has its id", where=f"error {error_id}")

    def _file_as(self, letter: ReceivedLetter, error_id: str) -> _Filed | None:
        """The letter filed under an id; None if that is another letter's."""
        known = self.tracker.get(error_id, self.clock())
        topic = topic_of(letter, self.topic_of_arn)
        if known is None:
            row = self._archived(letter, archive_key(letter, topic, error_id), topic, self.clock())
            if row is None or self.tracker.put(_tracked(error_id, row)):
                return _Filed(row, is_new=True) if row else None
            known = self.tracker.get(error_id, self.clock())  # another consumer was faster
        if known is None:
            raise TransientError("the error tracker contradicts itself", where=f"error {error_id}")
        is_ours = known.topic_name == topic  # ids of the bridge are unique in their topic only
        row = self._archived(letter, known.archive_path, topic, known.recorded_at) if is_ours else None
        return _Filed(row, is_new=False) if row else None

    def _archived(self, letter: ReceivedLetter, key: str, topic: str, archived_at: datetime) -> dict[str, Any] | None:
        """The row of a letter that is in the archive, now or already; None if another letter is there."""
        with self._content(letter) as content, tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
            facts = content.told_in(facts_of(letter, topic, archived_at))
            write(file, facts, content.body)
            file.seek(0)
            is_there = self.archive.add(key, file) or self._is_archived(content.body, key)
            return row_of(key, facts, head_of(content.body)) if is_there else None

    def _is_archived(self, body: Body, key: str) -> bool:
        """Whether the archived letter has this body."""
        with self.archive.opened(key) as file:
            return _equal(read_body(file, key)[1], body)

    @contextmanager
    def _content(self, letter: ReceivedLetter) -> Iterator[_Content]:
        """The whole body: what the letter carries, or the object that it refers to."""
        reference = letter.attributes.get(names.BODY_REF)
        if reference is None:
            yield _Content(bytes_of(letter.body))
            return
        with tempfile.TemporaryFile() as copy:
            try:
                with self.archive.opened(reference) as source:
                    shutil.copyfileobj(source, copy)
                content = _Content(Spool(copy, copy.tell()))
            except MissingObjectError:
                # It does not come back by waiting; what the letter carries is better than nothing in two weeks.
                content = _Content(bytes_of(letter.body), missing=reference)
            yield content


def _tracked(error_id: str, row: dict[str, Any]) -> TrackedError:
    same = {name: row[name] for name in ("topic_name", "message_id", "error_type", KEY)}
    return TrackedError(error_id, **same, status=NEW, recorded_at=row["archived_at"])


def _equal(pieces: Iterable[bytes], body: Body) -> bool:
    """Whether the pieces are the body."""
    left = iter(body.chunks() if isinstance(body, Spool) else (body,))
    rest = b""
    for piece in pieces:
        while len(rest) < len(piece) and (chunk := next(left, b"")):
            rest += chunk
        if not rest.startswith(piece):
            return False
        rest = rest[len(piece) :]
    return not rest and not next(left, b"")


def _told(error: Exception) -> str:
    if not isinstance(error, LeanOpsError):
        structlog.get_logger("lean_ops.dead_letters").error("a dead letter could not be taken", exc_info=error)
    return f"{type(error).__name__}: {error}"[:500]
