"""Why a body is sent: the kinds of messages that a generated topic is made of."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """What a body is to the pipeline; the order is that of the numbers in a plan."""

    NEW = "new"  # the first message of a key
    RETRY = "retries"  # the same message once more, byte for byte
    ALTERED_RETRY = "altered retries"  # the same message id and time, another payload: the first copy must win
    CORRECTION = "corrections"  # a newer version of a key
    TIE = "ties"  # a version exactly as new as the one before: the later arrival wins
    HOT_KEY = "same key"  # one of a few keys that are corrected all the time, in every batch
    CROSS_MONTH = "cross-month corrections"  # one to three months after the message that it corrects
    LATE = "late arrivals"  # an older version of a key, days late
    REPAIR = "repairs"  # a right version of a key whose first message was refused
    SKEWED = "skewed clocks"  # published by a clock that is days off
    DRIFT = "new keys"  # members of the payload that nobody has declared
    REMOVED = "removed keys"  # an optional member is gone
    REORDERED = "reordered"  # the same members in another order
    TYPE_CHANGE = "changed types"  # the same value as another JSON type
    MALFORMED = "malformed"  # a body or a payload that is no JSON
    EMPTY = "empty payloads"
    NOT_AN_OBJECT = "no objects"
    CDE_NULL = "missing critical elements"
    BAD_TYPE = "wrong types"
    BAD_TIMESTAMP = "bad timestamps"
    BROKEN_RULE = "broken rules"
    COMBINED = "several faults"
    REFUSED = "broken contracts"  # bodies without what every message must have
    POISON = "poison"  # deep nesting, huge values, hostile names, odd encodings
    OVERSIZED = "oversized"


CODES: Final = {kind: number for number, kind in enumerate(Kind)}

# Copies of a message that was sent before, and new versions of a key that has one.
COPIES: Final = frozenset({Kind.RETRY, Kind.ALTERED_RETRY})
VERSIONS: Final = frozenset({Kind.CORRECTION, Kind.TIE, Kind.HOT_KEY, Kind.CROSS_MONTH, Kind.LATE, Kind.REPAIR})
# What such a version or an altered copy is made of: payloads as the family's template has them.
PLAIN: Final = frozenset({Kind.NEW, Kind.SKEWED}) | VERSIONS


class Injection(NamedTuple):
    """A rate of the command line: the kinds that share it, in equal parts, and what becomes of them."""

    kinds: tuple[Kind, ...]
    becomes: str


INJECTIONS: Final = {
    "duplicates": Injection((Kind.RETRY, Kind.ALTERED_RETRY), "duplicates; half of them have another payload"),
    "corrections": Injection((Kind.CORRECTION, Kind.CORRECTION, Kind.TIE), "newer versions of a key, a third tied"),
    "same_key": Injection((Kind.HOT_KEY,), "versions of ten keys that come in every batch"),
    "cross_month": Injection((Kind.CROSS_MONTH,), "corrections one to three months later"),
    "late": Injection((Kind.LATE,), "older versions of a key: superseded"),
    "repairs": Injection((Kind.REPAIR,), "right versions of keys that were refused before"),
    "skewed": Injection((Kind.SKEWED,), "published by clocks that are days off"),
    "drift": Injection((Kind.DRIFT,), "rows with members that no schema declares"),
    "removed": Injection((Kind.REMOVED,), "rows without an optional member"),
    "reordered": Injection((Kind.REORDERED,), "rows with their members in another order"),
    "type_changes": Injection((Kind.TYPE_CHANGE,), "rows with a value as another JSON type"),
    "malformed": Injection((Kind.MALFORMED,), "dead letters and parse errors: no JSON"),
    "empty": Injection((Kind.EMPTY,), "parse errors: no payload"),
    "not_objects": Injection((Kind.NOT_AN_OBJECT,), "parse errors: JSON, but no object"),
    "cde_nulls": Injection((Kind.CDE_NULL,), "errors: a critical element is missing"),
    "bad_types": Injection((Kind.BAD_TYPE,), "errors: a value that its column can't hold"),
    "bad_timestamps": Injection((Kind.BAD_TIMESTAMP,), "dead letters and errors: times that are none"),
    "broken_rules": Injection((Kind.BROKEN_RULE,), "errors: a rule of the schema is broken"),
    "combined": Injection((Kind.COMBINED,), "errors with several reasons at once"),
    "refused": Injection((Kind.REFUSED,), "dead letters: no id, no time or no payload"),
    "poison": Injection((Kind.POISON,), "deep nesting, huge values, hostile names, odd encodings"),
    "oversized": Injection((Kind.OVERSIZED,), "dead letters: bodies over the limit (11 MB each)"),
}
