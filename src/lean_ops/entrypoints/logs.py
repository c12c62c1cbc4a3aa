"""The log of a home or a job: a JSON object a line, for whoever looks later. What a person must see is printed, too."""

from __future__ import annotations

import io
import logging
import sys
from contextlib import suppress
from functools import cache
from typing import IO, TYPE_CHECKING, Final, TextIO

import structlog

if TYPE_CHECKING:
    from pathlib import Path

_LINE: Final = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


@cache
def log_into(folder: Path) -> None:
    """Send every log line of this process to `lean-ops.log` in the folder; a second call changes nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    _log_lines_to(_NeverInTheWay(folder / "lean-ops.log"))


@cache
def log_to_stderr() -> None:
    """Send every log line of this process to stderr, where Glue and EMR collect them; a second call changes nothing."""
    _log_lines_to(sys.stderr)


def _log_lines_to(file: TextIO) -> None:
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *_LINE, structlog.processors.JSONRenderer()],
        logger_factory=structlog.WriteLoggerFactory(file),
        cache_logger_on_first_use=False,
    )
    _log_libraries_into(file)


class _NeverInTheWay(io.StringIO):
    """A log that loses lines when its disk is full, and keeps nobody from saying so elsewhere."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("ab", buffering=0)

    def write(self, text: str, /) -> int:
        """Append the text, if there is room."""
        with suppress(OSError):
            self._file.write(text.encode("utf-8", "backslashreplace"))
        return len(text)


def _log_libraries_into(file: IO[str]) -> None:
    """What libraries have to say (py4j a whole traceback when Java is gone) must not stand between our words."""
    formatter = structlog.stdlib.ProcessorFormatter
    handler = logging.StreamHandler(file)
    handler.setFormatter(
        formatter(
            foreign_pre_chain=_LINE,
            processors=[formatter.remove_processors_meta, structlog.processors.JSONRenderer()],
        )
    )
    logging.getLogger().addHandler(handler)
