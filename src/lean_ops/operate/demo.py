"""The demo's data: two days of queue bodies for three topics, and what must become of each.

Made from a start time alone: the same time makes the same bodies, another one makes other messages in the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lean_ops.model.batch import Zone
from lean_ops.model.errors import TerminalError
from lean_ops.operate.demo_day import FAULTS, Day, Fault, Kind, Sent
from lean_ops.operate.demo_shapes import SHAPES, Shape, Subject, with_values, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TOPICS: Final = tuple(SHAPES)
_encode: Final = msgspec.json.Encoder(decimal_format="number").encode  # so that 19.90 stays 19.90

# How many of each kind, for events, orders and readings; the numbers differ so that no topic passes for another.
_DAY_ONE: Final = {Kind.NEW: (290, 280, 300), Kind.RETRY: (10, 8, 15)}
_DAY_TWO: Final = {
    Kind.NEW: (225, 210, 240),
    Kind.RETRY: (25, 18, 30),
    Kind.CORRECTION: (20, 45, 12),
    Kind.SECOND_CORRECTION: (4, 9, 3),
    Kind.LATE: (8, 6, 9),
    Kind.NEW_KEY: (9, 7, 5),
    Kind.TYPE_CHANGE: (5, 4, 3),
    Kind.INCOMPLETE: (6, 8, 4),
    Kind.WRONG_TYPE: (5, 3, 7),
    Kind.BROKEN_RULE: (3, 5, 6),
    Kind.MALFORMED: (4, 3, 6),
    Kind.EMPTY: (3, 4, 5),
    Kind.NOT_AN_OBJECT: (2, 1, 3),
    Kind.REFUSED: (3, 4, 5),
}
_EMPTY: Final = ("", None, "   ")


def two_days(topic: str, started: datetime) -> tuple[Day, Day]:
    """What a topic is sent the day before yesterday and yesterday, seen from `started`."""
    place = TOPICS.index(topic)
    sender = _Sender(SHAPES[topic], started.astimezone(UTC))
    one = Day(topic, sender.day({kind: counts[place] for kind, counts in _DAY_ONE.items()}, 0, ()))
    two = sender.day({kind: counts[place] for kind, counts in _DAY_TWO.items()}, 1, one.sent)
    return one, Day(topic, two, one)


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
            return replace(before, kind=kind)
        if kind is Kind.CORRECTION:
            return self._new(kind, morning, before.key)
        if kind is Kind.SECOND_CORRECTION:
            return self._new(kind, morning, known[number + 1].key)  # the first key's story has to fit on a screen
        if kind is Kind.LATE:
            return self._new(kind, morning - timedelta(days=3 + number % 2), before.key)
        return self._refused(number, morning) if kind is Kind.REFUSED else self._changed(kind, number, morning)

    def _new(self, kind: Kind, morning: datetime, key: str | None = None) -> Sent:
        body, subject = self._message(morning, key)
        return Sent(kind, _encode(body), body["message_id"], subject.key, subject.at)

    def _changed(self, kind: Kind, number: int, morning: datetime) -> Sent:
        """A message whose payload is not as usual."""
        body, subject = self._message(morning, None)
        body["payload"] = self._payload(kind, number, body["payload"])
        return Sent(kind, _encode(body), body["message_id"], subject.key, subject.at, FAULTS.get(kind))

    def _payload(self, kind: Kind, number: int, payload: dict[str, Any]) -> Any:
        if kind is Kind.MALFORMED:
            return _encode(payload).decode()[:-10]
        if kind is Kind.EMPTY:
            return _EMPTY[number % len(_EMPTY)]
        if kind is Kind.NOT_AN_OBJECT:
            return [payload]
        if kind is Kind.INCOMPLETE and number % 2:
            return without(payload, self.shape.changes[kind])
        return with_values(payload, self.shape.changes[kind])

    def _refused(self, number: int, morning: datetime) -> Sent:
        """A body that ingestion must refuse: cut off, without an id, or without a time that can be one."""
        body, subject = self._message(morning, None)
        text, message_id = _encode(body)[:-10], body["message_id"]
        if number % 3 == 1:
            del body["message_id"]
            text, message_id = _encode(body), None
        elif number % 3 == 2:
            text = _encode(body | {"publish_time": "yesterday"})
        fault = Fault(Zone.RAW, "INVALID_CONTRACT" if number % 3 else "MALFORMED_JSON")
        return Sent(Kind.REFUSED, text, message_id, None, subject.at, fault)

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
    for pointer in shape.changes[Kind.NEW_KEY]:
        yield "NEW_COLUMN", pointer, day.kinds[Kind.NEW_KEY]
    for kind in (Kind.TYPE_CHANGE, Kind.WRONG_TYPE):
        for pointer in shape.numbers & shape.changes[kind].keys():
            yield "TYPE_CHANGE", pointer, day.kinds[kind]
