"""What a batch changed in the shape of a topic's data, as drift log rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lean_ops.standardize.naming import natural_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from lean_ops.model.batch import Batch
    from lean_ops.standardize.columns import PayloadColumns
    from lean_ops.standardize.flatten import PlaceCounts


class DriftKind(StrEnum):
    """Kinds of drift that the Standardized hop sees."""

    NEW_COLUMN = "NEW_COLUMN"
    COLLISION = "COLLISION"
    COLUMN_LIMIT = "COLUMN_LIMIT"
    TYPE_CHANGE = "TYPE_CHANGE"


@dataclass(frozen=True, slots=True)
class Drift:
    """One observation."""

    kind: DriftKind
    column_name: str
    json_pointer: str
    old_value: str | None
    new_value: str | None
    records: int


def find_drift(
    before: PayloadColumns,
    after: PayloadColumns,
    held: PlaceCounts,
    places: PlaceCounts,
    limits_logged: Collection[str],
) -> list[Drift]:
    """All drift of a batch; `limits_logged` are the leaves whose want of room is already known."""
    return [
        *_new_columns(before, after, places),
        *_left_out(after, places, limits_logged),
        *_type_changes(after, held, places),
    ]


def _new_columns(before: PayloadColumns, after: PayloadColumns, places: PlaceCounts) -> Iterator[Drift]:
    owners = {name: pointer for pointer, name in after.by_pointer.items()}
    for pointer, name in after.by_pointer.items():
        if pointer in before.by_pointer:
            continue
        records = places.get(pointer, Counter()).total()
        yield Drift(DriftKind.NEW_COLUMN, name, pointer, None, name, records)
        wanted = natural_name(pointer)
        if name != wanted:
            yield Drift(DriftKind.COLLISION, name, pointer, owners.get(wanted, wanted), name, records)


def _left_out(after: PayloadColumns, places: PlaceCounts, limits_logged: Collection[str]) -> Iterator[Drift]:
    for pointer, records in after.unknown(places).items():
        if pointer not in limits_logged:
            yield Drift(DriftKind.COLUMN_LIMIT, natural_name(pointer), pointer, None, "_extra", records)


def _type_changes(after: PayloadColumns, held: PlaceCounts, places: PlaceCounts) -> Iterator[Drift]:
    for pointer, kinds in places.items():
        name = after.by_pointer.get(pointer)
        if name is None:
            continue
        mostly = _most_frequent(held.get(pointer) or kinds)
        for kind in sorted(kinds):
            if kind != mostly:
                yield Drift(DriftKind.TYPE_CHANGE, name, pointer, mostly, kind, kinds[kind])


def _most_frequent(kinds: Counter[str]) -> str:
    return min(kinds, key=lambda kind: (-kinds[kind], kind))


def drift_rows(batch: Batch, drift: list[Drift], now: datetime) -> list[dict[str, Any]]:
    """Drift as rows of the drift log."""
    return [
        {
            "topic_name": batch.topic,
            "column_name": entry.column_name,
            "json_pointer": entry.json_pointer,
            "kind": str(entry.kind),
            "old_value": entry.old_value,
            "new_value": entry.new_value,
            "batch_id": batch.batch_id,
            "records": entry.records,
            "detected_at": now,
        }
        for entry in drift
    ]
