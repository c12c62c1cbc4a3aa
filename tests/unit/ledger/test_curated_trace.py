from __future__ import annotations

import pytest

from lean_ops.lake.snapshots import History, Snapshot
from lean_ops.ledger import curated_trace
from lean_ops.ledger.curated_fates import BatchEnd
from lean_ops.ledger.curated_trace import batch_ends
from lean_ops.ledger.fates import StandardizedRow
from lean_ops.ledger.finding import snapshot_order


def history(*snapshots: tuple[int, str, str | None], **summary: int) -> History:
    """A chain of (id, operation, batch); batch "b7" has read up to snapshot 7. The summary is the oldest one's."""
    chain: dict[int, Snapshot] = {}
    for snapshot_id, operation, batch in snapshots:
        words = {"lean-ops.batch-id": batch, "lean-ops.to-snapshot": batch[1:]} if batch else {}
        words |= {} if chain else {name.replace("_", "-"): str(value) for name, value in summary.items()}
        chain[snapshot_id] = Snapshot(snapshot_id, max(chain, default=None), 0, operation, words)
    return History("t", chain, {"main": max(chain)})


CARRIED = history(
    (1, "append", None), (2, "overwrite", "b7"), (3, "append", "b7"), (4, "overwrite", "b8"), (5, "replace", "b8")
)


def test_a_batch_ends_with_the_newest_snapshot_that_has_its_id() -> None:
    assert batch_ends(CARRIED) == [BatchEnd("b7", 3, 7), BatchEnd("b8", 5, 8)]


@pytest.mark.parametrize(
    ("summary", "empty"),
    [
        ({"total_records": 0}, True),
        ({"total_records": 5, "added_records": 5}, True),
        ({"total_records": 5, "added_records": 3}, False),
        ({"total_records": 2, "deleted_records": 3}, False),
        ({"total_records": 4, "added_records": 4, "deleted_records": 4}, False),
        ({"added_records": 0}, False),  # a summary that leaves the total out says nothing
    ],
)
def test_what_the_oldest_snapshot_added_says_whether_the_table_had_rows_before_it(
    summary: dict[str, int], empty: bool
) -> None:
    assert curated_trace._began_empty(history((5, "append", None), **summary)) is empty


@pytest.mark.parametrize(
    ("batch", "file_snapshot", "place"),
    [
        ("b7", 5, 1),  # maintenance rewrote the file: the batch says when the row came
        ("b8", 4, 3),
        ("replayed", 3, 2),
        ("expired", 5, -1),
        ("expired", 99, -1),
        (None, None, -1),
    ],
)
def test_a_standardized_row_came_with_its_batchs_first_snapshot(
    batch: str | None, file_snapshot: int | None, place: int
) -> None:
    begins = curated_trace._batch_begins(CARRIED)
    row = StandardizedRow("t", "m", None, "k", 1, file_snapshot, batch)  # type: ignore[arg-type]
    assert curated_trace._place(row, CARRIED, snapshot_order(CARRIED), begins) == place


@pytest.mark.parametrize(
    ("batch", "file_snapshot", "writer"), [("b7", 3, 3), ("b7", 4, 2), ("b8", 5, 4), ("expired", 5, 5), (None, 5, 5)]
)
def test_a_curated_row_was_written_by_its_own_batch_whoever_took_it_over(
    batch: str | None, file_snapshot: int, writer: int
) -> None:
    assert curated_trace._writer(file_snapshot, batch, CARRIED, curated_trace._batch_begins(CARRIED)) == writer
