"""The building of a rebuild: parts of RAW go through the hops onto branches, up to where live processing is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.damage import naming_damage
from lean_ops.lake.rebuild_ground import BRANCH_PREFIX, RebuildGround, RebuiltZone, begin_branch
from lean_ops.lake.replace_errors import ErrorRows
from lean_ops.lake.snapshots import history_of
from lean_ops.lake.staging import Stage, staged_snapshots
from lean_ops.model.batch import Batch, Counts, Intent, Zone, pipeline_id
from lean_ops.model.errors import TerminalError
from lean_ops.operate.rebuild_difference import Difference, ZoneDifference
from lean_ops.operate.rebuild_note import RebuildNote, ZoneSwitch
from lean_ops.operate.rebuild_switch import error_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.difference import RowDifference
    from lean_ops.lake.shared import SharedTables
    from lean_ops.ledger.account import TopicAccount
    from lean_ops.model.registry import Gate
    from lean_ops.model.tables import TableName
    from lean_ops.operate.batch import Hop
    from lean_ops.state.port import CheckpointReader

# By what rows of a zone are told apart, and which of their columns say nothing about their records.
_KEYS: Final = {Zone.STANDARDIZED: ("message_id", "publish_time"), Zone.CURATED: ("idempotency_key",)}
_NOT_COMPARED: Final = frozenset({"_batch_id", "_schema_version", "last_updated_ts"})


@dataclass(frozen=True, slots=True)
class BuildParts:
    """What it is built with.

    Spark's work is to `compare` a branch with main, and to let rows of a Curated branch `take_over` when main's were
    first seen.
    """

    lake: Lake
    shared: SharedTables
    state: CheckpointReader
    hops: Callable[[RebuildGround], Mapping[Zone, Hop]]
    compare: Callable[[Stage, Sequence[str], Collection[str]], RowDifference]
    take_over: Callable[[Stage, Batch], bool]
    clock: Callable[[], datetime]
    on_step: Callable[[str], None]


@dataclass(slots=True)
class Building:
    """One rebuild at work. `position` is the RAW snapshot up to which it has come; each part adds to its counts."""

    parts: BuildParts
    topic: str
    rebuild_id: str
    gate: Gate
    ground: RebuildGround
    hops: Mapping[Zone, Hop]
    columns_before: Mapping[Zone, frozenset[str]]
    position: int | None = None
    counts: dict[Zone, Counts] = field(default_factory=dict)
    properties: dict[Zone, Mapping[str, str]] = field(default_factory=dict)
    last_ingestion_ts: int | None = None
    compared: tuple[int | None, ...] = ()

    @classmethod
    def begin(cls, parts: BuildParts, topic: str, rebuild_id: str, gate: Gate) -> Building:
        """Branches with nothing on them, and all that live batches have told of their ranges."""
        lake, zones = parts.lake, (Zone.STANDARDIZED, Zone.CURATED) if gate.curated else (Zone.STANDARDIZED,)
        branch = BRANCH_PREFIX + rebuild_id
        tables = {zone: lake.names.of_zone(zone, topic) for zone in zones}
        built = {name: RebuiltZone(branch, begin_branch(lake, name, branch)) for name in tables.values()}
        errors = {error_table(lake.names, zone): name for zone, name in tables.items()}
        ends = parts.shared.values(
            lake.names.ops("reconciliation_log"), "to_snapshot", topic_name=topic, zone=Zone.STANDARDIZED, kind="BATCH"
        )
        ground = RebuildGround(lake, [int(end) for end in ends], built, errors)
        columns = {zone: _columns(lake.load(name)) for zone, name in tables.items()}
        parts.on_step("branches made")
        return cls(parts, topic, rebuild_id, gate, ground, parts.hops(ground), columns)

    @property
    def zones(self) -> tuple[Zone, ...]:
        """The zones that are built, in the order of a record's way."""
        return tuple(self.columns_before)

    def catch_up(self) -> bool:
        """Build what live processing has done since; False if that is nothing."""
        target = live_position(self.parts.lake, self.parts.state, self.topic)
        if target == self.position:
            return False
        start, self.position = self.position, target
        before = self._zone(Zone.STANDARDIZED).head if start is not None else None
        self._build(Zone.STANDARDIZED, start, target)
        if Zone.CURATED in self.zones:
            self._build(Zone.CURATED, before, self._zone(Zone.STANDARDIZED).head)
        return True

    def _build(self, zone: Zone, start: int | None, end: int) -> None:
        batch = Batch(self.topic, zone, start, end, self.gate.schema_version, self.rebuild_id)
        intent = Intent(batch, self.gate.declared, self.parts.clock().isoformat())
        with naming_damage(lambda: [self.parts.lake.load(self._name(each)) for each in (zone.source, zone)]):
            staged = self.hops[zone].stage(intent, False, lambda step: self.parts.on_step(f"{zone} {step}"))
        built, counts = self._zone(zone), staged.counts
        built.head, built.rows = staged.head, built.rows + counts.inserted
        self.counts[zone] = _sum(self.counts.get(zone, Counts()), counts)
        self.properties[zone] = {} if zone is Zone.STANDARDIZED else staged.table_properties
        if zone is Zone.STANDARDIZED and staged.last_ingestion_ts is not None:
            self.last_ingestion_ts = max(self.last_ingestion_ts or 0, staged.last_ingestion_ts)
        self.parts.on_step(f"{zone} built")

    def _name(self, zone: Zone) -> TableName:
        return self.parts.lake.names.of_zone(zone, self.topic)

    def _zone(self, zone: Zone) -> RebuiltZone:
        return self.ground.zones[self._name(zone)]

    def note(self) -> RebuildNote:
        """What has to be cleared away if it ends here."""
        refused = {zone: tuple(file.path for file in self._zone(zone).refused) for zone in self.zones}
        return RebuildNote(self.rebuild_id, refused)

    @property
    def is_compared(self) -> bool:
        """Whether nobody has published since the difference was told."""
        return self.compared == self._live_heads()

    def _live_heads(self) -> tuple[int | None, ...]:
        return tuple(history_of(self.parts.lake.load(self._name(zone))).head for zone in self.zones)

    def difference(self) -> Difference:
        """What it would change, as the tables are now."""
        self.compared = self._live_heads()
        return Difference(tuple(map(self._difference, self.zones)))

    def _difference(self, zone: Zone) -> ZoneDifference:
        name, built = self._name(zone), self._zone(zone)
        stage = Stage(name, built.branch, built.head)
        if zone is Zone.CURATED and self.parts.take_over(stage, self._batch(zone)):
            built.head = staged_snapshots(self.parts.lake, stage)[0].snapshot_id
        rows = self.parts.compare(Stage(name, built.branch, built.head), _KEYS[zone], _NOT_COMPARED)
        return ZoneDifference(zone, rows, self._errors(zone).difference(), self._new_columns(zone))

    def _new_columns(self, zone: Zone) -> tuple[str, ...]:
        """Columns that came meanwhile and that nothing on main was written with."""
        table = self.parts.lake.load(self._name(zone))
        head = table.current_snapshot()
        live = table.schemas().get(head.schema_id) if head and head.schema_id is not None else None
        known = {field.name for field in live.fields} if live else set()
        return tuple(sorted(_columns(table) - self.columns_before[zone] - known))

    def _errors(self, zone: Zone) -> ErrorRows:
        lake, paths = self.parts.lake, self.note().refused[zone]
        return ErrorRows(lake, error_table(lake.names, zone), self.topic, self._batch(zone).batch_id, paths)

    def _batch(self, zone: Zone) -> Batch:
        """All parts of a zone as the books see them: one batch from the beginning."""
        end = self.position if zone is Zone.STANDARDIZED else self._zone(Zone.STANDARDIZED).head
        assert end is not None  # noqa: S101  asked only once a part is built
        return Batch(self.topic, zone, None, end, self.gate.schema_version, self.rebuild_id)

    def switch(self, books: TopicAccount, replaced: Mapping[Zone, Intent | None], began: datetime) -> RebuildNote:
        """The switch to what is built; `books` are the topic's before it, `replaced` its open live batches."""
        booked = {zone.zone: zone.counts for zone in books.zones}
        zones = {}
        for zone in self.zones:
            built, rebuilt = self._zone(zone), self.counts[zone]
            base = history_of(self.parts.lake.load(self._name(zone))).head
            assert base is not None  # noqa: S101  a table is made with its first snapshot
            counts = correction(zone, rebuilt, self._errors(zone).kept(), booked[zone])
            last = self.last_ingestion_ts
            intent = Intent(self._batch(zone), self.gate.declared, began.isoformat(), counts, last, rebuilt)
            zones[zone] = ZoneSwitch(built.branch, base, built.head, intent, self.properties[zone], replaced[zone])
        return RebuildNote(self.rebuild_id, self.note().refused, zones)


def live_position(lake: Lake, state: CheckpointReader, topic: str) -> int:
    """The RAW snapshot up to which live processing has come, by its table or, if that was put back, by the store."""
    table = history_of(lake.load(lake.names.standardized(topic))).checkpoint()
    stored = state.checkpoint(pipeline_id(Zone.STANDARDIZED, topic)).last_snapshot_id
    raw = history_of(lake.load(lake.names.raw(topic)))
    known = {table.to_snapshot if table else None, stored} - {None}
    newest = next((one.snapshot_id for one in raw.ancestors(raw.head) if one.snapshot_id in known), None)
    if newest is None:
        raise TerminalError(
            "there is nothing to build again" if not known else "RAW does not have what live batches have read",
            where=f"topic {topic!r}",
            found="no batch of this topic has run yet" if not known else f"batches up to snapshot {known}",
            remedy=f"`lean-ops run {topic}` processes what RAW has." if not known else "Restore the RAW table first.",
        )
    return newest


def correction(zone: Zone, rebuilt: Counts, kept_errors: int, booked: Counts) -> Counts:
    """By how much the books change, so that they add up to what stands now.

    Which of the losing versions had once been current is not told anew: `updated` stays what it was.
    """
    records_in = rebuilt.records_in - booked.records_in
    inserted = rebuilt.inserted - booked.inserted
    errors = rebuilt.errors + kept_errors - booked.errors
    rest: dict[str, Any] = {"duplicates" if zone is Zone.STANDARDIZED else "superseded": records_in - inserted - errors}
    return Counts(records_in=records_in, inserted=inserted, errors=errors, **rest)


def _sum(one: Counts, other: Counts) -> Counts:
    return Counts(
        one.records_in + other.records_in,
        one.inserted + other.inserted,
        one.updated + other.updated,
        one.duplicates + other.duplicates,
        one.superseded + other.superseded,
        one.errors + other.errors,
    )


def _columns(table: Table) -> frozenset[str]:
    return frozenset(field.name for field in table.schema().fields)
