"""All checkpoints, or those of the topics that the event names: `{"topics": ["events"]}`.

Snapshot ids are answered as text: a state machine reads numbers as floating point and would change them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from lean_ops.entrypoints.lambdas.asked import answered, state, topics_or_all
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.state.port import Checkpoint

SERVICE: Final = "get-all-checkpoints"
_HOPS: Final = (Zone.STANDARDIZED, Zone.CURATED)
_MOST_TOPICS: Final = 10_000


def handler(event: Any, _: object) -> dict[str, Any]:
    """The function's entry."""

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        topics = topics_or_all(event, _MOST_TOPICS)
        found = _of_topics(topics) if topics else state().checkpoints().values()
        rows = [_document(each) for each in sorted(found, key=lambda each: each.pipeline_id)]
        return {"checkpoints": rows, "count": len(rows)}, {"count": len(rows), "asked_for": len(topics) or "all"}

    return answered(SERVICE, work)


def _of_topics(topics: list[str]) -> Iterable[Checkpoint]:
    """Those of the topics' hops that ever ran; few are asked for one by one, of many all are read."""
    wanted = {pipeline_id(zone, topic) for topic in topics for zone in _HOPS}
    if len(topics) > 50:
        return [each for name, each in state().checkpoints().items() if name in wanted]
    return [each for name in sorted(wanted) if (each := state().checkpoint(name)) != Checkpoint(name)]


def _document(checkpoint: Checkpoint) -> dict[str, Any]:
    snapshot, intent = checkpoint.last_snapshot_id, checkpoint.intent
    return {
        "pipeline_id": checkpoint.pipeline_id,
        "last_snapshot_id": None if snapshot is None else str(snapshot),
        "last_ingestion_ts": checkpoint.last_ingestion_ts,
        "open_batch": intent.batch.batch_id if intent else None,
        "failures": checkpoint.failures,
        "updated_at": checkpoint.updated_at,
    }
