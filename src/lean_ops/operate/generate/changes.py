"""Payloads with something changed at a JSON pointer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def with_values(payload: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The same payload with other values at some pointers."""
    changed = dict(payload)
    for pointer, value in values.items():
        changed = _with_value(changed, pointer, value)
    return changed


def _with_value(payload: Mapping[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """Objects on the way are made if need be."""
    first, rest = _parts(pointer)
    return {**payload, first: _with_value(payload.get(first, {}), rest, value) if rest else value}


def without(payload: Mapping[str, Any], pointers: Iterable[str]) -> dict[str, Any]:
    """The same payload with nothing at some pointers."""
    changed = dict(payload)
    for first, rest in map(_parts, pointers):
        inner = changed.pop(first)
        if rest:
            changed[first] = without(inner, [rest])
    return changed


def reversed_members(value: Any) -> Any:
    """The same value with the members of every object in the other order."""
    if not isinstance(value, dict):
        return value
    return {name: reversed_members(inner) for name, inner in reversed(value.items())}


def _parts(pointer: str) -> tuple[str, str]:
    """A pointer's first key, and the pointer from there on; empty at its end."""
    first, slash, rest = pointer.removeprefix("/").partition("/")
    return first, slash + rest
