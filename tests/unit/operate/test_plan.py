from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.unit.operate.planned_home import (
    CURATED_TOO,
    DAMAGED_ZONE,
    IDLE,
    IDLE_CURATED,
    OPEN,
    RAW,
    SHUT,
    THREE,
    Home,
    batch,
    metadata,
    only_hop,
    published,
)

from lean_ops.lake.snapshots import RangeError
from lean_ops.model.batch import Counts, Intent, Zone
from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.model.registry import Gate
from lean_ops.operate.intent import last_batch_property
from lean_ops.operate.plan import HopPlan, PlannedBatch, TopicPlan
from lean_ops.operate.untouched import TouchedError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home")


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
    assert "Bring back the metadata file" in str(problem)


def test_a_raw_table_that_somebody_changed_is_a_problem(home: Home) -> None:
    home.topic("events", raw=metadata({"id": 1, "rows": 5}, {"id": 2, "summary": {"operation": "delete"}}))
    assert isinstance(home.hop().problem, RangeError)


def test_a_percent_encoded_location_is_found(home: Home) -> None:
    file = home.folder / f"{RAW}.events_staging.metadata.json"
    home.add(RAW, "events_staging", THREE, location=f"file:{quote(str(file))}")
    home.gates["events"] = OPEN
    assert home.hop().problem is None
    assert home.hop().records == 23


def test_a_table_that_somebody_wrote_to_is_a_problem_that_says_where_main_belongs(home: Home) -> None:
    stranger = {"id": 902, "rows": 1}
    batch_1 = {"lean-ops.batch-id": "batch-1", "lean-ops.to-snapshot": "1"}
    home.topic("events", standardized=metadata({"id": 900}, {"id": 901, "summary": batch_1}, stranger))
    problem = home.hop().problem
    assert isinstance(problem, TouchedError)
    assert "found snapshot 902 (append), which no batch made" in str(problem)
    assert "Move main back to snapshot 901" in str(problem)


def test_files_that_somebody_rewrote_are_no_problem(home: Home) -> None:
    batch_1 = {"lean-ops.batch-id": "batch-1", "lean-ops.to-snapshot": "1"}
    rewritten = {"id": 902, "summary": {"operation": "replace"}}
    home.topic("events", standardized=metadata({"id": 900}, {"id": 901, "summary": batch_1}, rewritten))
    assert home.hop().batches == (PlannedBatch(batch(1, 3), 18),)


def test_a_main_that_was_moved_back_is_a_problem_that_says_where_it_belongs(home: Home) -> None:
    last = Intent(batch(1, 2), (), "2026-02-03T10:00:00+00:00", Counts(records_in=7, inserted=7))
    home.topic("events", standardized={**published(1, last=last), "current-snapshot-id": 901})
    problem = home.hop().problem
    assert isinstance(problem, TouchedError)
    assert str(problem).startswith(
        "dev_iceberg_standardized_db.events: main was moved by hand; found main at snapshot 901"
    )
    assert "Move main to snapshot 902 again" in str(problem)


@pytest.mark.parametrize(("table", "found"), [(published(), "no batch at all"), (published(1), "up to snapshot 1 of")])
def test_a_table_that_lacks_batches_which_the_store_knows_of_is_a_problem(home: Home, table: Any, found: str) -> None:
    home.topic("events", standardized=table, last_snapshot_id=2)
    problem = home.hop().problem
    assert isinstance(problem, TouchedError)
    assert found in str(problem)
    assert "expected batches up to snapshot 2" in str(problem)


@pytest.mark.parametrize("gone", ["raw", "standardized"])
def test_a_table_that_had_batches_and_is_gone_is_a_problem_even_if_nothing_is_new(home: Home, gone: str) -> None:
    home.topic("events", **{"standardized": published(3), gone: None}, last_snapshot_id=3)
    problem = home.hop().problem
    assert isinstance(problem, TouchedError)
    assert "the table is gone from the catalog" in str(problem)
    assert "register its newest metadata file again" in str(problem)


def test_a_batch_that_a_table_keeps_in_words_nobody_understands_is_a_problem(home: Home) -> None:
    home.topic("events", standardized={**published(1), "properties": {"lean-ops.last-batch": "{"}})
    assert "property 'lean-ops.last-batch': a table property can't be understood" in str(home.hop().problem)
