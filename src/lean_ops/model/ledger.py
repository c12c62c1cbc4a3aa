"""A batch's line in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from lean_ops.model.batch import Counts, Zone


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
