"""The reference for the kernel: a parsed payload to the texts of its leaves, written to be read."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.reference.payload import Number, compact_text

from lean_ops.model.envelope import ENVELOPE_SOURCES
from lean_ops.standardize.naming import pointer_step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_DEPTH: Final = 5
_KINDS: Final = {str: "string", Number: "number", bool: "boolean", dict: "object", list: "array"}
# Metadata leaves that the envelope may have taken, by envelope column, first choice first.
_METADATA_SOURCES: Final = {
    column: tuple(pointer for pointer in pointers if pointer.startswith("/_metadata/"))
    for column, pointers in ENVELOPE_SOURCES.items()
}
_METADATA_POINTERS: Final = frozenset(pointer for pointers in _METADATA_SOURCES.values() for pointer in pointers)
TAKEN_COLUMNS: Final = tuple(_METADATA_SOURCES)


@dataclass(slots=True, eq=False)
class _Place:
    """A place in payloads: its pointer, its column if it has one, and how often it held what."""

    pointer: str
    depth: int
    column: str | None
    may_be_taken: bool
    children: dict[str, _Place] = field(default_factory=dict)
    kinds: Counter[type] = field(default_factory=Counter)


@dataclass(slots=True)
class Flat:
    """One record: texts by column, and texts by pointer of leaves without one."""

    texts: dict[str, str]
    extra: dict[str, str]


class Flattener:
    """Flattens payloads with the columns known so far and counts what each place held.

    The tree of places is kept between payloads, so a path is named once and not once per record.
    """

    def __init__(self, column_by_pointer: Mapping[str, str]) -> None:
        self._columns = column_by_pointer
        self.forget()

    def forget(self) -> None:
        """Start counting anew."""
        self._root = _Place("", 0, None, may_be_taken=False)
        self._places: list[_Place] = []

    def flatten(self, payload: Mapping[str, Any], envelope: Sequence[str | None]) -> Flat:
        """The leaves of one payload; `envelope` holds the values of TAKEN_COLUMNS."""
        flat = Flat({}, {})
        metadata: dict[str, tuple[_Place, Any]] = {}
        self._walk(payload, self._root, flat, metadata)
        if metadata:
            self._leave_out_taken(metadata, envelope)
            for place, value in metadata.values():
                _put(place, value, flat)
        return flat

    def _walk(
        self, value: Mapping[str, Any], place: _Place, flat: Flat, metadata: dict[str, tuple[_Place, Any]]
    ) -> None:
        children, texts = place.children, flat.texts
        for key, item in value.items():
            if item is None:
                continue
            child = children.get(key) or self._discover(place, key)
            kind = type(item)
            if kind is dict and item and child.depth < MAX_DEPTH:
                self._walk(item, child, flat, metadata)
            elif child.may_be_taken:
                metadata[child.pointer] = (child, item)
            elif child.column is not None and (kind is str or kind is Number):
                # What nearly every leaf is, without a call: this loop is most of the hop's Python time.
                child.kinds[kind] += 1
                texts[child.column] = item
            else:
                _put(child, item, flat)

    def _discover(self, parent: _Place, key: str) -> _Place:
        pointer = parent.pointer + pointer_step(key)
        place = _Place(pointer, parent.depth + 1, self._columns.get(pointer), pointer in _METADATA_POINTERS)
        parent.children[key] = place
        self._places.append(place)
        return place

    @staticmethod
    def _leave_out_taken(metadata: dict[str, tuple[_Place, Any]], envelope: Sequence[str | None]) -> None:
        for pointers, taken in zip(_METADATA_SOURCES.values(), envelope, strict=True):
            for pointer in pointers:
                if pointer in metadata and leaf_text(metadata[pointer][1]) == taken:
                    del metadata[pointer]
                    break

    def counts(self) -> dict[str, dict[str, int]]:
        """How many records held what kind of value, by pointer, since the last `forget`."""
        return {
            place.pointer: {_KINDS[kind]: number for kind, number in place.kinds.items()}
            for place in self._places
            if place.kinds
        }


def _put(place: _Place, value: Any, flat: Flat) -> None:
    place.kinds[type(value)] += 1
    text = leaf_text(value)
    if place.column is not None:
        flat.texts[place.column] = text
    else:
        flat.extra[place.pointer] = text


def leaf_text(value: Any) -> str:
    """A leaf's text: strings and numbers as they are, the rest as compact JSON."""
    return value if isinstance(value, str) else compact_text(value)


def extra_text(extra: Mapping[str, str]) -> str | None:
    """The `_extra` column: a JSON object of pointer to text; NULL when there is nothing."""
    return json.dumps(extra, ensure_ascii=False, separators=(",", ":")) if extra else None
