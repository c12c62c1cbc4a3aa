"""Pieces of SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def name(column: str) -> str:
    """A column's name in quotes."""
    return "`" + column.replace("`", "``") + "`"


def text(value: str) -> str:
    """A text in quotes; every character but letters and digits is written by its code, so none can mean anything."""
    return "'" + "".join(map(_character, value)) + "'"


def _character(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in " _"):
        return character
    return f"\\U{ord(character):08X}"


def moment(time: datetime) -> str:
    """A time, exactly."""
    return f"timestamp_micros({(time - _EPOCH) // timedelta(microseconds=1)}L)"
