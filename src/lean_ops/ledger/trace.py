"""One message through the zones: every copy, where each got to, why not further, and the snapshot that wrote it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.table_files import FILE_COLUMN, DuckColumn, TableFiles
from lean_ops.ledger.curated_fates import CuratedStanding
from lean_ops.ledger.curated_trace import CuratedSide, CuratedStory, all_ends, batch_ends
from lean_ops.ledger.fates import Arrival, CopyFate, ParseError, RawCopy, StandardizedRow, Standing, fates_of
from lean_ops.ledger.finding import OneOf, TableAt, both, matching, published_like, snapshot_order
from lean_ops.ledger.reading import equal
from lean_ops.ledger.status import ends_because, waits_because
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import RegistryItem
from lean_ops.model.tables import BATCH_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.ledger.curated_fates import CuratedError, RowFate
    from lean_ops.ledger.finding import Row
    from lean_ops.ledger.status import StateReader
    from lean_ops.model.tables import Names, TableName

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
    def rows(self) -> OneOf:
        """The rows that are meant, in whatever table."""
        return OneOf(self.column, (self.value,))


@dataclass(frozen=True, slots=True)
class Trace:
    """The story of what was found; rows of dead letters are as their table has them."""

    wanted: Wanted
    copies: tuple[CopyFate, ...]
    standardized: tuple[StandardizedRow, ...]
    parse_errors: tuple[ParseError, ...]
    curated: tuple[RowFate, ...]
    curated_errors: tuple[CuratedError, ...]
    dead_letters: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class _Story:
    """One topic's part of a trace."""

    copies: list[CopyFate]
    standardized: list[StandardizedRow]
    parse_errors: list[ParseError]
    curated: CuratedStory


@dataclass(frozen=True, slots=True)
class _Zones:
    """Every topic's tables at one moment, by topic; those of RAW are of the wanted topics only."""

    curated: Mapping[str, TableAt]
    standardized: Mapping[str, TableAt]
    raw: Mapping[str, TableAt]


@dataclass(frozen=True, slots=True)
class Tracer:
    """Finds messages in every zone."""

    catalog: CatalogReader
    names: Names
    state: StateReader | None

    def trace(self, wanted: Wanted, topic: str | None = None) -> Trace:
        """Everything there is of a message or key; TerminalError if there is nothing."""
        zones = self._zones(topic)
        found = _in_raw(zones.raw, wanted)
        stories = [self._story(wanted, name, zones, found[name]) for name in sorted(found)]
        ids = {row["message_id"] for copies in found.values() for row in copies}
        dead_letters = self._dead_letters(wanted, topic, ids)
        if not found and not dead_letters:
            raise _not_found(wanted, topic)
        return Trace(
            wanted,
            tuple(copy for story in stories for copy in story.copies),
            tuple(row for story in stories for row in story.standardized),
            tuple(error for story in stories for error in story.parse_errors),
            tuple(fate for story in stories for fate in story.curated.fates),
            tuple(error for story in stories for error in story.curated.errors),
            tuple(dead_letters),
        )

    def _zones(self, topic: str | None) -> _Zones:
        """Downstream first: runs go on meanwhile, and what a table has read must be in the one that it read from."""
        curated = _tables(self.catalog.locations(self.names.curated_database), self.names.curated)
        standardized = _tables(self.catalog.locations(self.names.standardized_database), self.names.standardized)
        raw = _tables(self.catalog.raw_locations(self.names), self.names.raw)
        return _Zones(curated, standardized, {name: raw[name] for name in raw if topic in {None, name}})

    def _story(self, wanted: Wanted, topic: str, zones: _Zones, found: Sequence[Row]) -> _Story:
        """One topic's part. The error tables are looked up last: a batch writes there before it publishes."""
        raw, table = zones.raw[topic], zones.standardized.get(topic)
        standardized = _in_standardized(table, wanted, topic, found) if table else []
        parse_errors = self._in_parse_errors(wanted, topic)
        checkpoint = published.to_snapshot if table and (published := table.history.checkpoint()) else None
        order, batches = snapshot_order(raw.history), batch_ends(table.history) if table else []
        copies = _copies(topic, found, order, _read_by_batches(wanted, raw, checkpoint, found))
        if checkpoint is not None and checkpoint not in order:
            copies = _by_witnesses(copies, [*standardized, *parse_errors])
        waits = self._waits_because(Zone.STANDARDIZED, topic, checkpoint)
        ends = {batch.batch_id: batch.to_snapshot for batch in batches}
        standing = Standing(waits, order, ends, all_ends(table.history) if table else ())
        fates = fates_of(copies, standing, standardized, parse_errors)
        return _Story(fates, standardized, parse_errors, self._curated(topic, zones, standardized))

    def _curated(self, topic: str, zones: _Zones, rows: Sequence[StandardizedRow]) -> CuratedStory:
        """How the story goes on from Standardized."""
        if not rows:
            return CuratedStory([], [])
        side = CuratedSide(topic, zones.curated.get(topic), zones.standardized[topic])
        standing = CuratedStanding(
            self._waits_because(Zone.CURATED, topic, side.checkpoint),
            ends_because(self._item(topic), has_table=side.curated is not None),
        )
        return side.story(rows, standing, self._table(self.names.curated_errors))

    def _in_parse_errors(self, wanted: Wanted, topic: str) -> list[ParseError]:
        table = self._table(self.names.parse_errors)
        if table is None:
            return []
        files = table.files(both(equal("topic_name", topic), wanted.rows.filter))
        return [
            ParseError(**_arrival(topic, row), payload=row["raw_payload"], **{name: row[name] for name in _ERROR})
            for row in matching(files, wanted.rows, (*_ARRIVAL, *_ERROR, "raw_payload", "topic_name"))
            if row["topic_name"] == topic
        ]

    def _dead_letters(self, wanted: Wanted, topic: str | None, found_ids: Collection[str]) -> list[Row]:
        """Dead letters by message id, because they have no key of their own."""
        table = self._table(self.names.dlq_errors)
        if table is None:
            return []
        ids = OneOf("message_id", {wanted.value} if wanted.column == "message_id" else found_ids)
        return [
            {name: row[name] for name in (*_DEAD_LETTER, "snapshot_id")}
            for row in matching(table.files(ids.filter), ids, _DEAD_LETTER)
            if topic in {None, row["topic_name"]}
        ]

    def _waits_because(self, zone: Zone, topic: str, checkpoint: int | None) -> str:
        stored = self.state.checkpoint(pipeline_id(zone, topic)) if self.state else None
        return waits_because(self._item(topic), zone, checkpoint, stored.intent if stored else None)

    def _item(self, topic: str) -> RegistryItem:
        return (self.state.item(topic) if self.state else None) or RegistryItem(topic)

    def _table(self, name: TableName) -> TableAt | None:
        location = self.catalog.locations(name.database).get(name.table)
        return TableAt(str(name), location) if location else None


# zones


def _tables(locations: Mapping[str, str], name: Callable[[str], TableName]) -> dict[str, TableAt]:
    return {topic: TableAt(str(name(topic)), location) for topic, location in locations.items()}


def _in_raw(tables: Mapping[str, TableAt], wanted: Wanted) -> dict[str, list[Row]]:
    """Matching RAW rows by topic. Tables of one shape are read by one query: there are hundreds of them."""
    shapes: defaultdict[tuple[DuckColumn, ...], list[TableFiles]] = defaultdict(list)
    topic_of: dict[str, str] = {}
    for topic, table in tables.items():
        files = table.files(wanted.rows.filter)
        shapes[files.columns].append(files)
        topic_of |= {file.path: topic for file in files.data}
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for columns, parts in shapes.items():
        together = TableFiles(
            columns,
            tuple(file for files in parts for file in files.data),
            tuple(path for files in parts for path in files.deletes),
        )
        for row in matching(together, wanted.rows, _RAW):
            found[topic_of[row[FILE_COLUMN]]].append(row)
    return dict(found)


def _in_standardized(table: TableAt, wanted: Wanted, topic: str, found: Sequence[Row]) -> list[StandardizedRow]:
    """Matching rows, looked for on the days of the RAW copies only: a row keeps its message's publish_time."""
    files = table.files(both(wanted.rows.filter, published_like(row["publish_time"] for row in found)))
    rows = matching(files, wanted.rows, (*_ARRIVAL, BATCH_ID))
    return [StandardizedRow(**_arrival(topic, row), batch_id=row[BATCH_ID]) for row in rows]


# how far the topic is


def _read_by_batches(
    wanted: Wanted, raw: TableAt, checkpoint: int | None, found: Sequence[Row]
) -> Counter[tuple[Any, ...]]:
    """The copies that RAW held at the checkpoint: right even if maintenance has rewritten files since."""
    history = raw.history
    if checkpoint is None or checkpoint not in history.snapshots:
        return Counter()
    if checkpoint == history.head:
        return Counter(map(_identity, found))
    [files] = raw.files_as_of([checkpoint], wanted.rows.filter)
    return Counter(map(_identity, matching(files, wanted.rows, _RAW)))


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


# rows


def _arrival(topic: str, row: Row) -> Row:
    return {"topic": topic, "snapshot_id": row["snapshot_id"], **{name: row[name] for name in _ARRIVAL}}


def _identity(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in _RAW)


def _not_found(wanted: Wanted, topic: str | None) -> TerminalError:
    what = "id" if wanted.column == "message_id" else "key"
    return TerminalError(
        f"no message with this {what} in RAW or among dead letters",
        where=f"{what} {wanted.value!r}" + (f", topic {topic!r}" if topic else ""),
        remedy="Try it without --topic." if topic else None,
    )
