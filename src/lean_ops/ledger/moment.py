"""The lake at one moment: tables and books that can be compared although runs go on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.table_files import DuckColumn, TableFiles, open_table, plan
from lean_ops.ledger.zone_table import ZoneTable, read_zone_table
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError
from lean_ops.model.ledger import ledger_row
from lean_ops.model.tables import ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from pyiceberg.expressions import BooleanExpression

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.lake.snapshots import History
    from lean_ops.ledger.status import StateReader
    from lean_ops.model.batch import Intent
    from lean_ops.model.registry import RegistryItem
    from lean_ops.model.tables import Names, TableName, TableShape
    from lean_ops.state.port import Checkpoint

    Row = dict[str, Any]

# A look takes milliseconds, so it is rare that somebody commits in between and rarer that it happens again.
_LOOKS: Final = 10
_DUCK_TYPES: Final = {
    ColumnType.STRING: "VARCHAR",
    ColumnType.STRINGS: "VARCHAR[]",
    ColumnType.BIGINT: "BIGINT",
    ColumnType.DOUBLE: "DOUBLE",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.TIMESTAMP: "TIMESTAMP WITH TIME ZONE",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """Metadata files of the zones' tables and of the shared ones, and what the state store said."""

    zones: Mapping[TableName, str]
    shared: Mapping[TableName, str]
    checkpoints: Mapping[str, Checkpoint]
    items: Mapping[str, RegistryItem]


def take_moment(catalog: CatalogReader, names: Names, state: StateReader | None, topics: Sequence[str]) -> Moment:
    """The moment at which no zone table of these topics moved while state and books were looked up.

    The order matters: a batch is published, then booked, then closed in the store, and its error rows are there
    before all that. So whatever the store calls closed is in these books, and their batches are in these tables.
    """
    wanted = [names.of_zone(zone, topic) for topic in topics for zone in Zone]
    databases = names.databases
    for _ in range(_LOOKS):
        before = _located(catalog, databases[:-1], wanted)
        checkpoints, items = (state.checkpoints(), state.items()) if state else ({}, {})
        books = _located(catalog, databases[-1:], tuple(names.shared))
        errors = _located(catalog, databases[:-1], (*names.shared, *wanted))
        after = {name: errors[name] for name in wanted if name in errors}
        if before == after:
            break
    shared = {name: location for name, location in (books | errors).items() if name in names.shared}
    return Moment(after, shared, checkpoints, items)


def _located(catalog: CatalogReader, databases: Sequence[str], wanted: Sequence[TableName]) -> dict[TableName, str]:
    locations = {database: catalog.locations(database) for database in databases}
    found = ((name, locations.get(name.database, {}).get(name.table)) for name in wanted)
    return {name: location for name, location in found if location is not None}


# a topic's tables


@dataclass(frozen=True, slots=True)
class TopicTables:
    """A topic's tables at one moment; `is_curated` says whether its records are to go on to Curated."""

    topic: str
    tables: Mapping[Zone, ZoneTable]
    stored: Mapping[Zone, Checkpoint] = field(default_factory=dict)
    is_curated: bool = True


def tables_of(moment: Moment, names: Names, topic: str) -> TopicTables:
    """A topic's tables; one that can't be read has a problem and hides no other."""
    tables = {}
    for zone in Zone:
        name = names.of_zone(zone, topic)
        tables[zone] = read_zone_table(name, moment.zones.get(name))
    ids = {zone: pipeline_id(zone, topic) for zone in Zone}
    stored = {zone: moment.checkpoints[ids[zone]] for zone in Zone if ids[zone] in moment.checkpoints}
    item = moment.items.get(topic)
    is_curated = tables[Zone.CURATED].location is not None or (item is not None and item.curated)
    return TopicTables(topic, tables, stored, is_curated)


# batches that the tables themselves show


@dataclass(frozen=True, slots=True)
class CommitReaders:
    """How the rooms that commit read their own commits; they stand beside the ledger, which can't import them.

    `flushes` gives the ledger rows of those flushes in a RAW table that the next ingestion would look after.
    """

    published: Callable[[History], Intent | None]
    open: Callable[[Checkpoint | None, History], Intent | None]
    flushes: Callable[[str, History], Sequence[Row]]


@dataclass(frozen=True, slots=True)
class ShownBatch:
    """A batch that a table shows, as the row that the ledger should have; `is_open`: a later run or flush writes it."""

    row: Row
    is_open: bool


def shown_batches(topic: TopicTables, readers: CommitReaders, now: datetime) -> list[ShownBatch]:
    """The newest batch of each hop, and RAW's flushes that may not be in the ledger yet."""
    shown = []
    raw = topic.tables[Zone.RAW].history
    if raw is not None:
        shown += [ShownBatch(row, is_open=True) for row in readers.flushes(topic.topic, raw)]
    for zone in (Zone.STANDARDIZED, Zone.CURATED):
        newest = _newest(topic, zone, readers, now)
        shown += [newest] if newest else []
    return shown


def _newest(topic: TopicTables, zone: Zone, readers: CommitReaders, now: datetime) -> ShownBatch | None:
    history = topic.tables[zone].history
    checkpoint = history.checkpoint() if history else None
    if history is None or checkpoint is None:
        return None
    try:
        published = readers.published(history)
        begun = readers.open(topic.stored.get(zone), history)
    except LeanOpsError:  # the property was altered by hand: then it says nothing
        published, begun = None, None
    if published is None or published.counts is None:
        texts = {"batch_id": checkpoint.batch_id, "to_snapshot": str(checkpoint.to_snapshot)}
        return ShownBatch({"topic_name": topic.topic, "zone": str(zone), **texts}, is_open=False)
    batch = published.batch
    snapshots = (batch.from_snapshot, batch.to_snapshot)
    row = {**ledger_row(topic.topic, zone, batch.batch_id, snapshots, published.counts, now), "kind": batch.kind}
    return ShownBatch(row, is_open=begun is not None and begun.batch == batch)


# files


def files_of(
    location: str | None, shape: TableShape, near: BooleanExpression | None = None, snapshot_id: int | None = None
) -> TableFiles:
    """A table's files, to be read in the shape's columns only; a table that is not there has no rows."""
    if location is None:
        return no_files(shape)
    files = plan(open_table(location), near, snapshot_id)
    wanted = {column.name for column in shape.columns}
    return replace(files, columns=tuple(column for column in files.columns if column.name in wanted))


def no_files(shape: TableShape) -> TableFiles:
    """A table of this shape without rows."""
    columns = (
        DuckColumn(number, column.name, _DUCK_TYPES[ColumnType(str(column.type))])
        for number, column in enumerate(shape.columns, start=1)
    )
    return TableFiles(tuple(columns), ())


def has_source(topic: TopicTables, zone: Zone) -> bool:
    """Whether what a zone's batches have read can still be read."""
    checkpoint, source = topic.tables[zone].checkpoint, topic.tables[zone.source].history
    return checkpoint is None or zone is Zone.RAW or bool(source and checkpoint.to_snapshot in source.snapshots)


def read_files(topic: TopicTables, zone: Zone, shape: TableShape) -> TableFiles:
    """What a zone's batches have read of the zone before; nothing before its first batch."""
    checkpoint = topic.tables[zone].checkpoint
    if checkpoint is None or not has_source(topic, zone):
        return no_files(shape)
    return files_of(topic.tables[zone.source].location, shape, snapshot_id=checkpoint.to_snapshot)
