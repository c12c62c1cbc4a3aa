"""What a run would do: which topics, which gates, which snapshot ranges. Decided from files alone, then frozen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lean_ops.model.batch import Batch, Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError, WrongUseError
from lean_ops.model.registry import NO_SCHEMA, Gate
from lean_ops.operate.intent import open_batch
from lean_ops.operate.untouched import refuse_behind, refuse_touched, table_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lean_ops.lake.reader import CatalogReader
    from lean_ops.lake.snapshots import History, Outline
    from lean_ops.model.batch import Intent
    from lean_ops.model.tables import Names
    from lean_ops.state.port import Checkpoint, CheckpointReader


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch to do; `resumes` one whose intent an earlier run has stored."""

    batch: Batch
    records: int
    resumes: bool = False


@dataclass(frozen=True, slots=True)
class HopPlan:
    """A topic's step into one zone: its batches in order, or why they can't be told.

    A hop that `follows` another also takes what that one is about to publish, so its last batch is known only then.
    """

    zone: Zone
    batches: tuple[PlannedBatch, ...] = ()
    follows: bool = False
    problem: LeanOpsError | None = None

    @property
    def has_work(self) -> bool:
        """Whether a run has to look at it."""
        return bool(self.batches or self.follows or self.problem)

    @property
    def records(self) -> int:
        """Records that its batches read, as far as they are known."""
        return sum(planned.records for planned in self.batches)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """One topic's part: its hops in the order of a record's way, or what waits behind its gate.

    `merged_into` is how many rows Curated has that a batch is merged into.
    """

    topic: str
    gate: Gate
    hops: tuple[HopPlan, ...] = ()
    waiting: int = 0
    merged_into: int = 0

    @property
    def work(self) -> tuple[HopPlan, ...]:
        """The hops that a run has to take."""
        return tuple(hop for hop in self.hops if hop.has_work)

    @property
    def summary(self) -> str:
        """The plan in a few words."""
        if not self.gate.open:
            return f"skipped, {self.gate.reason}"
        return "to do" if self.work else "nothing new"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Every topic that was looked at."""

    topics: tuple[TopicPlan, ...]

    @property
    def work(self) -> tuple[TopicPlan, ...]:
        """The topics that a run has to touch."""
        return tuple(plan for plan in self.topics if plan.work)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Records of each batch, as far as they are known."""
        return tuple(planned.records for topic in self.topics for hop in topic.hops for planned in hop.batches)

    @property
    def largest_table(self) -> int:
        """Rows of the largest table that a batch is merged into."""
        return max((topic.merged_into for topic in self.topics), default=0)

    @property
    def shut(self) -> tuple[TopicPlan, ...]:
        """Topics whose data waits behind a shut gate."""
        return tuple(plan for plan in self.topics if not plan.gate.open and plan.waiting)

    def waiting_rows(self) -> list[dict[str, Any]]:
        """These topics, for a machine."""
        return [{"topic": topic.topic, "records": topic.waiting, "reason": topic.gate.reason} for topic in self.shut]

    def only(self, zone: Zone) -> RunPlan:
        """The same plan without the hops into other zones."""
        topics = (replace(topic, hops=tuple(hop for hop in topic.hops if hop.zone is zone)) for topic in self.topics)
        return replace(self, topics=tuple(topics))


class Planner:
    """Plans runs from the catalog file, the registry and the checkpoints; starts nothing."""

    def __init__(
        self,
        catalog: CatalogReader,
        names: Names,
        checkpoints: CheckpointReader,
        gates: Callable[[], Mapping[str, Gate]],
    ) -> None:
        self._catalog = catalog
        self._names = names
        self._checkpoints = checkpoints
        self._gates = gates

    def plan(self, topics: Sequence[str] = ()) -> RunPlan:
        """The plan for the given topics, or for all there are."""
        gates = self._gates()
        locations = self._locations()
        checkpoints = self._checkpoints.checkpoints()
        known = sorted({*locations[Zone.RAW], *gates})
        _refuse_unknown(topics, known)

        def plan_topic(topic: str, gate: Gate) -> TopicPlan:
            stored = {zone: checkpoints.get(pipeline_id(zone, topic)) for zone in (Zone.STANDARDIZED, Zone.CURATED)}
            return _plan_topic(topic, gate, self._tables(topic, locations), stored)

        plan = RunPlan(
            tuple(plan_topic(topic, gates.get(topic, NO_SCHEMA)) for topic in (dict.fromkeys(topics) or known))
        )
        self._catalog.outlines.keep()
        return plan

    def plan_hop(self, topic: str, zone: Zone, gate: Gate) -> HopPlan:
        """One hop as it stands now; what a hop that follows another is told once that one is done."""
        names = {each: self._names.of_zone(each, topic) for each in Zone}
        locations = {each: self._catalog.location(name) for each, name in names.items()}
        tables = self._tables(topic, {each: {topic: found} if found else {} for each, found in locations.items()})
        return _plan_hop(topic, zone, gate, tables, self._checkpoints.checkpoint(pipeline_id(zone, topic)))

    def _tables(self, topic: str, locations: Mapping[Zone, Mapping[str, str]]) -> dict[Zone, _Table]:
        catalog = self._catalog
        return {
            zone: _Table(str(self._names.of_zone(zone, topic)), found.get(topic), catalog)
            for zone, found in locations.items()
        }

    def _locations(self) -> dict[Zone, dict[str, str]]:
        """Metadata files by zone and topic."""
        return {
            Zone.RAW: self._catalog.raw_locations(self._names),
            Zone.STANDARDIZED: self._catalog.locations(self._names.standardized_database),
            Zone.CURATED: self._catalog.locations(self._names.curated_database),
        }


@dataclass(frozen=True, slots=True)
class _Table:
    """A topic's table in a zone, which may not be there."""

    name: str
    location: str | None
    catalog: CatalogReader

    def outline(self) -> Outline | None:
        """The quick look, which is enough to see that there is nothing to do."""
        return self.catalog.outlines.outline(self.name, self.location) if self.location else None

    def history(self) -> History | None:
        return self.catalog.read_history(self.name, self.location) if self.location else None


def _refuse_unknown(topics: Sequence[str], known: Sequence[str]) -> None:
    for topic in topics:
        if topic not in known:
            raise WrongUseError(
                "there is no such topic",
                where=f"topic {topic!r}",
                expected=f"one of {', '.join(known[:20])}{' …' if len(known) > 20 else ''}" if known else None,
                remedy="`lean-ops ingest TOPIC FILE` brings its first data.",
            )


def _plan_topic(
    topic: str, gate: Gate, tables: Mapping[Zone, _Table], stored: Mapping[Zone, Checkpoint | None]
) -> TopicPlan:
    if not gate.open:
        return TopicPlan(topic, gate, waiting=_waiting(tables))
    hop = _plan_hop(topic, Zone.STANDARDIZED, gate, tables, stored[Zone.STANDARDIZED])
    if not gate.curated:
        return TopicPlan(topic, gate, (hop,))
    curated = _plan_hop(topic, Zone.CURATED, gate, tables, stored[Zone.CURATED])
    hops = (hop, replace(curated, follows=bool(hop.batches)))
    return TopicPlan(topic, gate, hops, merged_into=_rows(tables[Zone.CURATED]) if hops[1].has_work else 0)


def _rows(table: _Table) -> int:
    """A table's rows; none if they can't be counted, which is its hop's problem."""
    try:
        outline = table.outline()
    except LeanOpsError:
        return 0
    return outline.rows if outline else 0


def _waiting(tables: Mapping[Zone, _Table]) -> int:
    """Records that RAW keeps behind a shut gate; none if they can't be counted, which is no matter of this run."""
    try:
        seen, standardized = tables[Zone.RAW].outline(), tables[Zone.STANDARDIZED].outline()
        start = standardized.checkpoint.to_snapshot if standardized and standardized.checkpoint else None
        if seen is None or seen.head is None or start == seen.head:
            return 0
        raw = tables[Zone.RAW].history()
        return raw.records_between(start, seen.head) if raw else 0
    except LeanOpsError:
        return 0


def _plan_hop(topic: str, zone: Zone, gate: Gate, tables: Mapping[Zone, _Table], stored: Checkpoint | None) -> HopPlan:
    """The hop's batches; a table that can't be read is the hop's problem, not the run's."""
    try:
        _refuse_gone(tables, zone, stored)
        seen = tables[zone.source].outline()
        if seen is None or not _has_data(seen, zone) or _is_up_to_date(seen, stored):
            return HopPlan(zone)
        source, table = tables[zone.source].history(), tables[zone].history()
        if source is None:
            return HopPlan(zone)
        if zone is Zone.CURATED:
            refuse_touched(source)
        if table is not None:
            refuse_touched(table)
        refuse_behind(tables[zone].name, table, source, stored)
        return _decide(topic, zone, gate, source, table, stored)
    except LeanOpsError as error:
        return HopPlan(zone, problem=error)


def _refuse_gone(tables: Mapping[Zone, _Table], zone: Zone, stored: Checkpoint | None) -> None:
    """Batches were published, so their source and their table must be there; told by the catalog, no file is read."""
    has_batches = stored is not None and stored.last_snapshot_id is not None
    for table in (tables[zone.source], tables[zone]):
        if has_batches and table.location is None:
            raise table_gone(table.name)


def _has_data(source: Outline, zone: Zone) -> bool:
    """A Standardized table is made with its schema; before its first batch there is nothing in it to curate."""
    return source.head is not None and (zone is not Zone.CURATED or source.checkpoint is not None)


def _is_up_to_date(source: Outline, stored: Checkpoint | None) -> bool:
    """The quick answer, from the checkpoint's cache: the source has not moved and no batch is open."""
    return stored is not None and stored.intent is None and stored.last_snapshot_id == source.head


def _decide(
    topic: str, zone: Zone, gate: Gate, source: History, table: History | None, stored: Checkpoint | None
) -> HopPlan:
    """The batches that lead from the checkpoint (the table's own word) to the source's head."""
    start, head = _checkpoint(table), source.head
    batches: list[PlannedBatch] = []
    begun = open_batch(stored, table)
    if begun is not None:
        batches.append(PlannedBatch(begun.batch, _records(source, begun), resumes=True))
        start = begun.batch.to_snapshot
    if head is not None and start != head:
        batch = Batch(topic, zone, start, head, gate.schema_version)
        batches.append(PlannedBatch(batch, source.records_between(start, head)))
    return HopPlan(zone, tuple(batches))


def _checkpoint(table: History | None) -> int | None:
    published = table.checkpoint() if table else None
    return published.to_snapshot if published else None


def _records(source: History, begun: Intent) -> int:
    """A published batch knows its records; of another one the source must still have them."""
    if begun.counts is not None:
        return begun.counts.records_in
    return source.records_between(begun.batch.from_snapshot, begun.batch.to_snapshot)
