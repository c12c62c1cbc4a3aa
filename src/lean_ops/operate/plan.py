"""What a run would do: which topics, which gates, which snapshot ranges. Decided from files alone, then frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.lake.catalog_file import read_history
from lean_ops.model.batch import Batch, Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError, WrongUseError
from lean_ops.model.registry import NO_SCHEMA, Gate
from lean_ops.operate.intent import open_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lean_ops.lake.catalog_file import CatalogFile
    from lean_ops.lake.snapshots import History
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
class TopicPlan:
    """One topic's part: its batches in order, or why there are none."""

    topic: str
    gate: Gate
    batches: tuple[PlannedBatch, ...] = ()
    waiting: int = 0
    problem: LeanOpsError | None = None

    @property
    def summary(self) -> str:
        """The plan in a few words."""
        if self.problem is not None:
            return f"can't be planned: {self.problem}"
        if not self.gate.open:
            return f"skipped, {self.gate.reason}"
        return "to do" if self.batches else "nothing new"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Every topic that was looked at."""

    topics: tuple[TopicPlan, ...]

    @property
    def work(self) -> tuple[TopicPlan, ...]:
        """The topics that a run has to touch."""
        return tuple(plan for plan in self.topics if plan.batches or plan.problem)

    @property
    def shut(self) -> tuple[TopicPlan, ...]:
        """Topics whose data waits behind a shut gate."""
        return tuple(plan for plan in self.topics if not plan.gate.open and plan.waiting)


class Planner:
    """Plans runs from the catalog file, the registry and the checkpoints; starts nothing."""

    def __init__(
        self,
        catalog: CatalogFile,
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
        raw = self._catalog.raw_locations(self._names)
        standardized = self._catalog.locations(self._names.standardized_database)
        checkpoints = self._checkpoints.checkpoints()
        known = sorted({*raw, *gates})
        _refuse_unknown(topics, known)
        return RunPlan(
            tuple(
                self._plan_topic(
                    topic,
                    gates.get(topic, NO_SCHEMA),
                    (raw.get(topic), standardized.get(topic)),
                    checkpoints.get(pipeline_id(Zone.STANDARDIZED, topic)),
                )
                for topic in (dict.fromkeys(topics) or known)
            )
        )

    def _plan_topic(
        self, topic: str, gate: Gate, locations: tuple[str | None, str | None], stored: Checkpoint | None
    ) -> TopicPlan:
        raw_location, standardized_location = locations
        if raw_location is None:
            return TopicPlan(topic, gate)
        try:
            raw = read_history(str(self._names.raw(topic)), raw_location)
            if gate.open and _is_up_to_date(raw, stored):
                return TopicPlan(topic, gate)
            standardized = (
                read_history(str(self._names.standardized(topic)), standardized_location)
                if standardized_location
                else None
            )
            return _decide(topic, gate, raw, standardized, stored)
        except LeanOpsError as error:
            return TopicPlan(topic, gate, problem=error if gate.open else None)


def _refuse_unknown(topics: Sequence[str], known: Sequence[str]) -> None:
    for topic in topics:
        if topic not in known:
            raise WrongUseError(
                "there is no such topic",
                where=f"topic {topic!r}",
                expected=f"one of {', '.join(known[:20])}{' …' if len(known) > 20 else ''}" if known else None,
                remedy="`lean-ops ingest TOPIC FILE` brings its first data.",
            )


def _is_up_to_date(raw: History, stored: Checkpoint | None) -> bool:
    """The quick answer, from the checkpoint's cache: RAW has not moved and no batch is open."""
    if raw.head is None:
        return True
    return stored is not None and stored.intent is None and stored.last_snapshot_id == raw.head


def _decide(topic: str, gate: Gate, raw: History, standardized: History | None, stored: Checkpoint | None) -> TopicPlan:
    """The batches that lead from the checkpoint (the table's own word) to RAW's head."""
    published = standardized.checkpoint() if standardized else None
    start = published.to_snapshot if published else None
    if raw.head is None or (not gate.open and start == raw.head):
        return TopicPlan(topic, gate)
    if not gate.open:
        return TopicPlan(topic, gate, waiting=raw.records_between(start, raw.head))
    batches: list[PlannedBatch] = []
    begun = open_batch(stored, standardized)
    if begun is not None:
        batches.append(PlannedBatch(begun.batch, _records(raw, begun), resumes=True))
        start = begun.batch.to_snapshot
    if start != raw.head:
        batch = Batch(topic, Zone.STANDARDIZED, start, raw.head, gate.schema_version)
        batches.append(PlannedBatch(batch, raw.records_between(start, raw.head)))
    return TopicPlan(topic, gate, tuple(batches), waiting=sum(planned.records for planned in batches))


def _records(raw: History, begun: Intent) -> int:
    """A published batch knows its records; of another one RAW must still have them."""
    if begun.counts is not None:
        return begun.counts.records_in
    return raw.records_between(begun.batch.from_snapshot, begun.batch.to_snapshot)
