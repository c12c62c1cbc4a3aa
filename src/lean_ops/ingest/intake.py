"""The way of lines into RAW: read, decide, gather, flush by size and by time, and tell what became of each."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from lean_ops.ingest.flush import Flush, OpenFlush, Place
from lean_ops.ingest.lines import ReadError, open_source, read_lines, shown_name, spoken_name
from lean_ops.ingest.stop import StopSignal
from lean_ops.model.errors import LeanOpsError, TerminalError, of_the_system

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from lean_ops.ingest.landing import Committed, Landing
    from lean_ops.ingest.lines import Line, Read
    from lean_ops.model.envelope import DeadLetter
    from lean_ops.settings import Settings

    # How the lines of a source are read: its name, its bytes, the largest body, and where larger ones are spooled.
    LineReader = Callable[[str, Read, int, Path], Iterator[Line | None]]

LISTED_REFUSALS: Final = 1000


@dataclass(frozen=True, slots=True)
class LandedFlush:
    """A flush in RAW and the lines it holds."""

    flush: Flush
    first: Place
    last: Place


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line that became a dead letter."""

    place: Place
    letter: DeadLetter
    archive_path: str


@dataclass(slots=True)
class Report:
    """What became of the lines so far; only what is in RAW or blank is counted."""

    topic: str
    files: tuple[str, ...]
    raw: int = 0
    blank: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    flushes: list[LandedFlush] = field(default_factory=list)
    refused: list[RefusedLine] = field(default_factory=list)

    @property
    def lines(self) -> int:
        """All lines with a fate."""
        return self.raw + self.blank + self.dead_letters.total()

    @property
    def refused_not_listed(self) -> int:
        """Dead letters that are not in `refused`, because a list must end somewhere."""
        return self.dead_letters.total() - len(self.refused)

    def add(self, gathered: OpenFlush, committed: Committed) -> LandedFlush:
        """Count a flush that was committed."""
        landed = LandedFlush(committed.flush, gathered.first, gathered.last)
        self.flushes.append(landed)
        self.raw += committed.flush.raw
        self.dead_letters.update(str(refused.letter.error_type) for refused in gathered.refused)
        for refused, row in zip(gathered.refused, committed.error_rows, strict=True):
            if len(self.refused) == LISTED_REFUSALS:
                break
            place = Place(refused.file, refused.line)
            self.refused.append(RefusedLine(place, refused.letter, row["archive_path"]))
        return landed


class StoppedError(TerminalError):
    """Ingestion ended before its input did; `report` says what landed."""

    def __init__(self, what: str, report: Report) -> None:
        self.report = report
        last = report.flushes[-1].last if report.flushes else None
        super().__init__(
            what,
            where=f"topic {report.topic!r}",
            found=f"everything up to line {last.line} of {spoken_name(last.file)} landed" if last else "nothing landed",
            remedy="Ingest the rest from the next line on; a line that comes twice does no harm." if last else None,
        )


@dataclass
class Intake:
    """One call of ingestion. `prepare` runs before the first write; empty input writes nothing.

    `stop` is the caller's, if it listens to requests to stop beyond the call.
    """

    settings: Settings
    landing: Landing
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    prepare: Callable[[], None]
    on_flush: Callable[[LandedFlush], None] = lambda _: None
    on_read: Callable[[int], None] = lambda _: None
    read_lines: LineReader = read_lines
    stop: StopSignal | None = None

    def take(self, topic: str, names: Sequence[str]) -> Report:
        """Bring every line of the sources to its fate; StoppedError if that ended early."""
        with StopSignal() if self.stop is None else nullcontext(self.stop) as stop:
            return _Run(self, topic, names, stop).run()


class _Run:
    """The state of one call."""

    def __init__(self, intake: Intake, topic: str, names: Sequence[str], stop: StopSignal) -> None:
        self._intake = intake
        self._settings = intake.settings
        self._names = names
        self._stop = stop
        self._longest = timedelta(seconds=intake.settings.flush_seconds)
        self._open: OpenFlush | None = None
        self._prepared = False
        self._report = Report(topic, tuple(shown_name(name) for name in names))

    def run(self) -> Report:
        try:
            for name in self._names:
                self._take_source(name)
        except (ReadError, KeyboardInterrupt) as reason:
            self._flush()
            what = str(reason) if isinstance(reason, ReadError) else f"stopped by {str(reason) or 'Ctrl-C'}"
            raise StoppedError(what, self._report) from reason
        self._flush()
        return self._report

    def _take_source(self, name: str) -> None:
        shown, limit, spool_dir = shown_name(name), self._settings.max_body_bytes, self._settings.archive_dir
        with open_source(name) as read:
            for line in self._intake.read_lines(name, lambda: self._read(read), limit, spool_dir):
                now = self._intake.clock()
                if line is not None:
                    self._take_line(shown, line, now)
                if self._open is not None and self._is_due(self._open, now):
                    self._flush()

    def _read(self, read: Read) -> bytes | None:
        chunk = self._stop.waiting(read)
        if chunk:
            self._intake.on_read(len(chunk))
        return chunk

    def _take_line(self, file: str, line: Line, now: datetime) -> None:
        if line.body is None:
            self._report.blank += 1
            return
        if self._open is None:
            self._open = self._begin(Place(file, line.number), now)
        self._open.add(file, line, now, self._settings.max_body_bytes)

    def _begin(self, place: Place, now: datetime) -> OpenFlush:
        if not self._prepared:
            self._intake.prepare()
            self._prepared = True
        return OpenFlush(self._intake.new_id(), self._report.topic, now, place)

    def _is_due(self, gathered: OpenFlush, now: datetime) -> bool:
        return gathered.is_full(self._settings.flush_bytes) or now - gathered.began >= self._longest

    def _flush(self) -> None:
        gathered, self._open = self._open, None
        if gathered is None:
            return
        try:
            self._intake.landing.land(gathered, lambda committed: self._committed(gathered, committed))
        except OSError as error:
            raise StoppedError(f"a flush failed: {of_the_system(error)}", self._report) from error
        except LeanOpsError as error:
            raise StoppedError(f"a flush failed: {error}", self._report) from error

    def _committed(self, gathered: OpenFlush, committed: Committed) -> None:
        self._intake.on_flush(self._report.add(gathered, committed))
