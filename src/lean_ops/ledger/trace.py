"""One message through the zones: every copy, where each got to, why not further, and the snapshot that wrote it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.catalog_file import read_history
from lean_ops.lake.duck import rows, views_of
from lean_ops.lake.snapshots import BATCH_ID_PROPERTY, TO_SNAPSHOT_PROPERTY
from lean_ops.lake.table_files import FILE_COLUMN, DuckColumn, TableFiles, literal, open_table, plan
from lean_ops.ledger.fates import Arrival, CopyFate, ParseError, RawCopy, StandardizedRow, Standing, fates_of
from lean_ops.ledger.reading import equal
from lean_ops.ledger.status import gate_words
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import RegistryItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyiceberg.expressions import BooleanExpression

    from lean_ops.lake.catalog_file import CatalogFile
    from lean_ops.lake.snapshots import History
    from lean_ops.ledger.status import StateReader
    from lean_ops.model.tables import Names, TableName

    Row = dict[str, Any]

_ARRIVAL: Final = ("message_id", "publish_time", "idempotency_key", "ingestion_ts")
_RAW: Final = (*_ARRIVAL, "json_payload")
_ERROR: Final = ("error_type", "error_message", "batch_id", "replay_status")
_DEAD_LETTER: Final = (
    *("message_id", "topic_name", "error_type", "error_message", "receive_count", "source", "archive_path"),
    *("archived_at", "replay_status", "replay_id"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: messages by their id, or all versions of a key."""

    column: str
    value: str

    @classmethod
    def message(cls, message_id: str) -> Wanted:
        """The message with this id."""
        return cls("message_id", message_id)

    @classmethod
    def key(cls, key: str) -> Wanted:
        """Every message with this idempotency key."""
        return cls("idempotency_key", key)

    @property
    def filter(self) -> BooleanExpression:
        """What spares files that can't hold it."""
        return equal(self.column, self.value)


@dataclass(frozen=True, slots=True)
class Trace:
    """The story of what was found; rows of dead letters are as their table has them."""

    wanted: Wanted
    copies: tuple[CopyFate, ...]
    standardized: tuple[StandardizedRow, ...]
    parse_errors: tuple[ParseError, ...]
    dead_letters: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class _Story:
    """One topic's part of a trace."""

    copies: list[CopyFate]
    standardized: list[StandardizedRow]
    parse_errors: list[ParseError]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table at one moment: rows and history come from the same metadata file, so they can't contradict."""

    name: str
    location: str

    def history(self) -> History:
        return read_history(self.name, self.location)

    def files(self, near: BooleanExpression, snapshot_id: int | None = None) -> TableFiles:
        return plan(open_table(self.location), near, snapshot_id)


@dataclass(frozen=True, slots=True)
class Tracer:
    """Finds messages in every zone."""

    catalog: CatalogFile
    names: Names
    state: StateReader | None

    def trace(self, wanted: Wanted, topic: str | None = None) -> Trace:
        """Everything there is of a message or key; TerminalError if there is nothing."""
        tables = {
            name: _Table(str(self.names.raw(name)), location)
            for name, location in self.catalog.raw_locations(self.names).items()
            if topic in {None, name}
        }
        found = _in_raw(tables, wanted)
        stories = [self._story(wanted, name, tables[name], found[name]) for name in sorted(found)]
        ids = {row["message_id"] for copies in found.values() for row in copies}
        dead_letters = self._dead_letters(wanted, topic, ids)
        if not found and not dead_letters:
            raise _not_found(wanted, topic)
        return Trace(
            wanted,
            tuple(copy for story in stories for copy in story.copies),
            tuple(row for story in stories for row in story.standardized),
            tuple(error for story in stories for error in story.parse_errors),
            tuple(dead_letters),
        )

    def _story(self, wanted: Wanted, topic: str, raw: _Table, found: Sequence[Row]) -> _Story:
        """One topic's part. parse_errors is read last: a batch writes there before it publishes."""
        table = self._table(self.names.standardized(topic))
        standardized = _in_standardized(table, wanted, topic, found) if table else []
        parse_errors = self._in_parse_errors(wanted, topic)
        history = table.history() if table else None
        checkpoint = published.to_snapshot if history and (published := history.checkpoint()) else None
        order = _order(raw.history())
        copies = _copies(topic, found, order, _read_by_batches(wanted, raw, checkpoint, found))
        if checkpoint is not None and checkpoint not in order:
            copies = _by_witnesses(copies, [*standardized, *parse_errors])
        standing = Standing(self._waits_because(topic, checkpoint), order, _batch_ends(history))
        return _Story(fates_of(copies, standing, standardized, parse_errors), standardized, parse_errors)

    def _in_parse_errors(self, wanted: Wanted, topic: str) -> list[ParseError]:
        table = self._table(self.names.parse_errors)
        if table is None:
            return []
        files = table.files(_and(equal("topic_name", topic), wanted.filter))
        return [
            ParseError(**_arrival(topic, row), payload=row["raw_payload"], **{name: row[name] for name in _ERROR})
            for row in _matching(files, wanted, (*_ARRIVAL, *_ERROR, "raw_payload", "topic_name"))
            if row["topic_name"] == topic
        ]

    def _dead_letters(self, wanted: Wanted, topic: str | None, found_ids: Iterable[str]) -> list[Row]:
        """Dead letters by message id, because they have no key of their own."""
        table = self._table(self.names.dlq_errors)
        if table is None:
            return []
        ids = [wanted] if wanted == Wanted.message(wanted.value) else [Wanted.message(one) for one in sorted(found_ids)]
        return [
            {name: row[name] for name in (*_DEAD_LETTER, "snapshot_id")}
            for one in ids
            for row in _matching(table.files(one.filter), one, _DEAD_LETTER)
            if topic in {None, row["topic_name"]}
        ]

    def _waits_because(self, topic: str, checkpoint: int | None) -> str:
        item = (self.state.item(topic) if self.state else None) or RegistryItem(topic)
        if not item.processing_enabled:
            return f"gate shut: {gate_words(item)}"
        stored = self.state.checkpoint(pipeline_id(Zone.STANDARDIZED, topic)) if self.state else None
        if stored is not None and stored.intent is not None:
            return f"batch {stored.intent.batch.batch_id} is open: the next run finishes it"
        if checkpoint is None:
            return "no batch of this topic has run yet"
        return f"newer than the checkpoint (RAW snapshot {checkpoint})"

    def _table(self, name: TableName) -> _Table | None:
        location = self.catalog.locations(name.database).get(name.table)
        return _Table(str(name), location) if location else None


# zones


def _in_raw(tables: Mapping[str, _Table], wanted: Wanted) -> dict[str, list[Row]]:
    """Matching RAW rows by topic. Tables of one shape are read by one query: there are hundreds of them."""
    shapes: defaultdict[tuple[DuckColumn, ...], list[TableFiles]] = defaultdict(list)
    topic_of: dict[str, str] = {}
    for topic, table in tables.items():
        files = table.files(wanted.filter)
        shapes[files.columns].append(files)
        topic_of |= {file.path: topic for file in files.data}
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for columns, parts in shapes.items():
        together = TableFiles(
            columns,
            tuple(file for files in parts for file in files.data),
            tuple(path for files in parts for path in files.deletes),
        )
        for row in _matching(together, wanted, _RAW):
            found[topic_of[row[FILE_COLUMN]]].append(row)
    return dict(found)


def _in_standardized(table: _Table, wanted: Wanted, topic: str, found: Sequence[Row]) -> list[StandardizedRow]:
    """Matching rows, looked for on the days of the RAW copies only: a row keeps its message's publish_time."""
    files = table.files(_and(wanted.filter, _published_like(found)))
    matching = _matching(files, wanted, (*_ARRIVAL, "_batch_id"))
    return [StandardizedRow(**_arrival(topic, row), batch_id=row["_batch_id"]) for row in matching]


# how far the topic is


def _order(history: History) -> dict[int, int]:
    """Each snapshot's place in a table's history, the oldest first."""
    chain = [snapshot.snapshot_id for snapshot in history.ancestors(history.head)]
    return {snapshot_id: place for place, snapshot_id in enumerate(reversed(chain))}


def _read_by_batches(
    wanted: Wanted, raw: _Table, checkpoint: int | None, found: Sequence[Row]
) -> Counter[tuple[Any, ...]]:
    """The copies that RAW held at the checkpoint: right even if maintenance has rewritten files since."""
    history = raw.history()
    if checkpoint is None or checkpoint not in history.snapshots:
        return Counter()
    if checkpoint == history.head:
        return Counter(map(_identity, found))
    return Counter(map(_identity, _matching(raw.files(wanted.filter, checkpoint), wanted, _RAW)))


def _copies(
    topic: str, found: Sequence[Row], order: Mapping[int, int], read: Counter[tuple[Any, ...]]
) -> list[RawCopy]:
    """RAW rows as copies; of equal ones the older are those that batches have read."""
    copies = []
    for row in sorted(found, key=lambda row: order.get(row["snapshot_id"], -1)):
        processed = read[_identity(row)] > 0
        read[_identity(row)] -= 1
        copies.append(RawCopy(**_arrival(topic, row), payload=row["json_payload"], processed=processed))
    return copies


def _by_witnesses(copies: Sequence[RawCopy], witnesses: Sequence[Arrival]) -> list[RawCopy]:
    """The copies when the checkpoint's snapshot is gone: read by a batch if a zone has the message."""
    known = {witness.message for witness in witnesses}
    return [replace(copy, processed=copy.message in known) for copy in copies]


def _batch_ends(history: History | None) -> dict[str, int]:
    """The RAW snapshot that each batch of a Standardized table read up to."""
    return {
        snapshot.summary[BATCH_ID_PROPERTY]: int(snapshot.summary[TO_SNAPSHOT_PROPERTY])
        for snapshot in (history.ancestors(history.head) if history else ())
        if BATCH_ID_PROPERTY in snapshot.summary
    }


# rows


def _matching(files: TableFiles, wanted: Wanted, columns: Sequence[str]) -> list[Row]:
    """Matching rows, each with its data file and the snapshot that wrote that."""
    if not files.data:
        return []
    writers = {file.path: file.snapshot_id for file in files.data}
    with views_of({"t": files}) as connection:
        names = ", ".join((*columns, FILE_COLUMN))
        sql = f"SELECT {names} FROM t WHERE {wanted.column} = {literal(wanted.value)}"  # noqa: S608  names are our own
        return [{**row, "snapshot_id": writers[row[FILE_COLUMN]]} for row in rows(connection, sql)]


def _arrival(topic: str, row: Row) -> Row:
    return {"topic": topic, "snapshot_id": row["snapshot_id"], **{name: row[name] for name in _ARRIVAL}}


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _RAW)


def _and(left: BooleanExpression, right: BooleanExpression) -> BooleanExpression:
    from pyiceberg.expressions import And

    return And(left, right)


def _published_like(found: Sequence[Row]) -> BooleanExpression:
    from pyiceberg.expressions import GreaterThanOrEqual, LessThanOrEqual, Reference
    from pyiceberg.expressions.literals import literal as value_of

    times = [row["publish_time"] for row in found]
    return _and(
        GreaterThanOrEqual(term=Reference("publish_time"), value=value_of(min(times))),
        LessThanOrEqual(term=Reference("publish_time"), value=value_of(max(times))),
    )


def _not_found(wanted: Wanted, topic: str | None) -> TerminalError:
    what = "id" if wanted.column == "message_id" else "key"
    return TerminalError(
        f"no message with this {what} in RAW or among dead letters",
        where=f"{what} {wanted.value!r}" + (f", topic {topic!r}" if topic else ""),
        remedy="Try it without --topic." if topic else None,
    )
