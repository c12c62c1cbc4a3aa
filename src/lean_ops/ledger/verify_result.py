"""What a comparison with an oracle comes to: counts by fate, and the first differences as a person reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from lean_ops.ledger.oracle import ExpectedFate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

MISSING: Final = "missing"  # sent, and nowhere; no oracle expects it


class Differs(StrEnum):
    """In what a message can differ from what an oracle says."""

    FATE = "fate"
    REASON = "reason"
    FIELDS = "fields"
    VERSION = "version"
    VALUES = "values"
    RAW_KEY = "raw_key"
    CURATED_KEY = "curated_key"
    DOUBLED = "doubled"
    IN_BOTH = "in_both"
    KEY_TWICE = "key_twice"
    UNSOURCED = "unsourced"
    UNKNOWN = "unknown"


DIFFERS_WORDS: Final = {
    Differs.FATE: "the fate is another",
    Differs.REASON: "the reason is another",
    Differs.FIELDS: "the error's fields are others",
    Differs.VERSION: "Curated shows another version of the key",
    Differs.VALUES: "Curated's values are others",
    Differs.RAW_KEY: "RAW has another idempotency_key",
    Differs.CURATED_KEY: "Curated has another idempotency_key",
    Differs.DOUBLED: "a table has the message more than once",
    Differs.IN_BOTH: "the message is in a table and, not replayed, in its errors",
    Differs.KEY_TWICE: "Curated has the key more than once",
    Differs.UNSOURCED: "a zone has the message and the zone before does not",
    Differs.UNKNOWN: "no line of the oracle knows it",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One side of a comparison: bodies by fate, and what else is known of them."""

    fates: Mapping[str, int]
    reason: str | None = None
    fields: tuple[str, ...] | None = None
    version: str | None = None
    keys: tuple[str | None, ...] = ()

    def document(self) -> dict[str, Any]:
        """The side for a machine."""
        return {
            "fates": dict(self.fates),
            "reason": self.reason,
            "fields": None if self.fields is None else list(self.fields),
            "version": self.version,
            "keys": list(self.keys),
        }


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A column of Curated that has another value than expected, or that is not there."""

    column: str
    expected: str | None
    found: str | None
    is_there: bool = True

    def document(self) -> dict[str, Any]:
        """The value for a machine."""
        return {"column": self.column, "expected": self.expected, "found": self.found, "is_there": self.is_there}


@dataclass(frozen=True, slots=True)
class Difference:
    """A message or dead letter that is not as the oracle says, or that it does not know.

    `place` orders differences as the oracle's lines stand, `file` and `line` are those of the body, and `rows` is
    how many rows of it each table has.
    """

    topic: str
    place: int | None
    message_id: str | None
    publish_time: datetime | None
    differs: tuple[Differs, ...]
    expected: Told
    found: Told
    file: str | None = None
    line: int | None = None
    kind: str | None = None
    body_sha256: str | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    values: tuple[WrongValue, ...] = ()

    def document(self) -> dict[str, Any]:
        """The difference for a machine."""
        return {
            "topic": self.topic,
            "message_id": self.message_id,
            "publish_time": self.publish_time,
            "body_sha256": self.body_sha256,
            "file": self.file,
            "line": self.line,
            "kind": self.kind,
            "differs": list(map(str, self.differs)),
            "expected": self.expected.document(),
            "found": self.found.document(),
            "rows": dict(self.rows),
            "values": [value.document() for value in self.values],
        }


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared, or a part of it. `messages` counts a dead letter's body as one.

    `differing` leaves out those that the oracle does not know: they are `unknown`.
    """

    messages: int = 0
    lines: int = 0
    expected: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    differing: int = 0
    unknown: int = 0
    redelivered: int = 0
    shown: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification(Compared):
    """All topics together. `problems` says of topics why they can't be compared."""

    complete: bool = False
    problems: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, compared: Compared, complete: bool, problems: Mapping[str, str]) -> Verification:
        """What was compared, seen as the whole."""
        counts = {part.name: getattr(compared, part.name) for part in fields(compared)}
        return cls(**counts, complete=complete, problems=problems)

    @property
    def differences(self) -> int:
        """How many messages differ; if the oracle is complete, those that it does not know are among them."""
        return self.differing + (self.unknown if self.complete else 0)

    @property
    def matches(self) -> bool:
        """Everything was compared, and is as the oracle says."""
        return not self.differences and not self.problems

    def fate_lines(self) -> list[dict[str, Any]]:
        """Bodies by fate; a fate that nobody expected or found is left out."""
        expected, found = self.expected, self.found
        return [
            {"fate": word, "expected": expected[word], "found": found[word]}
            for word in (*map(str, ExpectedFate), MISSING)
            if expected[word] or found[word]
        ]

    def document(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "messages": self.messages,
            "lines": self.lines,
            "fates": self.fate_lines(),
            "differences": self.differences,
            "shown": [difference.document() for difference in self.shown],
            "unknown": self.unknown,
            "redelivered": self.redelivered,
            "matches": self.matches,
            "problems": dict(self.problems),
        }


def together(parts: Sequence[Compared], show: int) -> Compared:
    """The parts as one, with the first differences of all; unknown messages come last."""
    expected: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for part in parts:
        expected.update(part.expected)
        found.update(part.found)
    shown = sorted(chain.from_iterable(part.shown for part in parts), key=_order)[:show]
    return Compared(
        sum(part.messages for part in parts),
        sum(part.lines for part in parts),
        expected,
        found,
        sum(part.differing for part in parts),
        sum(part.unknown for part in parts),
        sum(part.redelivered for part in parts),
        tuple(shown),
    )


def _order(difference: Difference) -> tuple[bool, int, str, str]:
    place = difference.place
    return (place is None, place or 0, difference.topic, difference.message_id or "")
