"""From a leaf's place in the payload to its column's name: rules 1, 4, 5 and 6 of flattening."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.model.tables import BATCH_ID, ENVELOPE_NAMES, EXTRA

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MAX_NAME: Final = 200
_CUT_DIGITS: Final = 8
_CLASH_DIGITS: Final = 4
_OTHER: Final = re.compile(r"[^a-z0-9_]")
_ICEBERG_METADATA: Final = (
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
)
RESERVED_NAMES: Final = frozenset({*ENVELOPE_NAMES, EXTRA, BATCH_ID, *_ICEBERG_METADATA})


def pointer_step(key: str) -> str:
    """One step of a JSON pointer (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def pointer_keys(pointer: str) -> list[str]:
    """The keys that a JSON pointer goes through."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def natural_name(pointer: str) -> str:
    """The name that a leaf has when nobody else wants it."""
    name = "_".join(_OTHER.sub("_", key.lower()) or "_" for key in pointer_keys(pointer))
    if len(name) <= MAX_NAME:
        return name
    ending = f"__{_digest(pointer)[:_CUT_DIGITS]}"
    return name[: MAX_NAME - len(ending)] + ending


def _digest(pointer: str) -> str:
    return hashlib.sha256(pointer.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Assignment:
    """New columns by pointer, in the order they are added, and the leaves that found no room."""

    columns: Mapping[str, str]
    left_out: tuple[str, ...]


def assign_columns(
    records_by_pointer: Mapping[str, int],
    taken_names: Collection[str],
    declared: Collection[str],
    room: int,
) -> Assignment:
    """Names for new leaves: declared ones first, then the most frequent, then by pointer; `room` of them.

    `taken_names` are the table's own columns: whoever has a name keeps it.
    """
    declared = frozenset(declared)
    order = sorted(
        records_by_pointer, key=lambda pointer: (pointer not in declared, -records_by_pointer[pointer], pointer)
    )
    taken = set(RESERVED_NAMES).union(taken_names)
    columns: dict[str, str] = {}
    for pointer in order[:room]:
        columns[pointer] = name = _free_name(pointer, taken)
        taken.add(name)
    return Assignment(columns, tuple(order[room:]))


def _free_name(pointer: str, taken: Collection[str]) -> str:
    name = natural_name(pointer)
    if name not in taken:
        return name
    digest = _digest(pointer)
    candidates = (f"{name}__{digest[:digits]}" for digits in range(_CLASH_DIGITS, len(digest) + 1))
    return next(candidate for candidate in candidates if candidate not in taken)
