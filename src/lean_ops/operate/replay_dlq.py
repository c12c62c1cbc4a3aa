"""Dead letters through ingestion again, with their own message_id and publish_time.

What is taken now lands in RAW as one flush of kind REPLAY, what is refused again says why. A letter whose message is
in RAW already needs no second copy: that is how a replay which was cut off between landing and saying so goes on, and
why doing it twice changes nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from lean_ops.ingest.archive import SOURCE
from lean_ops.ingest.archive_file import HEAD_BYTES, read_body
from lean_ops.ingest.body import decide, oversized
from lean_ops.ingest.flush import OpenFlush, Place
from lean_ops.lake.messages import messages_in
from lean_ops.lake.query import QuerySession
from lean_ops.lake.restate import restate
from lean_ops.lake.table_files import literal
from lean_ops.model.envelope import DeadLetter, RawRow
from lean_ops.model.errors import LeanOpsError, TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from lean_ops.ingest.landing import Landing
    from lean_ops.lake.catalog import Lake
    from lean_ops.state.port import ErrorTracker

KEY: Final = "archive_path"
FIXED: Final = "FIXED"
FAILED: Final = "FAILED"
_OPEN: Final = ("NEW", FAILED)
_REPLAY: Final = "replay"
_TOGETHER: Final = 10_000


class ArchiveReader(Protocol):
    """Where dead letters lie."""

    def opened(self, archive_path: str, /) -> AbstractContextManager[IO[bytes]]:
        """An archived dead letter's file."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A row of `dlq_errors` that is to be replayed."""

    archive_path: str
    message_id: str | None
    source: str | None
    replay_status: str
    attributes: dict[str, Any]

    @property
    def error_id(self) -> str:
        """Its id in the archive, by which the tracker knows it."""
        return self.archive_path.rpartition("/")[2].removesuffix(".json")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A letter that was refused again, or could not be read, and why."""

    archive_path: str
    message_id: str | None
    error_type: str | None
    reason: str


@dataclass(slots=True)
class Replayed:
    """What became of the letters: landed in RAW, in RAW already, refused again, or not to be read."""

    replay_id: str
    topic: str
    landed: int = 0
    already: int = 0
    refused: list[Refusal] = field(default_factory=list)
    unreadable: list[Refusal] = field(default_factory=list)

    @property
    def letters(self) -> int:
        """All of them."""
        return self.landed + self.already + len(self.refused) + len(self.unreadable)


@dataclass(slots=True)
class _Group:
    """Letters that are settled together: those with a row, and those that are refused."""

    rows: list[tuple[Letter, RawRow]] = field(default_factory=list)
    refused: list[tuple[Letter, DeadLetter]] = field(default_factory=list)
    size: int = 0

    @property
    def letters(self) -> int:
        return len(self.rows) + len(self.refused)


@dataclass(frozen=True, slots=True)
class DlqReplay:
    """Replays dead letters of a topic; `prepare` makes the topic ready for a write."""

    lake: Lake
    landing: Landing
    archive: ArchiveReader
    tracker: ErrorTracker
    prepare: Callable[[str], None]
    max_body_bytes: int
    flush_bytes: int
    clock: Callable[[], datetime]
    new_id: Callable[[], str]

    def replay(self, topic: str, where: str | None = None) -> Replayed:
        """Bring the topic's dead letters that are not fixed yet, and meet a condition, through ingestion again."""
        replayed = Replayed(self.new_id(), topic)
        letters = self._letters(topic, where)
        if letters:
            self.prepare(topic)
        for group in self._groups(letters, replayed):
            self._settle(group, replayed)
        return replayed

    def _letters(self, topic: str, where: str | None) -> list[Letter]:
        """The letters that are meant, oldest first."""
        if not self.lake.exists(self.lake.names.dlq_errors):
            return []
        rows = QuerySession(self.lake.names, self.lake.file).query(_select(topic, where))
        return [Letter(**{**row, "attributes": _attributes(row["attributes"])}) for row in rows]

    def _groups(self, letters: Iterable[Letter], replayed: Replayed) -> Iterator[_Group]:
        """The letters with what becomes of them now, as many together as a flush should hold."""
        group = _Group()
        for letter in letters:
            try:
                outcome, size = self._outcome(letter, replayed.topic)
            except LeanOpsError as error:
                replayed.unreadable.append(Refusal(letter.archive_path, letter.message_id, None, str(error)))
                continue
            group.size += size
            if isinstance(outcome, RawRow):
                group.rows.append((letter, outcome))
            else:
                group.refused.append((letter, outcome))
            if group.size >= self.flush_bytes or group.letters >= _TOGETHER:
                yield group
                group = _Group()
        if group.letters:
            yield group

    def _outcome(self, letter: Letter, topic: str) -> tuple[RawRow | DeadLetter, int]:
        """What becomes of an archived body now, and its bytes in memory."""
        with self.archive.opened(letter.archive_path) as file:
            facts, pieces = read_body(file, letter.archive_path)
            if facts.get("topic_name") != topic:
                found = f"a letter of topic {facts.get('topic_name')!r}"
                raise TerminalError("another topic's", where=letter.archive_path, found=found)
            body, size = _bounded(pieces, self.max_body_bytes)
        if size > self.max_body_bytes:
            return oversized(body, size, self.max_body_bytes), len(body)
        return decide(body, topic, int(self.clock().timestamp()), self.max_body_bytes), size

    def _settle(self, group: _Group, replayed: Replayed) -> None:
        """Land what can be landed, then say of each letter what became of it: in this order nothing is lost."""
        missing = self._missing([row for _, row in group.rows], replayed.topic)
        if missing:
            self._land(missing, replayed)
        replayed.landed += len(missing)
        replayed.already += len(group.rows) - len(missing)
        replayed.refused += [_told(letter, again) for letter, again in group.refused]
        now_fixed = [letter for letter, _ in group.rows]
        now_failed = [changed for letter, again in group.refused if (changed := _failed_by(letter, again)) != letter]
        self._say(replayed, now_fixed, FIXED)
        self._say(replayed, now_failed, FAILED)

    def _missing(self, rows: Sequence[RawRow], topic: str) -> list[RawRow]:
        """One row of each message that RAW does not have."""
        wanted = {(row.message_id, row.publish_time): row for row in reversed(rows)}
        raw = self.lake.names.raw(topic)
        known = messages_in(self.lake.load(raw), wanted) if self.lake.exists(raw) else set()
        return [row for message, row in wanted.items() if message not in known]

    def _land(self, rows: Sequence[RawRow], replayed: Replayed) -> None:
        place = Place(f"replay {replayed.replay_id}", 1)
        flush = OpenFlush(self.new_id(), replayed.topic, self.clock(), place, replay_id=replayed.replay_id)
        for row in rows:
            flush.rows.add(row)
            flush.records += 1
        self.landing.land(flush, lambda _: None)

    def _say(self, replayed: Replayed, letters: Sequence[Letter], status: str) -> None:
        """Write down what became of letters, in one commit."""
        changes = {
            letter.archive_path: {
                "replay_status": status,
                "replay_id": replayed.replay_id,
                "attributes": json.dumps(letter.attributes),
            }
            for letter in letters
        }
        restate(self.lake, self.lake.names.dlq_errors, replayed.topic, KEY, changes)
        for letter in letters:
            if letter.source != SOURCE:  # what a person ingested is not in the tracker
                self.tracker.mark(letter.error_id, status, self.clock())


def _select(topic: str, where: str | None) -> str:
    """The letters in question; whatever a condition says, it is asked of this topic's open letters alone."""
    columns = "archive_path, message_id, source, replay_status, attributes"
    status = ", ".join(map(literal, _OPEN))
    letters = f"SELECT * FROM raw.dlq_errors WHERE topic_name = {literal(topic)} AND replay_status IN ({status})"  # noqa: S608
    # On a line of its own, so that a comment in the condition ends before the bracket.
    condition = f" WHERE (\n{where}\n)" if where is not None else ""
    return f"SELECT {columns} FROM ({letters}){condition} ORDER BY archived_at, archive_path"  # noqa: S608


def _attributes(text: str | None) -> dict[str, Any]:
    """What a row says beside its columns; one that somebody spoilt says nothing."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _bounded(pieces: Iterable[bytes], most: int) -> tuple[bytes, int]:
    """A body and its size; of one that is larger than most, only its beginning."""
    kept, size = bytearray(), 0
    for piece in pieces:
        size += len(piece)
        kept += piece
        if size > most:
            del kept[HEAD_BYTES:]
    return bytes(kept), size


def _told(letter: Letter, again: DeadLetter) -> Refusal:
    message_id = again.message_id or letter.message_id
    return Refusal(letter.archive_path, message_id, str(again.error_type), again.error_message)


def _failed_by(letter: Letter, again: DeadLetter) -> Letter:
    """The letter after it was refused again; the same one if it had failed for that very reason before."""
    reason = {"error_type": str(again.error_type), "error_message": again.error_message}
    return replace(letter, replay_status=FAILED, attributes={**letter.attributes, _REPLAY: reason})
