"""A topic's rows in an error table, replaced by those of its rebuild in one commit.

What became of a row later stays with it: a mark goes over to the rebuild's row of the same message, and the row of a
message that a replay has fixed stays as long as the rebuild does not refuse the message again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.append import write_files
from lean_ops.lake.damage import naming_damage
from lean_ops.lake.difference import SHOWN_IDS, RowDifference
from lean_ops.lake.file_rows import read_columns
from lean_ops.lake.guarded import commit_if_unmoved, until_unmoved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.tables import TableName

    Message = tuple[str, Any]

_MESSAGE: Final = ("message_id", "publish_time")
_MARKS: Final = ("replay_status", "replay_id")
_SAID: Final = ("error_type", "error_message")
_NEW, _FIXED = "NEW", "FIXED"


@dataclass(frozen=True, slots=True)
class ErrorRows:
    """A topic's rows of an error table, and the files of those that a rebuild has set aside."""

    lake: Lake
    name: TableName
    topic: str
    batch_id: str
    paths: Sequence[str]

    def replace(self, confirm: Callable[[], None]) -> None:
        """Let the rebuild's rows take the place of the live ones; nothing changes if they did already.

        `confirm` is asked between each look at the table and the commit that stands on it: who has lost the right to
        write learns it there, and what another has written since the look refuses the commit.
        """
        until_unmoved(self.lake, self.name, lambda table: self._try(table, confirm))

    def _try(self, table: Table, confirm: Callable[[], None]) -> bool | None:
        confirm()
        with naming_damage(lambda: [table]):
            live = _files_of(table, self.topic)
            if any(self._is_rebuilt(table, file) for file in live):
                return True
            refused, marks = self.messages(table), _marks(table, live)
            added: list[DataFile] = []
            for path in self.paths:
                added += write_files(table, _marked(_rows(table, path), marks))
            for file in live:
                added += write_files(table, _still_fixed(_rows(table, file.file_path), refused))
        return True if not live and not added else commit_if_unmoved(table, added, live) or None

    def _is_rebuilt(self, table: Table, file: DataFile) -> bool:
        return self.batch_id in read_columns(table.io, file.file_path, ("batch_id",)).column("batch_id").to_pylist()

    def messages(self, table: Table) -> set[Message]:
        """The messages that the rebuild refuses."""
        return {message for path in self.paths for message in _messages(table, path, ())}

    def kept(self) -> int:
        """How many live rows stay beside the rebuild's."""
        table = self.lake.load(self.name)
        refused = self.messages(table)
        return sum(
            _still_fixed(read_columns(table.io, file.file_path, (*_MESSAGE, *_MARKS)), refused).num_rows
            for file in _files_of(table, self.topic)
        )

    def difference(self) -> RowDifference:
        """The live rows against the rebuild's, by message and by what they say."""
        table = self.lake.load(self.name)
        paths = [file.file_path for file in _files_of(table, self.topic)]
        live = {row[:2]: row[2:-1] for path in paths for row in _messages(table, path, (*_SAID, *_MARKS[:1]))}
        fixed = {row[:2] for path in paths for row in _messages(table, path, _MARKS[:1]) if row[2] == _FIXED}
        rebuilt = {row[:2]: row[2:] for path in self.paths for row in _messages(table, path, _SAID)}
        kept = fixed - rebuilt.keys()
        found = {
            "gone": live.keys() - rebuilt.keys() - kept,
            "new": rebuilt.keys() - live.keys(),
            "changed": {message for message in live.keys() & rebuilt.keys() if live[message] != rebuilt[message]},
        }
        ids = {kind: sorted(str(message[0]) for message in few)[:SHOWN_IDS] for kind, few in found.items() if few}
        counts = {kind: len(messages) for kind, messages in found.items()}
        return RowDifference(len(live), len(rebuilt) + len(kept), **counts, ids=ids)


def _files_of(table: Table, topic: str) -> list[DataFile]:
    from pyiceberg.expressions import EqualTo, Reference
    from pyiceberg.expressions.literals import literal

    wanted = EqualTo(term=Reference("topic_name"), value=literal(topic))
    return [task.file for task in table.scan(row_filter=wanted).plan_files()]


def _messages(table: Table, path: str, more: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    columns = (*_MESSAGE, *more)
    found = read_columns(table.io, path, columns)
    yield from zip(*(found.column(name).to_pylist() for name in columns), strict=True)


def _marks(table: Table, files: Iterable[DataFile]) -> dict[Message, tuple[str, str | None]]:
    """What replays have noted, by message; that one was fixed is no longer so if the rebuild refuses it."""
    return {
        (message_id, time): (status, replay_id)
        for file in files
        for message_id, time, status, replay_id in _messages(table, file.file_path, _MARKS)
        if status not in {_NEW, _FIXED, None}
    }


def _rows(table: Table, path: str) -> pa.Table:
    schema = table.schema().as_arrow()
    return read_columns(table.io, path, schema.names).select(schema.names).cast(schema)


def _marked(rows: pa.Table, marks: dict[Message, tuple[str, str | None]]) -> pa.Table:
    import pyarrow as pa

    messages = list(zip(*(rows.column(name).to_pylist() for name in _MESSAGE), strict=True))
    for place, name in enumerate(_MARKS):
        old = rows.column(name).to_pylist()
        values = [marks[one][place] if one in marks else value for one, value in zip(messages, old, strict=True)]
        position = rows.schema.get_field_index(name)
        column = rows.schema.field(position)
        rows = rows.set_column(position, column, pa.array(values, column.type))
    return rows


def _still_fixed(rows: pa.Table, refused: set[Message]) -> pa.Table:
    import pyarrow as pa

    columns = (rows.column(name).to_pylist() for name in (*_MESSAGE, _MARKS[0]))
    keep = [status == _FIXED and (one, time) not in refused for one, time, status in zip(*columns, strict=True)]
    return rows.filter(pa.array(keep, pa.bool_()))
