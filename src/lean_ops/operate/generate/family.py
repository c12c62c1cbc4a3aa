"""What a family of topics looks like: payloads that fit its schema, and every way in which they do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lean_ops.operate.generate import faults
from lean_ops.operate.generate.kinds import PLAIN, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lean_ops.operate.generate.variants import Variant

# Random numbers that every message has, for its values.
DRAWS: Final = 4

# Key, its number, the time that the payload speaks of (as text to the millisecond, and in milliseconds), draws: the
# payload and the values that Curated must hold of it, both as JSON text, the second one without its braces.
Write: TypeAlias = "Callable[[str, int, str, int, Sequence[int]], tuple[str, str]]"

_EVERYWHERE: Final = {
    Kind.REORDERED: faults.REORDERED,
    Kind.MALFORMED: faults.MALFORMED,
    Kind.EMPTY: faults.EMPTY,
    Kind.NOT_AN_OBJECT: faults.NOT_AN_OBJECT,
    Kind.REFUSED: faults.REFUSED,
    Kind.POISON: faults.POISON,
    Kind.OVERSIZED: faults.OVERSIZED,
}


def key_in_envelope(key: str, _at: str) -> str:
    """The body's members of a family whose key stands beside the payload."""
    return f'"idempotency_key":"{key}",'


@dataclass(frozen=True, slots=True)
class Enhancement:
    """An optional column that a later schema declares; the first variant of DRIFT has `value` for it."""

    column: str
    declaration: Mapping[str, Any]
    value: Any


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of topic, named as its schema file: how keys begin, how messages are written and how they go wrong.

    `envelope` is the text of the body's members beside id, time and payload, made of the key and the time.
    `by_event_time` says whether the newest version is that with the latest time in the payload; else that which was
    published last.
    """

    name: str
    prefix: str
    by_event_time: bool
    envelope: Callable[[str, str], str]
    write: Write
    variants: Mapping[Kind, Sequence[Variant]]
    enhancement: Enhancement

    def variants_of(self, kind: Kind) -> Sequence[Variant]:
        """The ways in which bodies of a kind differ from right ones; none for plain versions and copies."""
        if kind in PLAIN:
            return ()
        own = tuple(self.variants.get(kind, ()))
        if kind is Kind.BAD_TIMESTAMP:
            own += faults.BAD_PUBLISH_TIMES
        return own + _EVERYWHERE.get(kind, ())
