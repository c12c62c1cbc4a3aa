"""What the demo's three topics look like: payloads that fit the example schemas, and payloads that do not."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lean_ops.operate.demo_day import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from random import Random

    _Changes: TypeAlias = Mapping[Kind, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a message is about: its key, and the time that it speaks of."""

    key: str
    at: datetime

    @property
    def name(self) -> str:
        """The key without the part that tells runs of the demo apart."""
        return self.key.rpartition("/")[2]

    @property
    def number(self) -> int:
        """The key's number; all messages of a key share what follows from it."""
        return int(self.key.rpartition("-")[2])


@dataclass(frozen=True, slots=True)
class Shape:
    """A topic: how its keys begin, the body's members beside id and time, and what other kinds of bodies change.

    `changes` has values by kind and JSON pointer; `numbers` are those of these pointers where text is drift.
    """

    topic: str
    prefix: str
    body: Callable[[Subject, Random], dict[str, Any]]
    changes: _Changes
    numbers: frozenset[str]


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


def _parts(pointer: str) -> tuple[str, str]:
    """A pointer's first key, and the pointer from there on; empty at its end."""
    first, slash, rest = pointer.removeprefix("/").partition("/")
    return first, slash + rest


def _event(subject: Subject, random: Random) -> dict[str, Any]:
    """The key, the period and the correlation id stand in the payload's own metadata."""
    user = subject.number % 40
    metadata = {
        "idempotencyKeyResource": subject.key,
        "periodReference": f"{subject.at:%Y-%m}",
        "correlationId": f"c-{random.randrange(10**6):06d}",
    }
    event = {
        "userId": f"u-{user}",
        "eventType": random.choice(("Login", "Logout", "View", "Click", "Purchase")),
        "timestamp": subject.at.isoformat(),
        "applicationId": random.randrange(1, 9),
        "metadata": {
            "ipAddress": f"10.0.{user}.{random.randrange(1, 255)}",
            "deviceId": f"d-{user}",
            "userAgent": random.choice(("Firefox/128.0", "Safari/17.5", "okhttp/4.12")),
        },
    }
    return {"payload": {"_metadata": metadata, "sessionId": f"s-{subject.number // 5}", "event": event}}


def _order(subject: Subject, random: Random) -> dict[str, Any]:
    customer = 1000 + subject.number % 60
    payload = {
        "orderId": subject.name,
        "customer": {"id": customer, "email": f"customer{customer}@example.com"},
        "status": random.choice(("placed", "paid", "shipped", "delivered", "cancelled")),
        "amount": Decimal(random.randrange(100, 50_000)).scaleb(-2),
        "currency": random.choice(("EUR", "USD", "GBP")),
        "items": {"count": random.randrange(1, 9), "skus": [f"sku-{random.randrange(100)}"]},
        "shipping": {"express": random.random() < 0.2},
        "orderDate": f"{subject.at:%Y-%m-%d}",
        "last_updated_ts": subject.at.isoformat(),
    }
    return {"idempotency_key": subject.key, "payload": payload}


def _reading(subject: Subject, random: Random) -> dict[str, Any]:
    payload = {
        "meter": {
            "id": subject.name,
            "fw-version": random.choice(("1.4.0", "1.4.1", "2.0.0")),
            "batteryMillivolt": random.randrange(2900, 3700),
        },
        "measuredAt": int(subject.at.timestamp() * 1000),
        "reading": {
            "value": Decimal(random.randrange(10**9)).scaleb(-4),
            "unit": random.choice(("kWh", "m3")),
            "quality": round(random.uniform(0.8, 1), 3),
            "estimated": random.random() < 0.1,
        },
    }
    return {"idempotency_key": subject.key, "period_reference": f"{subject.at:%Y-%m}", "payload": payload}


_EVENT_CHANGES: Final[_Changes] = {
    Kind.NEW_KEY: {"/event/appVersion": "4.2.0"},
    Kind.TYPE_CHANGE: {"/event/applicationId": "7"},
    Kind.INCOMPLETE: {"/event/userId": None},
    Kind.WRONG_TYPE: {"/event/timestamp": "yesterday at noon"},
    Kind.BROKEN_RULE: {"/event/eventType": "Teleport"},
}
_ORDER_CHANGES: Final[_Changes] = {
    Kind.NEW_KEY: {"/loyalty/tier": "gold", "/loyalty/points": 120},
    Kind.TYPE_CHANGE: {"/customer/id": "1042"},
    Kind.INCOMPLETE: {"/customer/id": None},
    Kind.WRONG_TYPE: {"/amount": Decimal("19.995")},  # a third digit after the point is not rounded away
    Kind.BROKEN_RULE: {"/amount": Decimal("-4.50"), "/currency": "euro"},
}
_READING_CHANGES: Final[_Changes] = {
    Kind.NEW_KEY: {"/meter/signalDbm": -71},
    Kind.TYPE_CHANGE: {"/reading/value": "1204.5000"},
    Kind.INCOMPLETE: {"/meter/id": None},
    Kind.WRONG_TYPE: {"/meter/batteryMillivolt": "low"},
    Kind.BROKEN_RULE: {"/reading/quality": 1.2},
}
SHAPES: Final = {
    shape.topic: shape
    for shape in (
        Shape("events", "act", _event, _EVENT_CHANGES, frozenset({"/event/applicationId"})),
        Shape("orders", "EU", _order, _ORDER_CHANGES, frozenset({"/customer/id"})),
        Shape(
            "readings", "meter", _reading, _READING_CHANGES, frozenset({"/reading/value", "/meter/batteryMillivolt"})
        ),
    )
}
