"""Which rows of a small batch are no first copies, told by reading ids from the few files that can hold them.

For a few hundred rows, two more tables and a shuffle in Spark's plan cost more than all else that is done for them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lean_ops.lake.file_rows import read_columns
from lean_ops.standardize.first_copy import COPY_ORDER, MESSAGE, Address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.io import FileIO

    from lean_ops.lake.topic_files import TopicFile

_MOST_LEFT_OUT: Final = 2_000

Message = tuple[str, int | None]


class EarlierFiles(NamedTuple):
    """Files with messages that have a fate; those of one batch do not count, if it is named."""

    files: Sequence[TopicFile]
    without_batch: str | None = None

    def paths(self, times: Sequence[int | None]) -> list[str]:
        """Those that may hold a message of one of these publish times.

        A copy has the time of its first, so a few late copies in a batch lead to a few files. Taken as an interval
        they would lead to all that came since.
        """
        known = sorted(time for time in times if time is not None)
        is_any = len(known) < len(times)  # of a message without a time no file tells that it has none
        return [file.path for file in self.files if is_any or file.may_hold_any(known)]


def rows_to_leave_out(
    io: FileIO, raw: Sequence[str], earlier: Iterable[EarlierFiles], turns: Mapping[str, int] | None = None
) -> tuple[Address, ...] | None:
    """The addresses of all rows but the first copies of new messages; None if they are many.

    Inside the batch the lowest copy is first, in the order that Spark would compare them in; a file's turn, if there
    are any, goes before all else.
    """
    messages = {address: message for path in raw for address, message in _messages(io, path)}
    times = list({time for _, time in messages.values()})
    seen = set(messages.values()) & {message for files in earlier for message in _seen(io, files, times)}
    known = [address for address, message in messages.items() if message in seen]
    repeated = {message for message, copies in Counter(messages.values()).items() if copies > 1} - seen
    copies = {address: message for address, message in messages.items() if message in repeated}
    left_out = (*known, *_later_copies(io, copies, turns or {}))
    return left_out if len(left_out) <= _MOST_LEFT_OUT else None


def _messages(io: FileIO, path: str) -> Iterator[tuple[Address, Message]]:
    rows = zip(*_columns(io, path, MESSAGE), strict=True)
    return (((path, position), message) for position, message in enumerate(rows))


def _seen(io: FileIO, files: EarlierFiles, times: Sequence[int | None]) -> Iterator[Message]:
    """The messages in these files that have one of the times: what is to be compared in Python is hardly ever much."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(times, pa.int64())
    names = MESSAGE if files.without_batch is None else (*MESSAGE, "batch_id")
    for path in files.paths(times):
        table = read_columns(io, path, names)
        found = table.filter(pc.is_in(_plain(table.column(MESSAGE[1])), value_set=wanted))
        for message_id, time, *batch in zip(*_lists(found, names), strict=True):
            if not batch or batch[0] != files.without_batch:
                yield message_id, time


def _later_copies(io: FileIO, copies: dict[Address, Message], turns: Mapping[str, int]) -> list[Address]:
    """All of these rows but the lowest of each message."""
    whole = {
        (path, position): row
        for path in {path for path, _ in copies}
        for position, row in enumerate(zip(*_columns(io, path, COPY_ORDER), strict=True))
        if (path, position) in copies
    }
    first: dict[Message, Address] = {}
    for address, message in copies.items():
        lowest = first.setdefault(message, address)
        if _rank(whole[address], address, turns) < _rank(whole[lowest], lowest, turns):
            first[message] = address
    return [address for address, message in copies.items() if first[message] != address]


def _rank(row: tuple[Any, ...], address: Address, turns: Mapping[str, int]) -> tuple[Any, ...]:
    """NULL is lower than any value, and a file of which no turn is known comes before those that have one."""
    return (turns.get(address[0], -1), *((value is not None, value) for value in row), address)


def _columns(io: FileIO, path: str, names: Sequence[str]) -> list[list[Any]]:
    """Columns of a file as plain values, times as microseconds."""
    return _lists(read_columns(io, path, names), names)


def _lists(table: pa.Table, names: Sequence[str]) -> list[list[Any]]:
    return [_plain(table.column(name)).to_pylist() for name in names]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, a time as microseconds."""
    import pyarrow as pa

    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
