"""Orders of a shop: a change of an order is a new message with the same key."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from lean_ops.operate.generate.family import Enhancement, Family, key_in_envelope
from lean_ops.operate.generate.kinds import Kind
from lean_ops.operate.generate.variants import (
    Variant,
    critical,
    forbidden,
    ill_typed,
    removing,
    same_value,
    setting,
    wrong,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.operate.generate.variants import Parts

_STATES: Final = ("placed", "paid", "shipped", "delivered", "cancelled")
_CURRENCIES: Final = ("EUR", "USD", "GBP")
_CITIES: Final = ("Köln", "São Paulo", "Zürich", "Łódź", "Oslo")


def _write(_key: str, number: int, at: str, _: int, draws: Sequence[int]) -> tuple[str, str]:
    first, second, third, fourth = draws
    customer, state, currency = 1_000 + number % 60_000, _STATES[first % 5], _CURRENCIES[second % 3]
    amount, count = f"{third % 90_000 / 100:.2f}", 1 + fourth % 9
    express, order = "true" if second % 5 == 0 else "false", f"EU-{number % 10**10:08d}"
    email = f"customer{customer}@example.com"
    payload = (
        f'{{"orderId":"{order}","customer":{{"id":{customer},"email":"{email}","segment":"s{first % 7}",'
        f'"address":{{"city":"{_CITIES[third % 5]}","zip":"{fourth % 99_999:05d}","country":"DE"}}}},'
        f'"status":"{state}","amount":{amount},"currency":"{currency}",'
        f'"items":{{"count":{count},"skus":["sku-{first % 100}","sku-{second % 100}"],'
        f'"lines":[{{"sku":"sku-{first % 100}","qty":{count},"price":{amount}}}]}},'
        f'"shipping":{{"express":{express},"carrier":"c{third % 4}","weight":{fourth % 30_000 / 1000:.3f}}},'
        f'"channel":"shop-{second % 6}","note":"leave it at door no. {third % 20}",'
        f'"orderDate":"{at[:10]}","last_updated_ts":"{at}"}}'
    )
    curated = (
        f'"order_id":"{order}","customer_id":{customer},"customer_email":"{"*" * (len(email) - 4)}.com",'
        f'"status":"{state}","amount":"{amount}","currency":"{currency}","item_count":{count},"express":{express},'
        f'"ordered_on":"{at[:10]}","updated_at":"{at}"'
    )
    return payload, curated


def _without_key(parts: Parts) -> str:
    return parts._replace(envelope="").body


_TIME: Final = "/last_updated_ts"
ORDERS: Final = Family(
    name="orders",
    prefix="order",
    by_event_time=True,
    envelope=key_in_envelope,
    write=_write,
    variants={
        Kind.DRIFT: (
            Variant(setting({"/loyalty/tier": "gold", "/loyalty/points": 120})),
            Variant(setting({"/gift": True})),
            Variant(setting({"/promotions": [{"code": "A1"}], "/customer/address/floor": 3})),
        ),
        Kind.REMOVED: (
            Variant(removing("/currency"), curated={"currency": "EUR"}),
            Variant(removing("/shipping"), curated={"express": False}),
            Variant(removing("/items"), curated={"item_count": None}),
            Variant(removing("/customer/email", "/orderDate"), curated={"customer_email": None, "ordered_on": None}),
        ),
        Kind.TYPE_CHANGE: (
            same_value("/customer/id", "customer_id", "1042", 1042),
            same_value("/amount", "amount", "19.90", "19.90"),
            same_value("/amount", "amount", 20, "20.00"),
            same_value("/shipping/express", "express", "yes", True),
            Variant(setting({"/items": 3}), curated={"item_count": None}),
            Variant(setting({"/customer/address": "Oslo"})),
        ),
        Kind.CDE_NULL: (
            *critical("/customer/id", "customer_id"),
            *critical("/orderId", "order_id"),
            *critical("/amount", "amount"),
            Variant(setting({"/customer": "c-42"}), wrong("CDE_VIOLATION", "customer_id")),
            Variant(_without_key, wrong("CDE_VIOLATION", "idempotency_key")),
        ),
        Kind.BAD_TYPE: (
            *ill_typed("/amount", "amount", Decimal("19.995"), "much", 123456789.5, [1]),
            *ill_typed("/customer/id", "customer_id", "c-42", 2**63, 1.5),
            *ill_typed("/shipping/express", "express", "maybe", 2),
            *ill_typed("/orderDate", "ordered_on", "2026-02-30", "03.02.2026"),
        ),
        Kind.BAD_TIMESTAMP: (
            *ill_typed(_TIME, "updated_at", "soon", "2026-02-03T25:00:00Z", "2026-02-29T00:00:00Z", 1770113730),
        ),
        Kind.BROKEN_RULE: (
            *forbidden("/amount", "amount", Decimal("-4.50")),
            *forbidden("/currency", "currency", "euro", "E"),
            *forbidden("/status", "status", "lost", "PAID"),
            *forbidden("/items/count", "item_count", 0, 1001),
            *forbidden("/orderDate", "ordered_on", "1999-12-31"),
            *forbidden("/orderId", "order_id", "EU-1", "eu-000001"),
        ),
        Kind.COMBINED: (
            Variant(
                setting({"/amount": Decimal("-4.50"), "/currency": "euro"}),
                wrong("RULE_VIOLATION", "amount", "currency"),
            ),
            Variant(
                setting({"/customer/id": None, "/amount": "much", "/status": "lost"}),
                wrong("CDE_VIOLATION", "customer_id", "amount", "status"),
            ),
        ),
    },
    enhancement=Enhancement("loyalty_tier", {"json_path": "$.loyalty.tier", "type": "STRING"}, "gold"),
)
