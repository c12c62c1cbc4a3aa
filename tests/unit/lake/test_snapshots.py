from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.lake.snapshots import History, RangeError, Snapshot, TableCheckpoint, history_from_json

Row = tuple[str, int]


def snapshot(snapshot_id: int, parent: int | None, operation: str = "append", **summary: Any) -> Snapshot:
    counts = {key.replace("_", "-"): str(value) for key, value in summary.items()}
    return Snapshot(snapshot_id, parent, snapshot_id * 1000, operation, {"operation": operation, **counts})


def history(*snapshots: Snapshot, **branches: int) -> History:
    """A history whose main is the last snapshot given, unless another is named."""
    refs = {"main": snapshots[-1].snapshot_id, **branches} if snapshots else branches
    return History("db.t", {one.snapshot_id: one for one in snapshots}, refs)


def chain(*operations_and_rows: Row) -> History:
    """Snapshots 1, 2, 3, …, each the child of the one before."""
    snapshots, total = [], 0
    for number, (operation, rows) in enumerate(operations_and_rows, start=1):
        total += rows if operation == "append" else 0
        snapshots.append(snapshot(number, number - 1 or None, operation, added_records=rows, total_records=total))
    return history(*snapshots)


def ids(snapshots: tuple[Snapshot, ...]) -> list[int]:
    return [one.snapshot_id for one in snapshots]


APPENDS = chain(("append", 5), ("append", 7), ("append", 11))


def test_a_range_excludes_its_start_and_includes_its_end_newest_first() -> None:
    assert ids(APPENDS.between(1, 3)) == [3, 2]
    assert APPENDS.records_between(1, 3) == 18


def test_a_range_need_not_end_at_the_head() -> None:
    assert ids(APPENDS.between(1, 2)) == [2]
    assert APPENDS.records_between(1, 2) == 7


def test_a_range_from_a_snapshot_to_itself_is_empty() -> None:
    assert APPENDS.between(2, 2) == ()
    assert APPENDS.records_between(2, 2) == 0


def test_the_first_batch_takes_everything_up_to_its_end() -> None:
    assert ids(APPENDS.between(None, 2)) == [2, 1]
    assert APPENDS.records_between(None, 2) == 12


def test_the_first_batch_counts_rows_whose_snapshots_have_expired() -> None:
    kept = history(
        snapshot(8, 7, added_records=2, total_records=100), snapshot(9, 8, added_records=1, total_records=101)
    )
    assert kept.records_between(None, 9) == 101


@pytest.mark.parametrize("start", [4, 99])
def test_a_start_that_is_not_in_the_history_is_refused(start: int) -> None:
    with pytest.raises(RangeError, match=f"start snapshot {start} is no longer in the history.*Bring back"):
        APPENDS.records_between(start, 3)


def test_a_start_after_the_end_is_refused() -> None:
    with pytest.raises(RangeError, match="start snapshot 3"):
        APPENDS.between(3, 2)


def test_a_start_on_another_branch_is_refused() -> None:
    forked = history(snapshot(1, None), snapshot(3, 1), snapshot(2, 1), stage=3)
    with pytest.raises(RangeError, match="start snapshot 3"):
        forked.between(3, 2)


def test_a_chain_with_a_hole_between_start_and_end_is_refused() -> None:
    holed = history(snapshot(1, None), snapshot(3, 2), snapshot(4, 3))
    with pytest.raises(RangeError, match="start snapshot 1"):
        holed.between(1, 4)
    assert ids(holed.between(3, 4)) == [4]


@pytest.mark.parametrize("start", [None, 1])
def test_an_end_that_is_not_in_the_history_is_refused(start: int | None) -> None:
    with pytest.raises(RangeError):
        APPENDS.between(start, 99)


@pytest.mark.parametrize("operation", ["overwrite", "delete", "something new"])
@pytest.mark.parametrize("start", [None, 1])
def test_a_range_that_holds_anything_but_append_and_replace_is_refused(operation: str, start: int | None) -> None:
    broken = chain(("append", 1), ("append", 1), (operation, 0), ("append", 1))
    with pytest.raises(RangeError, match=f"db.t: snapshot 3 is a '{operation}'.*append or replace only"):
        broken.between(start, 4)
    assert ids(broken.between(3, 4)) == [4]
    assert ids(broken.between(start, 2))[0] == 2


def test_a_replace_is_in_the_range_but_brings_no_rows() -> None:
    compacted = chain(("append", 5), ("append", 7), ("replace", 12), ("append", 3))
    assert ids(compacted.between(1, 4)) == [4, 3, 2]
    assert compacted.records_between(1, 4) == 10
    assert compacted.records_between(2, 3) == 0
    assert compacted.records_between(None, 4) == 15


def test_an_append_without_rows_counts_as_none() -> None:
    grown = history(snapshot(1, None, added_records=5, total_records=5), snapshot(2, 1, total_records=5))
    assert grown.records_between(1, 2) == 0


def test_the_checkpoint_is_the_newest_batch_on_main() -> None:
    def batch(number: int, parent: int | None, name: str, end: int) -> Snapshot:
        return snapshot(number, parent, **{"lean_ops.batch_id": name, "lean_ops.to_snapshot": end})

    published = history(
        snapshot(1, None), batch(2, 1, "first", 20), batch(3, 2, "second", 2**62), snapshot(4, 3, "replace")
    )
    assert published.checkpoint() == TableCheckpoint("second", 2**62)
    staged = history(snapshot(1, None), batch(2, 1, "first", 20), batch(3, 2, "staged", 30), main=2, stage=3)
    assert staged.checkpoint() == TableCheckpoint("first", 20)


def test_without_a_published_batch_there_is_no_checkpoint() -> None:
    assert history().checkpoint() is None
    assert history(snapshot(1, None)).checkpoint() is None


@given(
    st.lists(st.tuples(st.sampled_from(["append", "append", "replace", "overwrite"]), st.integers(0, 9)), max_size=8),
    st.data(),
)
def test_a_range_is_read_exactly_when_it_is_whole_and_append_only(steps: list[Row], data: st.DataObject) -> None:
    steps = [("append", 1), *steps]
    table = chain(*steps)
    after = data.draw(st.none() | st.integers(1, len(steps)))
    up_to = data.draw(st.integers(1, len(steps)))
    inside = steps[after or 0 : up_to]
    if (after or 0) > up_to or any(operation == "overwrite" for operation, _ in inside):
        with pytest.raises(RangeError):
            table.between(after, up_to)
    else:
        assert ids(table.between(after, up_to)) == list(range(up_to, after or 0, -1))
        assert table.records_between(after, up_to) == sum(rows for kind, rows in inside if kind == "append")


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.data())
def test_two_neighbouring_ranges_together_hold_what_the_whole_holds(rows: list[int], data: st.DataObject) -> None:
    table = chain(*(("append", count) for count in rows))
    middle = data.draw(st.integers(1, len(rows)))
    whole, first, second = (table.between(*ends) for ends in ((None, len(rows)), (None, middle), (middle, len(rows))))
    assert second + first == whole
    assert table.records_between(None, middle) + table.records_between(middle, len(rows)) == sum(rows)


# metadata files

ENTRY = {
    "snapshot-id": 7,
    "timestamp-ms": 1000,
    "manifest-list": "file:/t/snap.avro",
    "summary": {"operation": "append", "added-records": "3", "total-records": "3"},
}


def test_metadata_as_it_is_written_today() -> None:
    child = {**ENTRY, "snapshot-id": 8, "parent-snapshot-id": 7}
    refs = {"main": {"snapshot-id": 7, "type": "branch"}, "stage": {"snapshot-id": 8, "type": "branch"}}
    read = history_from_json("db.t", {"current-snapshot-id": 7, "snapshots": [ENTRY, child], "refs": refs})
    assert (read.head, read.refs, set(read.snapshots)) == (7, {"main": 7, "stage": 8}, {7, 8})
    assert read.snapshots[8] == Snapshot(8, 7, 1000, "append", ENTRY["summary"])  # type: ignore[arg-type]
    assert read.live_rows == 3


def test_metadata_without_refs_takes_the_current_snapshot_for_main() -> None:
    read = history_from_json("db.t", {"current-snapshot-id": 7, "snapshots": [ENTRY]})
    assert read.head == 7


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"current-snapshot-id": -1, "snapshots": [], "refs": {}},
        {"current-snapshot-id": None, "snapshots": []},
        {"current-snapshot-id": -1, "snapshots": [ENTRY], "refs": {"stage": {"snapshot-id": 7}}},
    ],
    ids=["nothing", "minus one", "null", "a branch only"],
)
def test_metadata_of_a_table_without_a_snapshot_on_main(metadata: dict[str, Any]) -> None:
    read = history_from_json("db.t", metadata)
    assert (read.head, read.live_rows, read.checkpoint()) == (None, 0, None)


@pytest.mark.parametrize("summary", [{}, {"summary": None}], ids=["left out", "null"])
def test_a_snapshot_without_a_summary_is_an_append(summary: dict[str, Any]) -> None:
    bare = {"snapshot-id": 7, "timestamp-ms": 1000, **summary}
    read = history_from_json("db.t", {"current-snapshot-id": 7, "snapshots": [bare]})
    assert read.snapshots[7] == Snapshot(7, None, 1000, "append", {})
    assert ids(read.between(None, 7)) == [7]


@pytest.mark.parametrize("start", [None, 6])
def test_a_snapshot_that_does_not_say_how_many_rows_it_has_is_refused_and_not_taken_for_empty(
    start: int | None,
) -> None:
    bare = {"snapshot-id": 7, "parent-snapshot-id": 6, "timestamp-ms": 1000}
    read = history_from_json(
        "db.t", {"current-snapshot-id": 7, "snapshots": [{**ENTRY, "snapshot-id": 6}, {**bare, "summary": {}}]}
    )
    with pytest.raises(RangeError):
        read.records_between(start, 7)
