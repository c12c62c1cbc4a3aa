"""Finding rows in a table at one moment, with the snapshot that wrote each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lean_ops.lake.altered import refuse_altered
from lean_ops.lake.catalog_file import read_history
from lean_ops.lake.duck import rows, views_of
from lean_ops.lake.table_files import FILE_COLUMN, literal, open_table, plan, quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from pyiceberg.expressions import BooleanExpression

    from lean_ops.lake.snapshots import History
    from lean_ops.lake.table_files import TableFiles

    Row = dict[str, Any]


@dataclass(frozen=True)
class TableAt:
    """A table at one moment: rows and history come from the same metadata file, so they can't contradict."""

    name: str
    location: str

    @cached_property
    def history(self) -> History:
        """The table's snapshots."""
        return read_history(self.name, self.location)

    def files(self, near: BooleanExpression) -> TableFiles:
        """The files that may hold rows like these."""
        return plan(refuse_altered(open_table(self.location)), near)

    def files_as_of(self, snapshots: Iterable[int], near: BooleanExpression) -> list[TableFiles]:
        """The files that held rows like these as of each snapshot."""
        table = refuse_altered(open_table(self.location))
        return [plan(table, near, snapshot_id) for snapshot_id in snapshots]


@dataclass(frozen=True, slots=True)
class OneOf:
    """Rows whose column has one of these values; no row if there are none."""

    column: str
    values: Collection[str]

    @property
    def filter(self) -> BooleanExpression:
        """What spares files that can't hold such a row."""
        from pyiceberg.expressions import In, Reference
        from pyiceberg.expressions.literals import literal as value_of

        return In(term=Reference(self.column), values={value_of(value) for value in self.values})

    @property
    def condition(self) -> str:
        """The same for SQL."""
        texts = ", ".join(literal(value) for value in self.values)
        return f"{quoted(self.column)} IN ({texts})" if texts else "false"


def matching(files: TableFiles, wanted: OneOf, columns: Sequence[str]) -> list[Row]:
    """The wanted rows, each with its data file and the snapshot that wrote that."""
    return matching_each([files], wanted, columns)[0]


def matching_each(parts: Sequence[TableFiles], wanted: OneOf, columns: Sequence[str]) -> list[list[Row]]:
    """The wanted rows of each part; all are read over one connection, which takes longer to open than most queries."""
    views = {f"t{number}": files for number, files in enumerate(parts) if files.data}
    if not views:
        return [[] for _ in parts]
    names = ", ".join(map(quoted, (*columns, FILE_COLUMN)))
    with views_of(views) as connection:
        sql = {view: f"SELECT {names} FROM {view} WHERE {wanted.condition}" for view in views}  # noqa: S608  all quoted
        found = {view: _with_writers(rows(connection, sql[view]), files) for view, files in views.items()}
    return [found.get(f"t{number}", []) for number in range(len(parts))]


def _with_writers(found: list[Row], files: TableFiles) -> list[Row]:
    writers = {file.path: file.snapshot_id for file in files.data}
    return [{**row, "snapshot_id": writers[row[FILE_COLUMN]]} for row in found]


def snapshot_order(history: History) -> dict[int, int]:
    """Each snapshot's place in main's history, the oldest first."""
    chain = [snapshot.snapshot_id for snapshot in history.ancestors(history.head)]
    return {snapshot_id: place for place, snapshot_id in enumerate(reversed(chain))}


def both(left: BooleanExpression, right: BooleanExpression) -> BooleanExpression:
    """A filter of two."""
    from pyiceberg.expressions import And

    return And(left, right)


def published_like(times: Iterable[datetime]) -> BooleanExpression:
    """A filter for the days of these times: a row keeps its message's publish_time in every zone."""
    from pyiceberg.expressions import GreaterThanOrEqual, LessThanOrEqual, Reference
    from pyiceberg.expressions.literals import literal as value_of

    known = sorted(times)
    return both(
        GreaterThanOrEqual(term=Reference("publish_time"), value=value_of(known[0])),
        LessThanOrEqual(term=Reference("publish_time"), value=value_of(known[-1])),
    )
