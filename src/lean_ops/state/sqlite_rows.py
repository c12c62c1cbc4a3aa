"""The state file's rows as the product's own words, and back."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.batch import Intent
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.state.port import Checkpoint, Lease, TrackedError

if TYPE_CHECKING:
    import sqlite3

_ITEM_COLUMNS: Final = tuple(field.name for field in fields(RegistryItem))


def checkpoint_of(row: sqlite3.Row) -> Checkpoint:
    """A row of `checkpoints`."""
    intent = Intent.from_dict(json.loads(row["intent"])) if row["intent"] else None
    return Checkpoint(
        row["pipeline_id"],
        row["last_snapshot_id"],
        row["last_ingestion_ts"],
        intent,
        row["failures"],
        row["updated_at"],
    )


def lease_of(row: sqlite3.Row) -> Lease:
    """A row of `locks` that somebody holds."""
    return Lease(row["topic_name"], row["owner"], row["fence"], datetime.fromisoformat(row["expires_at"]))


def item_of(row: sqlite3.Row) -> RegistryItem:
    """A row of `schema_registry`."""
    values = {name: row[name] for name in _ITEM_COLUMNS}
    typed = {"status": Status(values["status"]), "flow": Flow(values["flow"]), "curated": bool(values["curated"])}
    return RegistryItem(**{**values, **typed})


def put_item(db: sqlite3.Connection, item: RegistryItem) -> None:
    """Write a row of `schema_registry`, in the place of an earlier one."""
    values: dict[str, Any] = {name: getattr(item, name) for name in _ITEM_COLUMNS}
    columns = ", ".join((*_ITEM_COLUMNS, "processing_enabled"))
    marks = ", ".join("?" * (len(_ITEM_COLUMNS) + 1))
    db.execute(
        f"INSERT OR REPLACE INTO schema_registry ({columns}) VALUES ({marks})",  # noqa: S608  our own column names
        (*values.values(), int(item.processing_enabled)),
    )


def error_of(row: sqlite3.Row) -> TrackedError:
    """A row of `error_tracker`."""
    values = {field.name: row[field.name] for field in fields(TrackedError)}
    return TrackedError(**{**values, "recorded_at": datetime.fromisoformat(values["recorded_at"])})
