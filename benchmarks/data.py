"""Events as a shop's applications send them: about 770 bytes, 31 leaves, and what real topics have besides.

Three in a hundred payloads are no JSON, ten in a hundred have keys that others lack, some have a value of another
JSON type, an object where others have a text, or a key twice. The same seed makes the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

START: Final = datetime(2026, 2, 3, tzinfo=UTC)
_CHUNK: Final = 20_000
_DRIFT_KEYS: Final = 80
_RARE: Final = 1000  # rare things are drawn in thousandths
_MALFORMED, _DRIFT, _TYPES, _TWICE = 30, 100, 20, 2

# Leaves in the order of the payload: JSON path, and the type and rules that Curated gives it; None stays undeclared.
LEAVES: Final[dict[str, dict[str, Any] | None]] = {
    "eventId": {"type": "STRING", "cde": True},
    "sessionId": None,
    "type": {"type": "STRING", "required": True, "enum": ["Login", "Logout", "View", "Click", "Purchase"]},
    "version": {"type": "INT", "min": 1, "max": 1000},
    "occurredAt": {"type": "TIMESTAMP", "cde": True},
    "processedMs": {"type": "TIMESTAMP", "format": "epoch_ms"},
    "user.id": {"type": "BIGINT", "cde": True},
    "user.name": {"type": "STRING"},
    "user.email": {"type": "STRING", "pii": "mask"},
    "user.country": {"type": "STRING", "pattern": "[A-Z]{2}"},
    "user.segment": {"type": "STRING", "default": "none"},
    "user.premium": {"type": "BOOLEAN", "default": False},
    "user.birthDate": {"type": "DATE", "min": "1900-01-01"},
    "device.id": {"type": "STRING", "required": True},
    "device.os": {"type": "STRING", "enum": ["Android", "iOS", "Windows", "Linux"]},
    "device.app.name": {"type": "STRING"},
    "device.app.version": {"type": "STRING"},
    "device.app.build": {"type": "INT", "min": 0},
    "device.battery": {"type": "DOUBLE", "min": 0, "max": 1},
    "device.online": {"type": "BOOLEAN"},
    "order.number": {"type": "STRING", "pattern": "[A-Z]{2}-[0-9]{6,10}"},
    "order.amount": {"type": "DECIMAL(12,2)", "required": True, "min": 0},
    "order.currency": {"type": "STRING", "default": "EUR"},
    "order.tax": {"type": "DECIMAL(6,2)"},
    "order.items": {"type": "INT", "min": 1, "max": 1000},
    "order.express": {"type": "BOOLEAN"},
    "order.orderedOn": {"type": "DATE", "min": "2000-01-01"},
    "order.tags": None,
    "geo.lat": {"type": "DOUBLE", "min": -90, "max": 90},
    "geo.lon": {"type": "DOUBLE", "min": -180, "max": 180},
    "note": None,
}
_TEMPLATE: Final = (
    '{"eventId":%s,"sessionId":%s,"type":%s,"version":%s,"occurredAt":%s,"processedMs":%s,'
    '"user":{"id":%s,"name":%s,"email":%s,"country":%s,"segment":%s,"premium":%s,"birthDate":%s},'
    '"device":{"id":%s,"os":%s,"app":{"name":%s,"version":%s,"build":%s},"battery":%s,"online":%s},'
    '"order":{"number":%s,"amount":%s,"currency":%s,"tax":%s,"items":%s,"express":%s,"orderedOn":%s,"tags":%s},'
    '"geo":{"lat":%s,"lon":%s},"note":%s}'
)
_NOTE: Final = (
    "parcel left with the neighbour after two attempts at the front door on a rainy afternoon in spring, who signed"
    " for it and will hand it over"
)
_CITIES: Final = ("Weiß", "Müller", "Okafor", "Rossi", "Nowak", "Silva", "Kim", "Dubois", "Jensen", "García")


class Event(NamedTuple):
    """One message: its payload's text, and the leaves that it must become; None if the payload is no JSON."""

    number: int
    payload: str
    leaves: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class Events:
    """So many messages from a number on, published evenly over some days."""

    count: int
    seed: int
    first: int = 0
    days: int = 3

    def message_id(self, number: int) -> str:
        """A message's id."""
        return f"m-{self.seed}-{number}"

    def key(self, number: int) -> str:
        """A message's own idempotency key."""
        return f"order-{self.seed}-{number}"

    def published(self, number: int) -> datetime:
        """When a message was published."""
        share = (number - self.first) / max(1, self.count)
        return START + timedelta(days=self.days) * share

    def __iter__(self) -> Iterator[Event]:
        for begin in range(self.first, self.first + self.count, _CHUNK):
            yield from _chunk(begin, min(_CHUNK, self.first + self.count - begin), self.seed)


def write_bodies(events: Events, file: Path, keys: Sequence[str] | None = None) -> Path:
    """The messages as queue bodies, one a line; `keys` instead of their own, for corrections."""
    with file.open("w", encoding="utf-8") as out:
        for place, event in enumerate(events):
            published = events.published(event.number).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            key = events.key(event.number) if keys is None else keys[place]
            # What is no JSON can only come as a string: a payload's own text is then the string's.
            payload = event.payload if event.leaves is not None else json.dumps(event.payload, ensure_ascii=False)
            out.write(
                f'{{"message_id":"{events.message_id(event.number)}","publish_time":"{published}",'
                f'"idempotency_key":"{key}","payload":{payload}}}\n'
            )
    return file


def schema_text(topic: str, *, curated: bool = True) -> bytes:
    """The schema of a topic of such events: 28 typed columns, rules on most of them."""
    columns = {
        column_of(leaf): {"json_path": f"$.{leaf}", **rules} for leaf, rules in LEAVES.items() if rules is not None
    }
    envelope = {"message_id": {"type": "STRING", "required": True}, "publish_time": {"type": "TIMESTAMP"}}
    return json.dumps(
        {
            "schema_version": "1.0.0",
            "table_name": topic,
            "envelope_columns": envelope,
            "payload_columns": columns,
            "version_column": column_of("occurredAt"),
            "zones": ["standardized", "curated"] if curated else ["standardized"],
        }
    ).encode()


def column_of(leaf: str) -> str:
    """The Standardized column of a leaf's path."""
    return leaf.replace(".", "_").lower()


def _chunk(begin: int, count: int, seed: int) -> Iterator[Event]:
    """Events whose values depend on the seed and their numbers alone."""
    dice = np.random.Generator(np.random.PCG64([seed, begin]))
    columns = _columns(begin, count, dice)
    rare = dice.integers(0, _RARE, (4, count)).tolist()
    draws = dice.integers(0, 1 << 30, count).tolist()
    for place, texts in enumerate(zip(*columns, strict=True)):
        event = _plain(begin + place, texts)
        if rare[1][place] < _DRIFT:
            event = _with_drift(event, draws[place])
        if rare[2][place] < _TYPES:
            event = _with_other_type(event, draws[place])
        if rare[3][place] < _TWICE:
            event = _with_key_twice(event)
        yield _broken(event, draws[place]) if rare[0][place] < _MALFORMED else event


def _columns(begin: int, count: int, dice: np.random.Generator) -> list[list[str]]:
    """The JSON text of each leaf, column by column."""
    numbers = range(begin, begin + count)
    hexes = [f"{value:016x}" for value in dice.integers(0, 1 << 62, count).tolist()]

    def some(limit: int) -> list[int]:
        drawn: list[int] = dice.integers(0, limit, count).tolist()
        return drawn

    def one_of(*texts: str) -> list[str]:
        return [f'"{texts[value]}"' for value in some(len(texts))]

    def quoted(texts: Iterator[str]) -> list[str]:
        return [f'"{text}"' for text in texts]

    times = [START + timedelta(milliseconds=number * 7) for number in numbers]
    names = some(len(_CITIES))
    return [
        quoted(f"e-{number:012d}" for number in numbers),
        quoted(f"s-{text}" for text in hexes),
        one_of("Login", "Logout", "View", "Click", "Purchase"),
        [str(1 + value) for value in some(9)],
        quoted(f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z" for time in times),
        [str(int(time.timestamp() * 1000)) for time in times],
        [str(100_000 + value) for value in some(900_000)],
        quoted(f"Alex {_CITIES[name]}" for name in names),
        quoted(f"alex.{text[:6]}@example.com" for text in hexes),
        one_of("DE", "FR", "NL", "PL", "ES", "IT"),
        one_of("gold", "silver", "bronze"),
        ["true" if value else "false" for value in some(2)],
        quoted(f"{1940 + value % 65}-{1 + value % 12:02d}-{1 + value % 28:02d}" for value in some(10_000)),
        quoted(f"d-{text[4:]}" for text in hexes),
        one_of("Android", "iOS", "Windows", "Linux"),
        one_of("shop", "shop-lite", "scanner"),
        quoted(f"5.{value % 20}.{value % 7}" for value in some(1000)),
        [str(50_000 + value) for value in some(5_000)],
        [f"0.{value:02d}" for value in some(100)],
        ["true" if value else "false" for value in some(2)],
        quoted(f"AB-{10_000_000 + number}" for number in numbers),
        [f"{value // 100}.{value % 100:02d}" for value in some(500_000)],
        one_of("EUR", "EUR", "PLN", "SEK"),
        [f"{value}.{value}0" for value in some(10)],
        [str(1 + value) for value in some(20)],
        ["true" if value else "false" for value in some(2)],
        quoted(f"2026-0{1 + value % 9}-{1 + value % 28:02d}" for value in some(1000)),
        [f'["t{value % 7}","t{value % 11}"]' for value in some(1000)],
        [f"{40 + value % 20}.{value:06d}" for value in some(1_000_000)],
        [f"{value % 30}.{value:06d}" for value in some(1_000_000)],
        quoted(_NOTE[value % 5 :] for value in some(1000)),
    ]


def _plain(number: int, texts: tuple[str, ...]) -> Event:
    leaves = {leaf: text.strip('"') if text[0] == '"' else text for leaf, text in zip(LEAVES, texts, strict=True)}
    return Event(number, _TEMPLATE % texts, leaves)


def _with_drift(event: Event, draw: int) -> Event:
    """One to three keys that most events lack."""
    added = {f"ext.k{(draw >> (7 * place)) % _DRIFT_KEYS:02d}": f"{draw % 1000}.50" for place in range(1 + draw % 3)}
    members = ",".join(f'"{leaf[4:]}":{text}' for leaf, text in added.items())
    return Event(event.number, f'{event.payload[:-1]},"ext":{{{members}}}}}', {**(event.leaves or {}), **added})


def _with_other_type(event: Event, draw: int) -> Event:
    """A value of another JSON type: number as text, boolean as text, an object as a text, a text as an object."""
    leaves = dict(event.leaves or {})
    way = draw % 4
    if way == 0:
        changed = _replaced(event.payload, f'"amount":{leaves["order.amount"]}', '"amount":"to be told"')
        leaves["order.amount"] = "to be told"
    elif way == 1:
        changed = _replaced(event.payload, f'"premium":{leaves["user.premium"]}', '"premium":"in March"')
        leaves["user.premium"] = "in March"
    elif way == 2:
        begin, end = event.payload.index('"geo":{'), event.payload.index('},"note"')
        changed = f'{event.payload[:begin]}"geo":"unknown"{event.payload[end + 1 :]}'
        leaves = {leaf: text for leaf, text in leaves.items() if not leaf.startswith("geo.")} | {"geo": "unknown"}
    else:
        changed = _replaced(event.payload, f'"name":"{leaves["user.name"]}"', '"name":{"first":"Alex"}')
        del leaves["user.name"]
        leaves["user.name.first"] = "Alex"
    return Event(event.number, changed, leaves)


def _with_key_twice(event: Event) -> Event:
    """A key that comes twice: the last one counts."""
    changed = f'{event.payload[:-1]},"type":"Click"}}'
    return Event(event.number, changed, {**(event.leaves or {}), "type": "Click"})


def _broken(event: Event, draw: int) -> Event:
    """No JSON any more, in one of six ways."""
    payload = event.payload
    ways = (
        payload[: len(payload) * 2 // 3],
        f"{payload[:-1]},}}",
        payload.replace('"', "'"),
        _replaced(payload, '"version":', '"version":0'),
        _replaced(payload, '"version":', '"version":NaN,"v":'),
        f"{payload} }}",
    )
    return Event(event.number, ways[draw % len(ways)], None)


def _replaced(text: str, old: str, new: str) -> str:
    return text.replace(old, new, 1)
