"""DynamoDB's items as the product's own words, and back."""

from __future__ import annotations

import json
import zlib
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.batch import Intent
from lean_ops.model.errors import TerminalError
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.state.port import Checkpoint, Lease, TrackedError
from lean_ops.state.rules import utc_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    Item = dict[str, AttributeValueTypeDef]

SNAPSHOT_CHECKPOINT: Final = "iceberg_snapshot"
_ITEM_FIELDS: Final = tuple(field.name for field in fields(RegistryItem))
# An intent names every declared column. Long ones are packed: an item takes 400 KB, and each KB is paid for.
_LONGEST_PLAIN_INTENT: Final = 4096
_PLAIN: Final[dict[str, Callable[[Any], object]]] = {"S": str, "N": int, "BOOL": bool, "B": bytes}


def value(plain: str | int | bytes | bool) -> AttributeValueTypeDef:
    """A value as DynamoDB's wire has it."""
    if isinstance(plain, bool):
        return {"BOOL": plain}
    if isinstance(plain, int):
        return {"N": str(plain)}
    return {"B": plain} if isinstance(plain, bytes) else {"S": plain}


def attributes(values: Mapping[str, str | int | bytes | bool | None]) -> Item:
    """An item of these values; what is None is left out."""
    return {name: value(plain) for name, plain in values.items() if plain is not None}


def plain(found: Mapping[str, Any]) -> dict[str, Any]:
    """An item's values, whole numbers as they were however large; kinds that are never written here are left out."""
    pairs = ((name, kind, raw) for name, typed in found.items() for kind, raw in typed.items())
    return {name: _PLAIN[kind](raw) for name, kind, raw in pairs if kind in _PLAIN}


def checkpoint_of(found: Mapping[str, Any]) -> Checkpoint:
    """An item of `checkpoints`."""
    with _readable(found, "pipeline_id"):
        values = plain(found)
        return Checkpoint(
            values["pipeline_id"],
            values.get("last_snapshot_id"),
            values.get("last_ingestion_ts"),
            _intent_of(values["intent"]) if "intent" in values else None,
            values.get("failures", 0),
            values.get("updated_at"),
        )


def intent_value(intent: Intent) -> str | bytes:
    """An intent as it is stored, as text if it is short."""
    text = json.dumps(intent.to_dict())
    return text if len(text) <= _LONGEST_PLAIN_INTENT else zlib.compress(text.encode())


def _intent_of(stored: str | bytes) -> Intent:
    return Intent.from_dict(json.loads(stored if isinstance(stored, str) else zlib.decompress(stored)))


def lease_of(found: Mapping[str, Any]) -> Lease:
    """An item of `locks` that somebody holds."""
    with _readable(found, "topic_name"):
        values = plain(found)
        expires_at = datetime.fromisoformat(values["expires_at"])
        return Lease(values["topic_name"], values["owner"], values["fence"], expires_at)


def registry_item_of(found: Mapping[str, Any]) -> RegistryItem:
    """An item of `schema_registry`."""
    with _readable(found, "topic_name"):
        values = {name: each for name, each in plain(found).items() if name in _ITEM_FIELDS}
        typed = {name: kind(values[name]) for name, kind in (("status", Status), ("flow", Flow)) if name in values}
        return RegistryItem(**{**values, **typed})


def of_registry_item(known: RegistryItem, revision: int) -> Item:
    """An item for `schema_registry`."""
    values: dict[str, Any] = {name: getattr(known, name) for name in _ITEM_FIELDS}
    return attributes({**values, "processing_enabled": known.processing_enabled, "revision": revision})


def error_of(found: Mapping[str, Any]) -> TrackedError:
    """An item of `error_tracker`."""
    with _readable(found, "error_id"):
        values = {"message_id": None, **plain(found)}
        kept = {field.name: values[field.name] for field in fields(TrackedError)}
        return TrackedError(**{**kept, "recorded_at": datetime.fromisoformat(kept["recorded_at"])})


def of_error(error: TrackedError, expires_at: int) -> Item:
    """An item for `error_tracker`."""
    values: dict[str, Any] = {field.name: getattr(error, field.name) for field in fields(TrackedError)}
    return attributes({**values, "recorded_at": utc_text(error.recorded_at), "expires_at": expires_at})


@contextmanager
def _readable(found: Mapping[str, Any], key: str) -> Iterator[None]:
    """Say which item it is that somebody has spoilt."""
    try:
        yield
    except (KeyError, ValueError, TypeError, zlib.error) as error:
        raise TerminalError(
            "an item of the state store can't be read",
            where=f"{key} {found.get(key, {}).get('S')!r}",
            found=f"{type(error).__name__}: {error}",
            remedy="Somebody else has written it: put right what is named here, or delete the item.",
        ) from error
