"""Pieces of SQL, and frames that SQL can read."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

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


def hash_of(columns: Iterable[str]) -> str:
    """A hash of columns; NULL, which Spark's own passes over, counts in its place."""
    return f"xxhash64({', '.join(f'{name(column)}, isnull({name(column)})' for column in columns)})"


@contextmanager
def viewed(frame: DataFrame) -> Iterator[str]:
    """The name by which statements of the block read a frame.

    One statement is a few calls to Java. The same said by columns, one by one, is hundreds of them, which for a small
    batch take longer than its rows.
    """
    view = f"v{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(view)
    try:
        yield view
    finally:
        frame.sparkSession.catalog.dropTempView(view)
