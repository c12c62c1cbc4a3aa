"""Which batch of a topic is begun and not yet booked: by the state store, or, if that was lost, by the table itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from lean_ops.model.batch import Intent
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from lean_ops.lake.snapshots import History
    from lean_ops.state.port import Checkpoint

LAST_BATCH_PROPERTY: Final = "lean-ops.last-batch"


def last_batch_property(intent: Intent) -> dict[str, str]:
    """The published batch with its counts, as a table property of the very commit that publishes it."""
    return {LAST_BATCH_PROPERTY: json.dumps(intent.to_dict())}


def last_batch(table: History) -> Intent | None:
    """The batch that was published last, wherever main is now; None if there is none or its commit did not keep it."""
    text = table.properties.get(LAST_BATCH_PROPERTY)
    try:
        return None if text is None else Intent.from_dict(json.loads(text))
    except (KeyError, TypeError, ValueError) as error:
        raise TerminalError(
            "a table property can't be understood",
            where=f"{table.table}, property {LAST_BATCH_PROPERTY!r}",
            found=text,
            remedy="It was altered by hand: give it the value back that the metadata file before has.",
        ) from error


def published_batch(table: History | None) -> Intent | None:
    """The newest batch on main, with its counts; None if there is none or its commit did not keep them."""
    checkpoint = table.checkpoint() if table else None
    intent = last_batch(table) if table and checkpoint else None
    return intent if intent and checkpoint and intent.batch.batch_id == checkpoint.batch_id else None


def open_batch(stored: Checkpoint | None, table: History | None) -> Intent | None:
    """The batch to finish before another one is begun.

    A stored intent counts if its batch is the next one, or published and still without books; one that an old
    backup of the store brought back does not. A store that knows nothing of a topic that has batches was lost:
    then the newest of them is looked at again, so that no ledger row stays out.
    """
    checkpoint = table.checkpoint() if table else None
    if stored is None or (stored.intent is None and stored.last_snapshot_id is None):
        return published_batch(table)
    if stored.intent is None:
        return None
    batch = stored.intent.batch
    is_next = batch.from_snapshot == (checkpoint.to_snapshot if checkpoint else None)
    is_published = checkpoint is not None and checkpoint.batch_id == batch.batch_id
    return stored.intent if is_next or is_published else None
