"""What the demo's three topics look like: payloads that fit the example schemas, and how they drift."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from random import Random


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
    """A topic: how its keys begin, the body's members beside id and time, and what drifts, by JSON pointer."""

    topic: str
    prefix: str
    body: Callable[[Subject, Random], dict[str, Any]]
    new_keys: Mapping[str, Any]
    type_change: Mapping[str, str]


def with_value(payload: Mapping[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """The same payload with another value at a pointer; objects on the way are made if need be."""
    first, _, rest = pointer.removeprefix("/").partition("/")
    inner = with_value(payload.get(first, {}), f"/{rest}", value) if rest else value
    return {**payload, first: inner}


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


SHAPES: Final = {
    shape.topic: shape
    for shape in (
        Shape("events", "act", _event, {"/event/appVersion": "4.2.0"}, {"/event/applicationId": "7"}),
        Shape("orders", "EU", _order, {"/loyalty/tier": "gold", "/loyalty/points": 120}, {"/customer/id": "1042"}),
        Shape("readings", "meter", _reading, {"/meter/signalDbm": -71}, {"/reading/value": "1204.5000"}),
    )
}
