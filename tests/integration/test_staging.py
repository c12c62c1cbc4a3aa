"""Stage, balance, publish on real tables."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.types import StringType

from lean_ops.lake.catalog import Lake
from lean_ops.lake.local_files import local_path
from lean_ops.lake.snapshots import TableCheckpoint, history_of
from lean_ops.lake.staging import (
    MainMovedError,
    Stage,
    append_nothing,
    commit_properties,
    count_staged,
    open_stage,
    publish,
)
from lean_ops.model.batch import Batch, Counts, Intent, Zone
from lean_ops.model.errors import LeanOpsError, TransientError
from lean_ops.model.registry import Gate
from lean_ops.operate.batch import BatchRunner
from lean_ops.operate.plan import PlannedBatch
from lean_ops.settings import load_settings
from lean_ops.state.port import Lease
from lean_ops.state.sqlite import SqliteStateStore

NOW = datetime(2026, 2, 3, 10, tzinfo=UTC)
BATCH = Batch("events", Zone.STANDARDIZED, None, 100, "1.0.0")
NEXT = Batch("events", Zone.STANDARDIZED, 100, 200, "1.0.0")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(load_settings({"home": tmp_path / "home"}, environ={}).settings)
    lake.ensure_standardized("events")
    yield lake
    lake.catalog.close()


def events(lake: Lake) -> Table:
    return lake.load(lake.names.standardized("events"))


def rows(lake: Lake, count: int, prefix: str = "m") -> pa.Table:
    messages = [
        {"topic_name": "events", "message_id": f"{prefix}{number}", "publish_time": NOW} for number in range(count)
    ]
    return pa.Table.from_pylist(messages, schema=events(lake).schema().as_arrow())


def begin(lake: Lake, batch: Batch = BATCH) -> Stage:
    return open_stage(lake, lake.names.standardized("events"), batch)


def write(lake: Lake, stage: Stage, count: int, batch: Batch = BATCH, prefix: str = "m") -> None:
    events(lake).append(rows(lake, count, prefix), snapshot_properties=commit_properties(batch), branch=stage.branch)


def publish_now(lake: Lake, stage: Stage, properties: dict[str, str]) -> int:
    """Publish whatever the branch holds at this moment; its snapshot."""
    head = count_staged(lake, stage).head
    publish(lake, stage, head, properties)
    return head


def message_ids(lake: Lake) -> list[str]:
    return sorted(events(lake).scan(selected_fields=("message_id",)).to_arrow()["message_id"].to_pylist())


def state_of(lake: Lake) -> tuple[Any, ...]:
    """All that a commit could change."""
    table = events(lake)
    refs = {name: ref.snapshot_id for name, ref in table.refs().items()}
    return table.metadata_location, refs, table.properties


def metadata_files(table: Table) -> tuple[set[Path], set[Path]]:
    """The metadata files on disk, and those that the table names."""
    named = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    return set((local_path(table.location()) / "metadata").glob("*.metadata.json")), set(map(local_path, named))


def test_batch_after_batch_leaves_no_metadata_file_that_the_table_does_not_name(lake: Lake) -> None:
    for number in range(9):
        batch = Batch("events", Zone.STANDARDIZED, number or None, number + 1, "1.0.0")
        stage = begin(lake, batch)
        write(lake, stage, 1, batch, f"{number}-")
        publish_now(lake, stage, {})
    on_disk, named = metadata_files(events(lake))
    assert on_disk == named
    assert len(named) == 21  # of twenty-eight
    assert len(message_ids(lake)) == 9


def test_a_metadata_file_that_somebody_else_has_deleted_is_no_matter(lake: Lake) -> None:
    for number in range(9):
        for old in sorted(metadata_files(events(lake))[0])[:-2]:
            old.unlink()
        batch = Batch("events", Zone.STANDARDIZED, number or None, number + 1, "1.0.0")
        stage = begin(lake, batch)
        write(lake, stage, 1, batch, f"{number}-")
        publish_now(lake, stage, {})
    assert len(message_ids(lake)) == 9


def test_nobody_sees_staged_rows_before_they_are_published(lake: Lake) -> None:
    stage = begin(lake)
    write(lake, stage, 3)
    assert message_ids(lake) == []
    staged = events(lake).refs()[stage.branch].snapshot_id
    assert publish_now(lake, stage, {}) == staged
    assert message_ids(lake) == ["m0", "m1", "m2"]
    history = history_of(events(lake))
    assert history.refs == {"main": staged}
    assert history.checkpoint() == TableCheckpoint(BATCH.batch_id, 100)


def test_the_next_batch_starts_where_the_last_one_ended(lake: Lake) -> None:
    for batch, count, prefix in ((BATCH, 3, "a"), (NEXT, 2, "b")):
        stage = begin(lake, batch)
        write(lake, stage, count, batch, prefix)
        publish_now(lake, stage, {})
    assert message_ids(lake) == ["a0", "a1", "a2", "b0", "b1"]
    history = history_of(events(lake))
    assert history.checkpoint() == TableCheckpoint(NEXT.batch_id, 200)
    assert history.records_between(stage.base, history.head or 0) == 2


def test_a_batch_without_rows_moves_the_checkpoint_all_the_same(lake: Lake) -> None:
    stage = begin(lake)
    append_nothing(lake, stage, BATCH)
    assert count_staged(lake, stage).rows == 0
    assert history_of(events(lake)).checkpoint() is None
    publish_now(lake, stage, {})
    assert history_of(events(lake)).checkpoint() == TableCheckpoint(BATCH.batch_id, 100)
    assert message_ids(lake) == []


def test_branches_that_crashed_runs_left_behind_go_and_others_stay(lake: Lake) -> None:
    table = events(lake)
    head = table.current_snapshot()
    assert head is not None
    foreign = table.manage_snapshots().create_branch(head.snapshot_id, "somebodys")
    foreign.create_branch(head.snapshot_id, "lean_ops_stage_old").create_tag(head.snapshot_id, "kept").commit()
    write(lake, begin(lake, NEXT), 2, NEXT)
    stage = begin(lake)
    assert set(events(lake).refs()) == {"main", "somebodys", "kept", stage.branch}
    assert count_staged(lake, stage).rows == 0


def test_a_second_try_of_a_batch_starts_with_an_empty_branch(lake: Lake) -> None:
    write(lake, begin(lake), 3, prefix="lost")
    stage = begin(lake)
    write(lake, stage, 2)
    assert count_staged(lake, stage).rows == 2
    publish_now(lake, stage, {})
    assert message_ids(lake) == ["m0", "m1"]


def test_a_table_that_has_no_snapshot_yet_can_not_be_branched(lake: Lake) -> None:
    lake.ensure_raw("events")
    with pytest.raises(TransientError, match="no snapshot to branch from"):
        open_stage(lake, lake.names.raw("events"), BATCH)


def test_staged_rows_are_those_of_all_commits_on_the_branch_and_no_others(lake: Lake) -> None:
    events(lake).append(rows(lake, 7))
    stage = begin(lake)
    assert count_staged(lake, stage).rows == 0
    write(lake, stage, 3)
    write(lake, stage, 2)
    events(lake).append(rows(lake, 11))
    assert count_staged(lake, stage).rows == 5


def test_when_main_has_moved_nothing_is_published_and_nothing_changes(lake: Lake) -> None:
    stage = begin(lake)
    write(lake, stage, 3)
    events(lake).append(rows(lake, 1, "other"))
    before = state_of(lake)
    with pytest.raises(MainMovedError, match=r"written meanwhile; found main is at.*Nothing was published"):
        publish_now(lake, stage, {"key": "value"})
    assert state_of(lake) == before
    assert message_ids(lake) == ["other0"]


def test_a_batch_is_published_once(lake: Lake) -> None:
    stage = begin(lake)
    write(lake, stage, 3)
    publish_now(lake, stage, {})
    before = state_of(lake)
    with pytest.raises(MainMovedError):
        publish_now(lake, stage, {})
    assert state_of(lake) == before


def test_a_runner_whose_branch_was_dropped_by_its_successor_can_not_publish(lake: Lake) -> None:
    slow = begin(lake)
    write(lake, slow, 3, prefix="slow")
    quick = begin(lake, NEXT)
    before = state_of(lake)
    with pytest.raises(MainMovedError):
        publish_now(lake, slow, {})
    assert state_of(lake) == before
    write(lake, quick, 2, NEXT, "quick")
    publish_now(lake, quick, {})
    assert message_ids(lake) == ["quick0", "quick1"]


def test_of_many_publishers_exactly_one_wins(lake: Lake) -> None:
    stage, start = begin(lake), Barrier(6)
    write(lake, stage, 3)
    staged = events(lake).refs()[stage.branch].snapshot_id

    def attempt(_: int) -> int | None:
        start.wait(30)
        try:
            return publish_now(lake, stage, {})
        except MainMovedError:
            return None

    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(attempt, range(6)))
    assert sorted(outcomes, key=str) == [staged] + [None] * 5
    assert message_ids(lake) == ["m0", "m1", "m2"]


def test_table_properties_are_set_in_the_commit_that_publishes(lake: Lake) -> None:
    stage = begin(lake)
    write(lake, stage, 1)
    before = events(lake)
    publish_now(lake, stage, {"lean-ops.column-kinds": '{"/a": {"string": 1}}'})
    after = events(lake)
    assert after.properties == {**before.properties, "lean-ops.column-kinds": '{"/a": {"string": 1}}'}
    assert after.metadata.metadata_log[-1].metadata_file == before.metadata_location


def test_a_schema_change_between_staging_and_publishing_does_not_stop_it(lake: Lake) -> None:
    stage = begin(lake)
    write(lake, stage, 2)
    with events(lake).update_schema() as update:
        update.add_column("added_meanwhile", StringType())
    publish_now(lake, stage, {})
    assert message_ids(lake) == ["m0", "m1"]
    assert "added_meanwhile" in events(lake).schema().column_names


def test_a_commit_that_loses_against_another_is_tried_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begin(lake)
    write(lake, stage, 2)
    commit, lost = lake.catalog.commit_table, iter([True, True, False])

    def commit_table(*arguments: Any) -> Any:
        if next(lost):
            raise CommitFailedException("somebody was faster")
        return commit(*arguments)

    monkeypatch.setattr(lake.catalog, "commit_table", commit_table)
    publish_now(lake, stage, {})
    assert message_ids(lake) == ["m0", "m1"]


def test_commits_that_lose_without_end_are_given_up(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begin(lake)
    write(lake, stage, 2)
    before = state_of(lake)

    def commit_table(*_: Any) -> Any:
        raise CommitFailedException("somebody was faster")

    monkeypatch.setattr(lake.catalog, "commit_table", commit_table)
    with pytest.raises(TransientError, match="commits in a row lost; found somebody was faster"):
        publish_now(lake, stage, {})
    assert state_of(lake) == before


def test_a_stage_that_nobody_wrote_to_is_not_published(lake: Lake) -> None:
    """Main would stay where it is, without the batch's checkpoint, and the batch would count as done."""
    stage = begin(lake)
    before = state_of(lake)
    with pytest.raises(LeanOpsError):
        publish_now(lake, stage, {})
    assert state_of(lake) == before


# what was counted is what is published


class NoBooks:
    """Operational tables that nobody reads."""

    def append_once(self, *_: Any) -> None: ...

    def raise_alert(self, *_: Any) -> None: ...


class StagesThreeRows:
    """A hop whose batch is three rows."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    def stage(self, intent: Intent, *_: Any) -> Any:
        stage = begin(self.lake, intent.batch)
        write(self.lake, stage, 3, intent.batch)
        staged = count_staged(self.lake, stage)
        counts = Counts(records_in=3, inserted=staged.rows)
        return SimpleNamespace(
            stage=stage, head=staged.head, counts=counts, last_ingestion_ts=None, table_properties={}
        )


def test_rows_that_reach_the_branch_after_it_was_counted_are_never_published(lake: Lake, tmp_path: Path) -> None:
    """A runner that lost its lease may still have a write under way; its successor's branch has the same name."""

    def late_write(_: Batch, step: str) -> None:
        if step == "balanced":
            [branch] = [name for name in events(lake).refs() if name != "main"]
            events(lake).append(rows(lake, 3, "late"), snapshot_properties=commit_properties(BATCH), branch=branch)

    state = SqliteStateStore(tmp_path / "state.db", 300, lambda _: False)
    lease = state.acquire("events", "ann", NOW)
    assert isinstance(lease, Lease)
    hop: Any = StagesThreeRows(lake)
    books: Any = NoBooks()
    runner = BatchRunner(lake, books, state, {BATCH.zone: hop}, lambda: NOW, late_write)
    try:
        counts = runner.run(PlannedBatch(BATCH, 3), runner.standing(BATCH), Gate(open=True, reason=""), lease, "run")
    except LeanOpsError:
        assert message_ids(lake) == []
    else:
        assert counts.inserted == len(message_ids(lake)) == 3
