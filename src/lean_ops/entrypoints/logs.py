"""The log of a home: one JSON object a line, for whoever looks later. What a person must see is printed as well."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from pathlib import Path


@cache
def log_into(folder: Path) -> None:
    """Send every log line of this process to `lean-ops.log` in the folder; a second call changes nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory((folder / "lean-ops.log").open("a", encoding="utf-8", buffering=1)),
        cache_logger_on_first_use=False,
    )
