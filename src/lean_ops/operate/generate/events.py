"""Clickstream: what users do; key, period and correlation id stand in the payload's own metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lean_ops.operate.generate.family import Enhancement, Family
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

_TYPES: Final = ("Login", "Logout", "View", "Click", "Purchase")
_AGENTS: Final = ("Firefox/128.0", "Safari/17.5", "okhttp/4.12", "Chrome/126.0 Mobile")
_PAGES: Final = ("home", "search", "basket", "checkout", "account")


def _write(key: str, number: int, at: str, _: int, draws: Sequence[int]) -> tuple[str, str]:
    first, second, third, fourth = draws
    user, kind, agent = number % 4_000, _TYPES[first % 5], _AGENTS[second % 4]
    page, application, session = _PAGES[third % 5], 1 + fourth % 8, number // 5
    address = f"10.{user % 200}.{first % 250}.{second % 250}"
    correlation = f"c-{third % 1_000_000:06d}"
    payload = (
        f'{{"_metadata":{{"idempotencyKeyResource":"{key}","periodReference":"{at[:7]}","correlationId":"{correlation}",'
        f'"producer":"web-{fourth % 12}","contract":"3"}},"sessionId":"s-{session}",'
        f'"event":{{"userId":"u-{user}","eventType":"{kind}","timestamp":"{at}","applicationId":{application},'
        f'"durationMs":{first % 60_000},"page":{{"name":"{page}","url":"https://shop.example/{page}?p={second % 90}",'
        f'"referrer":"https://search.example/?q={third % 999}","depth":{fourth % 40}}},'
        f'"metadata":{{"ipAddress":"{address}","deviceId":"d-{user}","userAgent":"{agent}",'
        f'"locale":"de-DE","screen":{{"width":{1_000 + first % 920},"height":{700 + second % 380},"ratio":1.50}},'
        f'"consent":{{"analytics":true,"ads":false}},"tags":["a{third % 9}","b"]}}}}}}'
    )
    hidden = "*" * (len(address) - 4) + address[-4:]
    curated = (
        f'"session_id":"s-{session}","user_id":"u-{user}","event_type":"{kind}","event_timestamp":"{at}",'
        f'"application_id":{application},"ip_address":"{hidden}","device_id":"d-{user}","user_agent":"{agent}",'
        f'"period_reference":"{at[:7]}","correlation_id":"{correlation}"'
    )
    return payload, curated


def _no_envelope(_key: str, _at: str) -> str:
    return ""


_TIME: Final = "/event/timestamp"
EVENTS: Final = Family(
    name="events",
    prefix="act",
    by_event_time=True,
    envelope=_no_envelope,
    write=_write,
    variants={
        Kind.DRIFT: (
            Variant(setting({"/event/appVersion": "4.2.0"})),
            Variant(setting({"/event/experiment": {"name": "blue", "arm": 2}})),
            Variant(setting({"/campaigns": ["spring", "mail"]})),
        ),
        Kind.REMOVED: (
            Variant(removing("/event/applicationId"), curated={"application_id": -1}),
            Variant(removing("/event/metadata/userAgent"), curated={"user_agent": None}),
            Variant(removing("/sessionId"), curated={"session_id": None}),
            Variant(removing("/event/page", "/event/durationMs")),
        ),
        Kind.TYPE_CHANGE: (
            same_value("/event/applicationId", "application_id", "7", 7),
            same_value("/event/applicationId", "application_id", 7.0, 7),
            same_value("/sessionId", "session_id", 12345, "12345"),
            Variant(setting({"/event/page": "home"})),
            Variant(setting({"/event/metadata/tags": {"a": 1}})),
        ),
        Kind.CDE_NULL: (
            *critical("/event/userId", "user_id"),
            *critical(_TIME, "event_timestamp"),
            *critical("/event/eventType", "event_type"),
            Variant(removing("/_metadata/idempotencyKeyResource"), wrong("CDE_VIOLATION", "idempotency_key")),
        ),
        Kind.BAD_TYPE: (*ill_typed("/event/applicationId", "application_id", "seven", 1.5, 2**31, True, [1]),),
        Kind.BAD_TIMESTAMP: (
            *ill_typed(_TIME, "event_timestamp", "yesterday at noon", "2026-13-01T00:00:00Z", "2026-02-30T10:00:00Z"),
            *ill_typed(_TIME, "event_timestamp", "2026-02-03", 1770113730),
        ),
        Kind.BROKEN_RULE: (*forbidden("/event/eventType", "event_type", "Teleport", "login", 7),),
        Kind.COMBINED: (
            Variant(
                setting({"/event/userId": None, "/event/applicationId": "x", "/event/eventType": "?"}),
                wrong("CDE_VIOLATION", "user_id", "application_id", "event_type"),
            ),
            Variant(
                setting({_TIME: "never", "/event/eventType": "?"}), wrong("TYPE_CAST", "event_timestamp", "event_type")
            ),
        ),
    },
    enhancement=Enhancement("app_version", {"json_path": "$.event.appVersion", "type": "STRING"}, "4.2.0"),
)
