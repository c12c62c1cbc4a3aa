"""Planning the hop to Curated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.operate.planned_home import (
    CURATED,
    CURATED_TOO,
    DAMAGED_ZONE,
    IDLE,
    IDLE_CURATED,
    OPEN,
    RAW,
    SHUT,
    STANDARDIZED,
    Home,
    batch,
    curated,
    metadata,
    published,
)

from lean_ops.model.batch import Counts, Intent, Zone
from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import Gate
from lean_ops.operate.plan import HopPlan, PlannedBatch, TopicPlan
from lean_ops.operate.untouched import TouchedError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a home")


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


def test_a_standardized_table_that_somebody_changed_is_a_problem_of_both_hops(home: Home) -> None:
    home.topic("events", standardized=standardized_with(operation="overwrite"), gate=CURATED_TOO)
    for hop in home.both_hops():
        assert isinstance(hop.problem, TouchedError)
        assert "found snapshot 902 (overwrite), which no batch made" in str(hop.problem)
        assert "Move main back to snapshot 901" in str(hop.problem)
        assert hop.batches == ()


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
