from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lean_ops.lake.catalog_file import CatalogFile
from lean_ops.lake.snapshots import RangeError
from lean_ops.model.batch import Batch, Counts, Intent, Zone, pipeline_id
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.model.registry import Gate
from lean_ops.model.tables import Names
from lean_ops.operate.intent import last_batch_property
from lean_ops.operate.plan import HopPlan, PlannedBatch, Planner, RunPlan, TopicPlan
from lean_ops.state.port import Checkpoint

OPEN = Gate(open=True, reason="schema 1.0.0", schema_version="1.0.0")
CURATED_TOO = replace(OPEN, curated=True)
SHUT = Gate(open=False, reason="paused: night")
NAMES = Names("dev_")
RAW, STANDARDIZED, CURATED = NAMES.raw_database, NAMES.standardized_database, NAMES.curated_database
IDLE = HopPlan(Zone.STANDARDIZED)
IDLE_CURATED = HopPlan(Zone.CURATED)


def metadata(*snapshots: dict[str, Any]) -> dict[str, Any]:
    """Table metadata of a chain: each snapshot is its id, rows added, and more of its summary."""
    total, entries = 0, []
    for one in snapshots:
        added = one.get("rows", 0)
        total += added
        counts = {"added-records": str(added), "total-records": str(total)}
        summary = {"operation": "append", **counts, **one.get("summary", {})}
        entries.append({"snapshot-id": one["id"], "timestamp-ms": 0, "summary": summary})
    for parent, child in pairwise(entries):
        child["parent-snapshot-id"] = parent["snapshot-id"]
    return {"snapshots": entries, "current-snapshot-id": entries[-1]["snapshot-id"] if entries else -1}


def published(*ends: int, last: Intent | None = None, rows: int = 0) -> dict[str, Any]:
    """A zone table whose batches ended at the given source snapshots, and then `last`, with its counts.

    Its own snapshots are 900, with nothing in it, then 901 and so on, each of so many rows.
    """
    batches = [{"lean-ops.batch-id": f"batch-{end}", "lean-ops.to-snapshot": str(end)} for end in ends]
    properties: dict[str, str] = {}
    if last is not None:
        ids = {"lean-ops.batch-id": last.batch.batch_id, "lean-ops.to-snapshot": str(last.batch.to_snapshot)}
        batches.append(ids)
        properties = last_batch_property(last)
    snapshots = ({"id": 901 + number, "rows": rows, "summary": batch} for number, batch in enumerate(batches))
    return {**metadata({"id": 900}, *snapshots), "properties": properties}


THREE = metadata({"id": 1, "rows": 5}, {"id": 2, "rows": 7}, {"id": 3, "rows": 11})


class Home:
    """A catalog file with metadata files, gates and checkpoints, written by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        self.gates: dict[str, Gate] = {}
        self.stored: dict[str, Checkpoint] = {}

    def add(self, database: str, table: str, content: Any, location: str | None = None) -> Path:
        file = self.folder / f"{database}.{table}.metadata.json"
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        with closing(sqlite3.connect(self.folder / "catalog.db")) as db, db:
            db.execute("PRAGMA synchronous = OFF")
            db.execute(
                "CREATE TABLE IF NOT EXISTS iceberg_tables"
                " (catalog_name TEXT, table_namespace TEXT, table_name TEXT, metadata_location TEXT, iceberg_type TEXT)"
            )
            row = ("lean_ops", database, table, location or f"file://{file}", "TABLE")
            db.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?)", row)
        return file

    def topic(
        self,
        name: str,
        raw: Any = THREE,
        standardized: Any = None,
        curated: Any = None,
        gate: Gate | None = OPEN,
        **stored: Any,
    ) -> None:
        """A topic's tables, its gate, and what the store has of its Standardized hop."""
        tables = ((RAW, f"{name}_staging", raw), (STANDARDIZED, name, standardized), (CURATED, name, curated))
        for database, table, content in tables:
            if content is not None:
                self.add(database, table, content)
        if gate is not None:
            self.gates[name] = gate
        if stored:
            self.store(Zone.STANDARDIZED, name, **stored)

    def store(self, zone: Zone, topic: str = "events", **stored: Any) -> None:
        key = pipeline_id(zone, topic)
        self.stored[key] = Checkpoint(key, **stored)

    def checkpoint(self, pipeline: str) -> Checkpoint:
        return self.stored.get(pipeline, Checkpoint(pipeline))

    def checkpoints(self) -> dict[str, Checkpoint]:
        return self.stored

    @property
    def planner(self) -> Planner:
        return Planner(CatalogFile(self.folder / "catalog.db", "lean_ops"), NAMES, self, lambda: self.gates)

    def plan(self, *topics: str) -> RunPlan:
        return self.planner.plan(topics)

    def plan_one(self, topic: str = "events") -> TopicPlan:
        [plan] = self.plan(topic).topics
        assert plan.topic == topic
        return plan

    def hop(self) -> HopPlan:
        """The one hop of a topic that ends in Standardized."""
        return only_hop(self.plan_one())

    def both_hops(self) -> tuple[HopPlan, HopPlan]:
        """The hops of a topic that goes on to Curated."""
        first, second = self.plan_one().hops
        assert (first.zone, second.zone) == (Zone.STANDARDIZED, Zone.CURATED)
        return first, second


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home")


def only_hop(plan: TopicPlan) -> HopPlan:
    [hop] = plan.hops
    assert hop.zone is Zone.STANDARDIZED
    return hop


def batch(start: int | None, end: int, version: str = "1.0.0", zone: Zone = Zone.STANDARDIZED) -> Batch:
    return Batch("events", zone, start, end, version)


def curated(start: int | None, end: int, version: str = "1.0.0") -> Batch:
    return batch(start, end, version, Zone.CURATED)


def test_a_home_without_a_catalog_has_nothing_to_plan(home: Home) -> None:
    plan = home.plan()
    assert (plan.topics, plan.work, plan.shut) == ((), (), ())


def test_a_topic_that_was_never_read_is_read_from_the_beginning(home: Home) -> None:
    home.topic("events")
    assert home.hop() == HopPlan(Zone.STANDARDIZED, (PlannedBatch(batch(None, 3), 23),))
    assert home.hop().records == 23
    assert home.plan_one().summary == "to do"


def test_only_what_is_newer_than_the_tables_checkpoint_is_read(home: Home) -> None:
    home.topic("events", standardized=published(1), last_snapshot_id=1)
    assert home.hop().batches == (PlannedBatch(batch(1, 3), 18),)


def test_when_the_state_is_lost_the_plan_starts_from_the_tables_own_checkpoint(home: Home) -> None:
    home.topic("events", standardized=published(1, 2))
    assert home.hop().batches == (PlannedBatch(batch(2, 3), 11),)


@pytest.mark.parametrize("cached", [None, 1])
def test_the_tables_own_checkpoint_is_believed_when_the_cache_says_something_else(
    home: Home, cached: int | None
) -> None:
    home.topic("events", standardized=published(1, 2), last_snapshot_id=cached, failures=1)
    assert home.hop().batches == (PlannedBatch(batch(2, 3), 11),)


@pytest.mark.parametrize("stored", [{"last_snapshot_id": 3}, {}], ids=["cached", "by the table alone"])
def test_nothing_new_means_no_work(home: Home, stored: dict[str, Any]) -> None:
    home.topic("events", standardized=published(2, 3), **stored)
    plan = home.plan()
    assert plan.topics == (TopicPlan("events", OPEN, (IDLE,)),)
    assert plan.topics[0].summary == "nothing new"
    assert (plan.work, plan.shut) == ((), ())


@pytest.mark.parametrize("raw", [None, metadata()], ids=["no RAW table", "an empty one"])
@pytest.mark.parametrize(
    ("gate", "hops"),
    [(OPEN, (IDLE,)), (CURATED_TOO, (IDLE, IDLE_CURATED)), (SHUT, ())],
    ids=["open", "curated", "shut"],
)
def test_a_topic_without_data_has_no_work(home: Home, raw: Any, gate: Gate, hops: tuple[HopPlan, ...]) -> None:
    home.topic("events", raw=raw, gate=gate)
    plan = home.plan()
    assert plan.topics == (TopicPlan("events", gate, hops),)
    assert plan.work == ()


def test_a_shut_gate_lets_nothing_through_and_counts_what_waits(home: Home) -> None:
    home.topic("events", standardized=published(1), gate=SHUT, last_snapshot_id=1)
    home.topic("orders", gate=None)
    home.topic("done", standardized=published(3), gate=SHUT)
    plan = home.plan()
    shut = Gate(open=False, reason="no schema deployed")
    assert plan.shut == (TopicPlan("events", SHUT, waiting=18), TopicPlan("orders", shut, waiting=23))
    assert plan.topics == (TopicPlan("done", SHUT), *plan.shut)
    assert [topic.summary for topic in plan.shut] == ["skipped, paused: night", "skipped, no schema deployed"]
    assert plan.work == ()


def test_a_shut_gate_holds_an_open_batch_back_too(home: Home) -> None:
    intent = Intent(batch(None, 2), (), "2026-02-03T10:00:00+00:00")
    home.topic("events", gate=SHUT, intent=intent)
    assert home.plan().topics == (TopicPlan("events", SHUT, waiting=23),)


def test_an_open_batch_is_finished_first_and_the_rest_follows(home: Home) -> None:
    intent = Intent(batch(1, 2, "0.9.0"), ("/a",), "2026-02-03T10:00:00+00:00")
    home.topic("events", standardized=published(1), last_snapshot_id=1, intent=intent)
    hop = home.hop()
    assert hop.batches == (PlannedBatch(batch(1, 2, "0.9.0"), 7, resumes=True), PlannedBatch(batch(2, 3), 11))
    assert hop.records == 18


def test_an_open_batch_that_reaches_the_head_is_all_there_is_to_do(home: Home) -> None:
    intent = Intent(batch(None, 3), (), "2026-02-03T10:00:00+00:00")
    home.topic("events", intent=intent)
    assert home.hop().batches == (PlannedBatch(batch(None, 3), 23, resumes=True),)


def test_an_open_batch_that_is_published_but_not_booked_is_resumed(home: Home) -> None:
    intent = Intent(batch(1, 3), (), "2026-02-03T10:00:00+00:00")
    done = replace(intent, counts=Counts(records_in=18, inserted=18))
    home.topic("events", standardized=published(1, last=done), last_snapshot_id=1, intent=intent)
    assert home.hop().batches == (PlannedBatch(batch(1, 3), 18, resumes=True),)


def test_when_the_state_is_lost_the_last_published_batch_is_looked_at_again_for_its_books(home: Home) -> None:
    done = Intent(batch(1, 2), (), "2026-02-03T10:00:00+00:00", Counts(records_in=7, inserted=7))
    home.topic("events", standardized=published(1, last=done))
    assert home.hop().batches == (PlannedBatch(batch(1, 2), 7, resumes=True), PlannedBatch(batch(2, 3), 11))


def test_counts_of_another_batch_than_the_newest_are_not_taken_for_its_own(home: Home) -> None:
    older = Intent(batch(None, 1), (), "2026-02-03T10:00:00+00:00", Counts(records_in=5, inserted=5))
    table = published(1, 2)
    home.topic("events", standardized={**table, "properties": last_batch_property(older)})
    assert home.hop().batches == (PlannedBatch(batch(2, 3), 11),)


def test_an_intent_that_an_old_backup_brought_back_is_not_done_again(home: Home) -> None:
    stale = Intent(batch(None, 1), (), "2026-02-03T10:00:00+00:00")
    home.topic("events", standardized=published(1, 2), last_snapshot_id=1, intent=stale)
    assert home.hop().batches == (PlannedBatch(batch(2, 3), 11),)


def test_only_the_topics_asked_for_are_planned(home: Home) -> None:
    for name in ("a", "b", "c"):
        home.topic(name)
    assert [plan.topic for plan in home.plan("c", "a").topics] == ["c", "a"]
    assert [plan.topic for plan in home.plan().topics] == ["a", "b", "c"]


def test_a_topic_named_twice_is_planned_once(home: Home) -> None:
    home.topic("events")
    assert [plan.topic for plan in home.plan("events", "events").topics] == ["events"]


def test_an_unknown_topic_is_wrong_use_that_names_the_known_ones(home: Home) -> None:
    for name in ("events", "orders"):
        home.topic(name)
    with pytest.raises(WrongUseError, match="topic 'evnts': there is no such topic; expected one of events, orders"):
        home.plan("events", "evnts")


def test_an_unknown_topic_in_an_empty_home_is_told_how_to_begin(home: Home) -> None:
    with pytest.raises(WrongUseError, match=r"there is no such topic\. `lean-ops ingest TOPIC FILE`"):
        home.plan("events")


def test_other_tables_of_the_raw_database_are_no_topics(home: Home) -> None:
    home.add(RAW, "dlq_errors", THREE)
    home.add("iceberg_raw_db", "other_environment_staging", THREE)
    assert home.plan().topics == ()


DAMAGED = {
    "not JSON": b'{"snapshots": [',
    "empty": b"",
    "binary": b"\xff\xfe\x00junk",
    "no object": b"[]",
    "null": b"null",
    "snapshots are no list": b'{"snapshots": 3}',
    "a snapshot without an id": b'{"snapshots": [{}], "current-snapshot-id": 1}',
    "a snapshot that is no object": b'{"snapshots": ["x"], "current-snapshot-id": 1}',
    "a count that is no number": json.dumps(metadata({"id": 1, "summary": {"total-records": "many"}})).encode(),
    "a head that is not there": b'{"snapshots": [], "current-snapshot-id": 7}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_metadata_is_a_problem_of_its_own_topic_only(home: Home, content: bytes) -> None:
    home.topic("bad", raw=content)
    home.topic("events")
    bad, events = map(only_hop, home.plan().work)
    assert isinstance(bad.problem, TerminalError)
    assert "iceberg_raw_db.bad_staging" in str(bad.problem)
    assert bad.batches == ()
    assert events.batches == (PlannedBatch(batch(None, 3), 23),)


DAMAGED_ZONE = {
    "not JSON": b"{",
    "no object": b"7",
    "a checkpoint without its end": metadata({"id": 1, "summary": {"lean-ops.batch-id": "b"}}),
    "a checkpoint whose end is no number": metadata(
        {"id": 1, "summary": {"lean-ops.batch-id": "b", "lean-ops.to-snapshot": "x"}}
    ),
}


@pytest.mark.parametrize("content", DAMAGED_ZONE.values(), ids=DAMAGED_ZONE)
def test_damaged_metadata_of_the_zone_is_a_problem_and_not_a_new_beginning(home: Home, content: Any) -> None:
    home.topic("bad", standardized=content)
    home.topic("events")
    bad, events = map(only_hop, home.plan().topics)
    assert isinstance(bad.problem, TerminalError)
    assert bad.batches == ()
    assert len(events.batches) == 1


def test_a_metadata_file_that_is_gone_is_a_problem_of_its_own_topic_only(home: Home) -> None:
    home.add(RAW, "bad_staging", THREE).unlink()
    home.gates["bad"] = OPEN
    home.topic("events")
    bad, events = map(only_hop, home.plan().topics)
    assert bad.problem is not None
    assert bad.problem.what == "its metadata file is missing"
    assert len(events.batches) == 1


def test_a_metadata_file_that_can_not_be_read_is_a_problem_of_its_own_topic_only(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.topic("bad")
    home.topic("events")
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if "bad_staging" in path.name:
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    bad, events = map(only_hop, home.plan().topics)
    assert bad.problem is not None
    assert len(events.batches) == 1


def test_a_damaged_topic_behind_a_shut_gate_is_no_work(home: Home) -> None:
    home.topic("bad", raw=b"{", gate=SHUT)
    assert home.plan().work == ()


def test_a_checkpoint_whose_snapshot_expired_is_a_problem_that_names_the_way_out(home: Home) -> None:
    home.topic("events", raw=metadata({"id": 2}, {"id": 3, "rows": 1}), standardized=published(1))
    problem = home.hop().problem
    assert isinstance(problem, RangeError)
    assert str(problem).startswith("dev_iceberg_raw_db.events_staging: start snapshot 1")
    assert "Rebuild the topic" in str(problem)


def test_a_raw_table_that_somebody_changed_is_a_problem(home: Home) -> None:
    home.topic("events", raw=metadata({"id": 1, "rows": 5}, {"id": 2, "summary": {"operation": "delete"}}))
    assert isinstance(home.hop().problem, RangeError)


def test_a_percent_encoded_location_is_found(home: Home) -> None:
    file = home.folder / f"{RAW}.events_staging.metadata.json"
    home.add(RAW, "events_staging", THREE, location=f"file:{quote(str(file))}")
    home.gates["events"] = OPEN
    assert home.hop().problem is None
    assert home.hop().records == 23


# the hop to Curated


def standardized_with(**summary: str) -> dict[str, Any]:
    """A Standardized table with a batch of 4 rows in snapshot 901, and one more snapshot of the given kind."""
    published_in_901 = {"lean-ops.batch-id": "batch-1", "lean-ops.to-snapshot": "1"}
    return metadata({"id": 900}, {"id": 901, "rows": 4, "summary": published_in_901}, {"id": 902, "summary": summary})


@pytest.mark.parametrize("standardized", [None, published()], ids=["no table", "one without a batch"])
def test_before_anything_is_standardized_the_curated_hop_follows(home: Home, standardized: Any) -> None:
    home.topic("events", standardized=standardized, gate=CURATED_TOO)
    hop, follower = home.both_hops()
    assert hop == HopPlan(Zone.STANDARDIZED, (PlannedBatch(batch(None, 3), 23),))
    assert follower == HopPlan(Zone.CURATED, follows=True)
    assert home.plan_one().work == (hop, follower)


def test_a_standardized_table_without_a_batch_is_nothing_to_curate(home: Home) -> None:
    home.topic("events", raw=None, standardized=published(), curated=published(), gate=CURATED_TOO)
    assert home.both_hops() == (IDLE, IDLE_CURATED)
    assert home.plan().work == ()
    assert home.plan_one().summary == "nothing new"


@pytest.mark.parametrize("table", [None, published()], ids=["no table", "one without a batch"])
def test_standardized_data_that_was_never_curated_is_curated_from_the_beginning(home: Home, table: Any) -> None:
    home.topic("events", standardized=published(2, 3, rows=4), curated=table, gate=CURATED_TOO, last_snapshot_id=3)
    assert home.both_hops()[1] == HopPlan(Zone.CURATED, (PlannedBatch(curated(None, 902), 8),))


@pytest.mark.parametrize("stored", [901, None], ids=["cached", "by the table alone"])
def test_curated_goes_on_from_its_own_tables_checkpoint(home: Home, stored: int | None) -> None:
    home.topic("events", standardized=published(1, 2, 3, rows=4), curated=published(901), gate=CURATED_TOO)
    home.store(Zone.CURATED, last_snapshot_id=stored, failures=1)
    assert home.both_hops()[1].batches == (PlannedBatch(curated(901, 903), 8),)


def test_a_topic_whose_raw_is_done_has_only_its_curated_hop_to_take(home: Home) -> None:
    home.topic("events", standardized=published(3, rows=4), gate=CURATED_TOO, last_snapshot_id=3)
    plan = home.plan_one()
    assert plan.work == (HopPlan(Zone.CURATED, (PlannedBatch(curated(None, 901), 4),)),)
    assert plan.summary == "to do"
    assert home.plan().work == (plan,)


def test_a_curated_hop_may_have_batches_of_its_own_and_follow_too(home: Home) -> None:
    home.topic("events", standardized=published(1, rows=4), gate=CURATED_TOO, last_snapshot_id=1)
    hop, follower = home.both_hops()
    assert hop.batches == (PlannedBatch(batch(1, 3), 18),)
    assert follower == HopPlan(Zone.CURATED, (PlannedBatch(curated(None, 901), 4),), follows=True)
    assert follower.records == 4


@pytest.mark.parametrize("table", [None, published(), b"{"], ids=["no table", "one without a batch", "a damaged one"])
@pytest.mark.parametrize("standardized", [published(1, rows=4), published(3, rows=4)], ids=["behind RAW", "up to date"])
def test_a_topic_whose_schema_ends_in_standardized_has_no_curated_hop(
    home: Home, standardized: Any, table: Any
) -> None:
    home.topic("events", standardized=standardized, curated=table)
    assert home.hop().problem is None


def test_a_shut_gate_has_no_hops_whatever_its_schema_says(home: Home) -> None:
    gate = replace(SHUT, curated=True)
    home.topic("events", standardized=published(1, rows=4), gate=gate)
    assert home.plan().topics == (TopicPlan("events", gate, waiting=18),)


def test_an_open_curated_batch_is_finished_first_and_the_rest_follows(home: Home) -> None:
    intent = Intent(curated(None, 901, "0.9.0"), (), "2026-02-03T10:00:00+00:00")
    home.topic("events", standardized=published(2, 3, rows=4), gate=CURATED_TOO, last_snapshot_id=3)
    home.store(Zone.CURATED, intent=intent)
    assert home.both_hops()[1].batches == (
        PlannedBatch(curated(None, 901, "0.9.0"), 4, resumes=True),
        PlannedBatch(curated(901, 902), 4),
    )


def test_an_open_curated_batch_that_is_published_but_not_booked_is_resumed(home: Home) -> None:
    intent = Intent(curated(None, 901), (), "2026-02-03T10:00:00+00:00")
    done = replace(intent, counts=Counts(records_in=4, inserted=4))
    home.topic("events", standardized=published(3, rows=4), curated=published(last=done), gate=CURATED_TOO)
    home.store(Zone.CURATED, intent=intent)
    assert home.both_hops()[1].batches == (PlannedBatch(curated(None, 901), 4, resumes=True),)


def test_when_the_state_is_lost_the_last_curated_batch_is_looked_at_again_for_its_books(home: Home) -> None:
    done = Intent(curated(None, 901), (), "2026-02-03T10:00:00+00:00", Counts(records_in=4, inserted=4))
    home.topic("events", standardized=published(3, rows=4), curated=published(last=done), gate=CURATED_TOO)
    assert home.both_hops()[1].batches == (PlannedBatch(curated(None, 901), 4, resumes=True),)


def test_a_standardized_table_that_somebody_changed_is_a_problem_of_the_curated_hop_only(home: Home) -> None:
    home.topic("events", standardized=standardized_with(operation="overwrite"), gate=CURATED_TOO)
    hop, follower = home.both_hops()
    assert hop == HopPlan(Zone.STANDARDIZED, (PlannedBatch(batch(1, 3), 18),))
    assert isinstance(follower.problem, RangeError)
    assert str(follower.problem).startswith("dev_iceberg_standardized_db.events: snapshot 902 is a 'overwrite'")
    assert follower.batches == ()


def test_rewritten_standardized_files_bring_no_records_to_curate(home: Home) -> None:
    standardized = standardized_with(operation="replace", **{"added-records": "4", "total-records": "4"})
    home.topic("events", standardized=standardized, curated=published(901), gate=CURATED_TOO, last_snapshot_id=3)
    assert home.both_hops() == (IDLE, HopPlan(Zone.CURATED, (PlannedBatch(curated(901, 902), 0),)))


@pytest.mark.parametrize("content", DAMAGED_ZONE.values(), ids=DAMAGED_ZONE)
def test_damaged_curated_metadata_is_the_curated_hops_problem_and_not_a_new_beginning(home: Home, content: Any) -> None:
    home.topic("events", standardized=published(1, rows=4), curated=content, gate=CURATED_TOO)
    hop, follower = home.both_hops()
    assert hop == HopPlan(Zone.STANDARDIZED, (PlannedBatch(batch(1, 3), 18),))
    assert isinstance(follower.problem, TerminalError)
    assert "dev_iceberg_curated_db.events" in str(follower.problem)
    assert follower.batches == ()


def test_damaged_standardized_metadata_is_a_problem_of_both_hops(home: Home) -> None:
    home.topic("events", standardized=b"{", gate=CURATED_TOO)
    hop, follower = home.both_hops()
    assert isinstance(hop.problem, TerminalError)
    assert isinstance(follower.problem, TerminalError)
    assert (hop.batches, follower.batches, follower.follows) == ((), (), False)


def test_a_damaged_raw_table_does_not_keep_curated_from_what_is_standardized(home: Home) -> None:
    home.topic("events", raw=b"{", standardized=published(1, rows=4), gate=CURATED_TOO)
    hop, follower = home.both_hops()
    assert isinstance(hop.problem, TerminalError)
    assert follower == HopPlan(Zone.CURATED, (PlannedBatch(curated(None, 901), 4),))


@pytest.fixture
def files_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the metadata files that were opened."""
    opened: list[str] = []
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        opened.append(path.name)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    return opened


@pytest.mark.parametrize(
    ("gate", "sources"),
    [(OPEN, [f"{RAW}.events_staging"]), (CURATED_TOO, [f"{RAW}.events_staging", f"{STANDARDIZED}.events"])],
    ids=["standardized", "curated"],
)
def test_when_nothing_is_new_only_the_hops_sources_are_read(
    home: Home, files_read: list[str], gate: Gate, sources: list[str]
) -> None:
    home.topic("events", standardized=published(3), curated=published(901), gate=gate, last_snapshot_id=3)
    home.store(Zone.CURATED, last_snapshot_id=901)
    assert home.plan().work == ()
    assert files_read == [f"{source}.metadata.json" for source in sources]


def test_a_hop_that_follows_is_planned_as_things_stand_once_the_one_before_it_is_done(home: Home) -> None:
    home.topic("events", gate=CURATED_TOO)
    assert home.both_hops()[1] == HopPlan(Zone.CURATED, follows=True)
    home.add(STANDARDIZED, "events", published(3, rows=4))
    newer = replace(CURATED_TOO, schema_version="1.1.0")
    assert home.planner.plan_hop("events", Zone.CURATED, newer) == HopPlan(
        Zone.CURATED, (PlannedBatch(curated(None, 901, "1.1.0"), 4),)
    )


def test_a_hop_that_follows_is_told_of_an_open_batch_and_of_what_is_wrong(home: Home) -> None:
    home.topic("events", standardized=published(3, rows=4), gate=CURATED_TOO)
    home.store(Zone.CURATED, intent=Intent(curated(None, 901, "0.9.0"), (), "2026-02-03T10:00:00+00:00"))
    resumed = PlannedBatch(curated(None, 901, "0.9.0"), 4, resumes=True)
    assert home.planner.plan_hop("events", Zone.CURATED, CURATED_TOO) == HopPlan(Zone.CURATED, (resumed,))
    home.add(CURATED, "events", b"{")
    assert isinstance(home.planner.plan_hop("events", Zone.CURATED, CURATED_TOO).problem, TerminalError)
