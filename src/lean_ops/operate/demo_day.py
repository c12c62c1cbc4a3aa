"""A day of the demo: the bodies that a topic is sent, and what the books of every zone must say of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from lean_ops.model.batch import Counts, Zone

if TYPE_CHECKING:
    from datetime import datetime


class Kind(StrEnum):
    """Why a body is sent."""

    NEW = "new"
    RETRY = "retries"  # the same message once more
    CORRECTION = "corrections"  # a new message for a key that has one
    SECOND_CORRECTION = "second corrections"  # another one for a key that was corrected on the same day
    LATE = "late arrivals"  # published days before it arrives, for a key that has a newer message by now
    NEW_KEY = "with new keys"  # members of the payload that nobody has seen
    TYPE_CHANGE = "with a changed type"  # text where a number was; what it says is still that number
    INCOMPLETE = "no critical element"  # one that the schema calls critical is missing
    WRONG_TYPE = "with a wrong type"  # a value that its column's type can't hold
    BROKEN_RULE = "that break a rule"
    MALFORMED = "malformed payloads"
    EMPTY = "empty payloads"
    NOT_AN_OBJECT = "no object as payload"
    REFUSED = "refused bodies"


class Fault(NamedTuple):
    """The zone that a body does not get into, and the type of error that it becomes there."""

    zone: Zone
    error_type: str


FAULTS: Final = {
    Kind.INCOMPLETE: Fault(Zone.CURATED, "CDE_VIOLATION"),
    Kind.WRONG_TYPE: Fault(Zone.CURATED, "TYPE_CAST"),
    Kind.BROKEN_RULE: Fault(Zone.CURATED, "RULE_VIOLATION"),
    Kind.MALFORMED: Fault(Zone.STANDARDIZED, "INVALID_JSON"),
    Kind.EMPTY: Fault(Zone.STANDARDIZED, "EMPTY_PAYLOAD"),
    Kind.NOT_AN_OBJECT: Fault(Zone.STANDARDIZED, "NOT_AN_OBJECT"),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A queue body on its way: `version` is the time that its payload speaks of, `fault` how it ends if it must."""

    kind: Kind
    body: bytes
    message_id: str | None
    key: str | None
    version: datetime
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Day:
    """What one topic is sent on one day, and the day before it if there was one."""

    topic: str
    sent: tuple[Sent, ...]
    before: Day | None = None

    @property
    def content(self) -> bytes:
        """The bodies as a file that `ingest` takes."""
        return b"".join(sent.body + b"\n" for sent in self.sent)

    @property
    def kinds(self) -> Counter[Kind]:
        """How many bodies there are of each kind, in the order of Kind."""
        return Counter(sorted((sent.kind for sent in self.sent), key=list(Kind).index))

    def first(self, kind: Kind) -> Sent:
        """The body of a kind whose message is the oldest: on day two it is about the first key of day one."""
        return min((sent for sent in self.sent if sent.kind is kind), key=lambda sent: sent.message_id or "")

    # what must become of it

    def errors(self, zone: Zone) -> Counter[str]:
        """The errors on the way into a zone, by type."""
        return Counter(sent.fault.error_type for sent in self.sent if sent.fault and sent.fault.zone is zone)

    @property
    def raw(self) -> Counts:
        """What the books of ingestion must say."""
        errors = self.errors(Zone.RAW).total()
        return Counts(records_in=len(self.sent), inserted=len(self.sent) - errors, errors=errors)

    @property
    def standardized(self) -> Counts:
        """What the books of the Standardized batch must say that takes this day."""
        records_in, duplicates = self.raw.inserted, self.kinds[Kind.RETRY]
        errors = self.errors(Zone.STANDARDIZED).total()
        return Counts(records_in, records_in - duplicates - errors, duplicates=duplicates, errors=errors)

    @property
    def curated(self) -> Counts:
        """What the books of the Curated batch must say that takes this day after the days before it."""
        known, now = self.before.current if self.before else {}, self.current
        keys = {sent.key for sent in self._versions if sent.key is not None}
        inserted = len(keys - known.keys())
        updated = sum(now[key].version > known[key].version for key in keys & known.keys())
        return Counts(
            records_in=self.standardized.inserted,
            inserted=inserted,
            updated=updated,
            superseded=len(self._versions) - inserted - updated,
            errors=self.errors(Zone.CURATED).total(),
        )

    @property
    def current(self) -> dict[str, Sent]:
        """Each key's newest version, which is its row in Curated at the end of the day."""
        found = self.before.current if self.before else {}
        for sent in self._versions:
            if sent.key is not None and (sent.key not in found or sent.version > found[sent.key].version):
                found[sent.key] = sent
        return found

    @property
    def _versions(self) -> list[Sent]:
        """What Curated compares with each other: first copies that nothing is wrong with."""
        return [sent for sent in self.sent if sent.kind is not Kind.RETRY and sent.fault is None]
