"""The demo's data: two days of queue bodies for three topics, and what must become of each.

Made from a start time alone: the same time makes the same bodies, another one makes other messages in the same numbers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lean_ops.model.batch import Counts
from lean_ops.model.errors import TerminalError
from lean_ops.operate.demo_shapes import SHAPES, Shape, Subject, with_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOPICS: Final = tuple(SHAPES)
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode  # so that 19.90 stays 19.90


class Kind(StrEnum):
    """Why a body is sent."""

    NEW = "new"
    RETRY = "retries"  # the same message once more
    CORRECTION = "corrections"  # a new message for a key that has one
    LATE = "late"  # published days before it arrives, for a key that has a newer message by now
    NEW_KEY = "with new keys"  # members of the payload that nobody has seen
    TYPE_CHANGE = "with a changed type"  # text where a number was
    MALFORMED = "malformed payloads"
    EMPTY = "empty payloads"
    NOT_AN_OBJECT = "payloads that are no object"
    REFUSED = "refused bodies"


# How many of each kind, for events, orders and readings; the numbers differ so that no topic passes for another.
_DAY_ONE: Final = {Kind.NEW: (290, 280, 300), Kind.RETRY: (10, 8, 15)}
_DAY_TWO: Final = {
    Kind.NEW: (225, 210, 240),
    Kind.RETRY: (25, 18, 30),
    Kind.CORRECTION: (20, 45, 12),
    Kind.LATE: (8, 6, 9),
    Kind.NEW_KEY: (9, 7, 5),
    Kind.TYPE_CHANGE: (5, 4, 3),
    Kind.MALFORMED: (4, 3, 6),
    Kind.EMPTY: (3, 4, 5),
    Kind.NOT_AN_OBJECT: (2, 1, 3),
    Kind.REFUSED: (3, 4, 5),
}
_EMPTY: Final = ("", None, "   ")
_PARSE_ERRORS: Final = {
    Kind.MALFORMED: "INVALID_JSON",
    Kind.EMPTY: "EMPTY_PAYLOAD",
    Kind.NOT_AN_OBJECT: "NOT_AN_OBJECT",
}


@dataclass(frozen=True, slots=True)
class Sent:
    """A queue body on its way; `error_type` is set if it must end as a dead letter or a parse error."""

    kind: Kind
    body: bytes
    message_id: str | None
    key: str | None
    error_type: str | None = None


@dataclass(frozen=True, slots=True)
class Day:
    """What one topic is sent on one day."""

    topic: str
    sent: tuple[Sent, ...]

    @property
    def content(self) -> bytes:
        """The bodies as a file that `ingest` takes."""
        return b"".join(sent.body + b"\n" for sent in self.sent)

    @property
    def kinds(self) -> Counter[Kind]:
        """How many bodies there are of each kind, in the order of Kind."""
        return Counter(sorted((sent.kind for sent in self.sent), key=list(Kind).index))

    @property
    def errors(self) -> Counter[str]:
        """The errors that must come of it, by type."""
        return Counter(sent.error_type for sent in self.sent if sent.error_type)

    @property
    def raw(self) -> Counts:
        """What the books of ingestion must say."""
        refused = self.kinds[Kind.REFUSED]
        return Counts(records_in=len(self.sent), inserted=len(self.sent) - refused, errors=refused)

    @property
    def standardized(self) -> Counts:
        """What the books of the batch must say that takes this day."""
        records_in, duplicates = self.raw.inserted, self.kinds[Kind.RETRY]
        errors = sum(self.kinds[kind] for kind in _PARSE_ERRORS)
        return Counts(records_in, records_in - duplicates - errors, duplicates=duplicates, errors=errors)

    def first(self, kind: Kind) -> Sent:
        """The body of a kind whose message is the oldest: on day two it is about the first key of day one."""
        return min((sent for sent in self.sent if sent.kind is kind), key=lambda sent: sent.message_id or "")


def two_days(topic: str, started: datetime) -> tuple[Day, Day]:
    """What a topic is sent the day before yesterday and yesterday, seen from `started`."""
    place = TOPICS.index(topic)
    sender = _Sender(SHAPES[topic], started.astimezone(UTC))
    one = sender.day({kind: counts[place] for kind, counts in _DAY_ONE.items()}, 0, ())
    two = sender.day({kind: counts[place] for kind, counts in _DAY_TWO.items()}, 1, one)
    return Day(topic, one), Day(topic, two)


def example_schemas(package: Path = Path(__file__).parents[1]) -> Path:
    """The folder of the topics' schema files: inside an installed package, else the repository's."""
    folders = (package / "examples", package.parents[1] / "schemas")
    for folder in folders:
        if all((folder / f"{topic}.json").is_file() for topic in TOPICS):
            return folder
    raise TerminalError(
        "the example schemas are missing",
        expected=f"{', '.join(f'{topic}.json' for topic in TOPICS)} in {folders[0]}",
        remedy="Install lean-ops again.",
    )


@dataclass
class _Sender:
    """Makes a topic's messages; ids and keys carry the start time, so that no two runs share any."""

    shape: Shape
    started: datetime
    random: Random = field(init=False)
    serial: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.shape.topic)  # noqa: S311  data for show, no secret

    def day(self, counts: Mapping[Kind, int], day: int, earlier: Sequence[Sent]) -> tuple[Sent, ...]:
        """A day's bodies, mixed; what refers to earlier messages takes the first ones of the day before."""
        morning = self.started.replace(hour=6, minute=0, second=0, microsecond=0) - timedelta(days=2 - day)
        fresh = [self._new(Kind.NEW, morning) for _ in range(counts[Kind.NEW])]
        known = sorted((sent for sent in earlier if sent.kind is Kind.NEW), key=lambda sent: sent.key or "") or fresh
        others = [
            self._other(kind, number, morning, known)
            for kind, count in counts.items()
            if kind is not Kind.NEW
            for number in range(count)
        ]
        mixed = fresh + others
        self.random.shuffle(mixed)
        return tuple(mixed)

    def _other(self, kind: Kind, number: int, morning: datetime, known: Sequence[Sent]) -> Sent:
        before = known[number % len(known)]
        if kind is Kind.RETRY:
            return Sent(kind, before.body, before.message_id, before.key)
        if kind is Kind.CORRECTION:
            return self._new(kind, morning, before.key)
        if kind is Kind.LATE:
            return self._new(kind, morning - timedelta(days=3 + number % 2), before.key)
        if kind is Kind.REFUSED:
            return self._refused(number, morning)
        return self._changed(kind, number, morning)

    def _new(self, kind: Kind, morning: datetime, key: str | None = None) -> Sent:
        body, subject = self._message(morning, key)
        return Sent(kind, _encode(body), body["message_id"], subject.key)

    def _changed(self, kind: Kind, number: int, morning: datetime) -> Sent:
        """A message whose payload is not as usual."""
        body, subject = self._message(morning, None)
        body["payload"] = self._payload(kind, number, body["payload"])
        return Sent(kind, _encode(body), body["message_id"], subject.key, _PARSE_ERRORS.get(kind))

    def _payload(self, kind: Kind, number: int, payload: dict[str, Any]) -> Any:
        if kind is Kind.MALFORMED:
            return _encode(payload).decode()[:-10]
        if kind is Kind.EMPTY:
            return _EMPTY[number % len(_EMPTY)]
        if kind is Kind.NOT_AN_OBJECT:
            return [payload]
        changes = self.shape.new_keys if kind is Kind.NEW_KEY else self.shape.type_change
        for pointer, value in changes.items():
            payload = with_value(payload, pointer, value)
        return payload

    def _refused(self, number: int, morning: datetime) -> Sent:
        """A body that ingestion must refuse: cut off, without an id, or without a time that can be one."""
        body, _ = self._message(morning, None)
        message_id = body["message_id"]
        if number % 3 == 0:
            return Sent(Kind.REFUSED, _encode(body)[:-10], message_id, None, "MALFORMED_JSON")
        if number % 3 == 1:
            del body["message_id"]
            return Sent(Kind.REFUSED, _encode(body), None, None, "INVALID_CONTRACT")
        return Sent(Kind.REFUSED, _encode(body | {"publish_time": "yesterday"}), message_id, None, "INVALID_CONTRACT")

    def _message(self, morning: datetime, key: str | None) -> tuple[dict[str, Any], Subject]:
        """A well-formed message and what it is about: of a key that is given, else of one of its own."""
        self.serial += 1
        at = morning + timedelta(seconds=self.serial * 60 + self.random.randrange(60))
        run = f"{self.started:%y%m%d%H%M%S}"
        subject = Subject(key or f"{run}/{self.shape.prefix}-{self.serial:06d}", at)
        body = {"message_id": f"{self.shape.topic}-{run}-{self.serial:04d}", "publish_time": at.isoformat()}
        return body | self.shape.body(subject, self.random), subject


def expected_drift(day: Day) -> Iterator[tuple[str, str, int]]:
    """Kind, JSON pointer and number of records of what the second day's batch must find changed."""
    shape = SHAPES[day.topic]
    for pointer in shape.new_keys:
        yield "NEW_COLUMN", pointer, day.kinds[Kind.NEW_KEY]
    for pointer in shape.type_change:
        yield "TYPE_CHANGE", pointer, day.kinds[Kind.TYPE_CHANGE]
