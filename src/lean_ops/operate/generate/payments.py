"""Payments: no version column, so the message that was published last is the newest."""

from __future__ import annotations

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

_METHODS: Final = ("card", "sepa", "wallet")
_STATES: Final = ("authorized", "captured", "refunded", "failed")
_COUNTRIES: Final = ("DE", "NL", "FR", "PL")


def _write(_key: str, number: int, at: str, milliseconds: int, draws: Sequence[int]) -> tuple[str, str]:
    first, second, third, fourth = draws
    payment, order, merchant = f"PAY-{number:010d}", f"EU-{number // 2:08d}", 70 + number % 900
    amount, method, state = f"{first % 500_000 / 100:.2f}", _METHODS[second % 3], _STATES[third % 4]
    account, risk = f"DE{fourth % 10**10:020d}", f"0.{first % 1000:03d}"
    secure, country = "true" if fourth % 3 else "false", _COUNTRIES[second % 4]
    payload = (
        f'{{"paymentId":"{payment}","orderId":"{order}","amount":{{"value":"{amount}","currency":"EUR"}},'
        f'"method":"{method}","status":"{state}","processedAt":{milliseconds // 1000},'
        f'"payer":{{"name":"Payer {number % 5000}","iban":"{account}","country":"{country}",'
        f'"device":{{"os":"os{third % 5}","fingerprint":"{fourth:08x}{first:08x}"}}}},'
        f'"card":{{"brand":"b{second % 4}","last4":"{third % 10_000:04d}","expiry":"12/2{fourth % 10}"}},'
        f'"risk":{{"score":{risk},"rules":["r{first % 9}","r{second % 9}"],"model":"m-2026.1"}},"threeDs":{secure},'
        f'"merchant":{{"id":{merchant},"country":"{country}","category":{5_000 + third % 900}}},'
        f'"attempt":{1 + fourth % 3},"retryOf":null}}'
    )
    curated = (
        f'"payment_id":"{payment}","order_id":"{order}","amount":"{amount}","currency":"EUR","method":"{method}",'
        f'"status":"{state}","processed_at":"{at[:19]}Z","payer_name":null,'
        f'"payer_iban":"{"*" * (len(account) - 4)}{account[-4:]}",'
        f'"risk_score":{risk},"three_ds":{secure},"merchant_id":{merchant},"merchant_country":"{country}"'
    )
    return payload, curated


def _without_key(parts: Parts) -> str:
    return parts._replace(envelope='"idempotency_key":" ",').body


PAYMENTS: Final = Family(
    name="payments",
    prefix="pay",
    by_event_time=False,
    envelope=key_in_envelope,
    write=_write,
    variants={
        Kind.DRIFT: (
            Variant(setting({"/wallet/provider": "applepay"})),
            Variant(setting({"/fees": [{"kind": "scheme", "value": "0.02"}]})),
            Variant(setting({"/settlement": {"batch": 7, "due": "2026-03-01"}})),
        ),
        Kind.REMOVED: (
            Variant(removing("/threeDs"), curated={"three_ds": False}),
            Variant(removing("/risk"), curated={"risk_score": None}),
            Variant(removing("/orderId"), curated={"order_id": None}),
            Variant(removing("/payer"), curated={"payer_name": None, "payer_iban": None}),
        ),
        Kind.TYPE_CHANGE: (
            same_value("/amount/value", "amount", 12.5, "12.50"),
            same_value("/merchant/id", "merchant_id", "77", 77),
            same_value("/threeDs", "three_ds", "t", True),
            same_value("/risk/score", "risk_score", "0.25", 0.25),
            Variant(setting({"/card": "none"})),
        ),
        Kind.CDE_NULL: (
            *critical("/paymentId", "payment_id"),
            *critical("/merchant/id", "merchant_id"),
            *critical("/processedAt", "processed_at"),
            Variant(setting({"/amount": 12}), wrong("CDE_VIOLATION", "amount")),
            Variant(_without_key, wrong("CDE_VIOLATION", "idempotency_key")),
        ),
        Kind.BAD_TYPE: (
            *ill_typed("/amount/value", "amount", "12,50", "12.505", "NaN"),
            *ill_typed("/merchant/id", "merchant_id", "m-77", 1e30),
            *ill_typed("/threeDs", "three_ds", "si"),
        ),
        Kind.BAD_TIMESTAMP: (*ill_typed("/processedAt", "processed_at", "2026-02-03T10:15:30Z", 10**15, "later"),),
        Kind.BROKEN_RULE: (
            *forbidden("/amount/value", "amount", "-0.01"),
            *forbidden("/method", "method", "cash"),
            *forbidden("/status", "status", "pending"),
            *forbidden("/risk/score", "risk_score", 1.01),
            *forbidden("/merchant/country", "merchant_country", "Germany", "de"),
        ),
        Kind.COMBINED: (
            Variant(
                setting({"/paymentId": None, "/method": "cash", "/amount/value": "x"}),
                wrong("CDE_VIOLATION", "payment_id", "method", "amount"),
            ),
            Variant(setting({"/merchant/id": "m", "/status": "?"}), wrong("TYPE_CAST", "merchant_id", "status")),
        ),
    },
    enhancement=Enhancement("wallet_provider", {"json_path": "$.wallet.provider", "type": "STRING"}, "applepay"),
)
