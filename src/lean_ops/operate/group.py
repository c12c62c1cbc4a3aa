"""A group of topics as the state machine asks for it: their gates, and by snapshots alone whether anything is new.

Only what concerns the group is looked up, so that thirty groups at a time don't each list all tables of the lake.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lean_ops.govern.gate import gate_of
from lean_ops.lake.reader import by_topic
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.model.errors import LeanOpsError
from lean_ops.model.registry import NO_SCHEMA
from lean_ops.operate.plan import Planner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from lean_ops.lake.reader import CatalogReader, OutlineReader
    from lean_ops.lake.snapshots import History
    from lean_ops.model.registry import Gate
    from lean_ops.model.tables import Names, TableName
    from lean_ops.operate.plan import HopPlan, RunPlan, TopicPlan
    from lean_ops.state.port import Checkpoint, CheckpointReader, StateStore

_AT_A_TIME: Final = 16
_PROBLEM_LENGTH: Final = 300  # an answer of the state machine has 256 KiB, for a group of up to 200 topics
_HOPS: Final = (Zone.STANDARDIZED, Zone.CURATED)
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def _all_at_once(look_up: Callable[[_Key], _Value], keys: Iterable[_Key]) -> dict[_Key, _Value]:
    """What each key leads to; asked for side by side, because each answer comes over the network."""
    wanted = list(keys)
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return dict(zip(wanted, pool.map(look_up, wanted), strict=True))


@dataclass(frozen=True, slots=True)
class SomeTables:
    """A catalog that shows certain tables only, each looked up by its name, or already `located`."""

    catalog: CatalogReader
    tables: Collection[TableName]
    located: Mapping[TableName, str | None] | None = None

    @property
    def outlines(self) -> OutlineReader:
        """The tables in short."""
        return self.catalog.outlines

    def locations(self, database: str) -> dict[str, str]:
        """Metadata locations of those tables of a database that are there, by table name."""
        names = [name for name in self.tables if name.database == database]
        found = _all_at_once(self.location, names)
        return {name.table: location for name, location in found.items() if location is not None}

    def location(self, name: TableName) -> str | None:
        """A table's metadata location; None if there is no such table."""
        if name not in self.tables:
            return None
        return self.catalog.location(name) if self.located is None else self.located.get(name)

    def looked_up(self) -> SomeTables:
        """The same tables where they are now, with the metadata of those that batches read fetched side by side."""
        located = _all_at_once(self.catalog.location, self.tables)

        def fetch(name: TableName) -> None:
            location = located[name]
            with suppress(LeanOpsError):  # whoever reads it is told then
                _ = self.outlines.outline(str(name), location) if location else None

        _all_at_once(fetch, located)
        return SomeTables(self.catalog, self.tables, located)

    def raw_locations(self, names: Names) -> dict[str, str]:
        """Metadata locations of the RAW tables, by topic."""
        return by_topic(self.locations(names.raw_database))

    def has_view(self, name: TableName) -> bool:
        """Whether there is a view of that name."""
        return self.catalog.has_view(name)

    def history(self, name: TableName) -> History | None:
        """A table's history; None if there is no such table."""
        return self.catalog.history(name) if name in self.tables else None

    def read_history(self, table: str, location: str) -> History:
        """The history in a metadata file."""
        return self.catalog.read_history(table, location)


def tables_of_topics(names: Names, topics: Collection[str]) -> frozenset[TableName]:
    """The zone tables of some topics."""
    return frozenset(names.of_zone(zone, topic) for topic in topics for zone in Zone)


@dataclass(frozen=True, slots=True)
class _Checkpoints:
    """The checkpoints of some topics."""

    store: CheckpointReader
    topics: Sequence[str]

    def checkpoint(self, pipeline: str) -> Checkpoint:
        """A hop's checkpoint."""
        return self.store.checkpoint(pipeline)

    def checkpoints(self) -> dict[str, Checkpoint]:
        """Those of the group, by pipeline id."""
        return _all_at_once(
            self.store.checkpoint, [pipeline_id(zone, topic) for topic in self.topics for zone in _HOPS]
        )


def plan_group(catalog: CatalogReader, names: Names, state: StateStore, topics: Sequence[str]) -> RunPlan:
    """What a run of these topics would do; one that nobody knows has a shut gate and stops nobody."""

    def gates() -> dict[str, Gate]:
        items = _all_at_once(state.item, topics)
        return {topic: gate_of(item) if item else NO_SCHEMA for topic, item in items.items()}

    tables = SomeTables(catalog, tables_of_topics(names, topics)).looked_up()
    return Planner(tables, names, _Checkpoints(state, topics), gates).plan(topics)


# the plan for a machine


def group_document(plan: RunPlan) -> dict[str, Any]:
    """The plan as the state machine's choices read it; each list holds topics."""
    open_topics = [topic for topic in plan.topics if topic.gate.open]
    standardize = [topic.topic for topic in open_topics if _has_work(topic, Zone.STANDARDIZED)]
    curate = [topic.topic for topic in open_topics if _has_work(topic, Zone.CURATED)]
    return {
        "topics": [_topic_document(topic) for topic in plan.topics],
        "open": [topic.topic for topic in open_topics],
        "shut": [topic.topic for topic in plan.topics if not topic.gate.open],
        "standardize": standardize,
        "curate": curate,
        "gate_open": bool(open_topics),
        "has_work": bool(standardize or curate),
        "curated_ready": bool(curate),
    }


def _has_work(topic: TopicPlan, zone: Zone) -> bool:
    return any(hop.zone is zone for hop in topic.work)


def _topic_document(topic: TopicPlan) -> dict[str, Any]:
    hops = {hop.zone: hop for hop in topic.hops}
    return {
        "topic": topic.topic,
        "gate": "OPEN" if topic.gate.open else "SHUT",
        "reason": topic.gate.reason[:_PROBLEM_LENGTH],
        "schema_version": topic.gate.schema_version or None,
        "is_curated": topic.gate.curated,
        "waiting": topic.waiting,
        "standardized": _hop_document(hops.get(Zone.STANDARDIZED)),
        "curated": _hop_document(hops.get(Zone.CURATED)),
    }


def _hop_document(hop: HopPlan | None) -> dict[str, Any]:
    """A hop that `follows` gets its last batch from the one before it, so its records are not all known yet."""
    if hop is None:
        return {"pending": False, "follows": False, "batches": 0, "records": 0, "problem": None}
    problem = str(hop.problem)[:_PROBLEM_LENGTH] if hop.problem else None
    return {
        "pending": hop.has_work,
        "follows": hop.follows,
        "batches": len(hop.batches),
        "records": hop.records,
        "problem": problem,
    }
