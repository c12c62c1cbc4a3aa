"""A batch's line in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from datetime import datetime

    from lean_ops.model.batch import Batch, Counts, Zone


class UnbalancedError(TerminalError):
    """Records without a fate, or with more than one: the batch must not be seen."""

    alert_kind = "UNBALANCED"

    def __init__(self, batch: Batch, counts: Counts, seen: str) -> None:
        self.counts = counts
        super().__init__(
            "the batch does not balance and was not published",
            where=f"topic {batch.topic!r}, zone {batch.zone}, batch {batch.batch_id}",
            found=(
                f"{counts.records_in} records in, {counts.records_out} out, {counts.duplicates} duplicates,"
                f" {counts.superseded} superseded, {counts.errors} errors; {seen}"
            ),
            expected="in = out + duplicates + superseded + errors, and every count confirmed by its witness",
            remedy="The tables are as they were; `lean-ops history` shows the attempts.",
        )


def ledger_row(
    topic: str, zone: Zone, batch_id: str, snapshots: tuple[int | None, int], counts: Counts, now: datetime
) -> dict[str, Any]:
    """The row of reconciliation_log; `snapshots` are where the batch began (exclusive) and ended."""
    from_snapshot, to_snapshot = snapshots
    return {
        "topic_name": topic,
        "zone": str(zone),
        "kind": "BATCH",
        "batch_id": batch_id,
        "from_snapshot": None if from_snapshot is None else str(from_snapshot),
        "to_snapshot": str(to_snapshot),
        "records_in": counts.records_in,
        "records_out": counts.records_out,
        "inserted": counts.inserted,
        "updated": counts.updated,
        "duplicates": counts.duplicates,
        "superseded": counts.superseded,
        "errors": counts.errors,
        "variance": counts.variance,
        "balanced": counts.balanced,
        "recorded_at": now,
    }
