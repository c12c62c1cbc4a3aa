"""Topics whose records change: corrections of orders, and logins whose payloads drift."""

from __future__ import annotations

from typing import Any

from tests.e2e.scenario_gate import message, schema

# corrections


def _order(message_id: str, key: str, status: str, version: str, published: str | None = None) -> str:
    payload = {"orderId": key, "status": status, "last_updated_ts": version}
    return message(message_id, f"order/{key}", payload, published or version)


_FIRST_ORDER = _order("o-01", "A-1", "placed", "2026-02-03T10:00:00Z")
ORDER_DAYS = {
    1: [
        _FIRST_ORDER,
        _order("o-02", "B-2", "placed", "2026-02-03T10:05:00Z"),
        # three versions in one batch; the newest was published before the one that came last
        _order("o-03", "C-3", "placed", "2026-02-03T10:10:00Z"),
        _order("o-05", "C-3", "paid", "2026-02-03T10:20:00Z", published="2026-02-03T10:40:00Z"),
        _order("o-04", "C-3", "shipped", "2026-02-03T10:30:00Z"),
    ],
    2: [
        _FIRST_ORDER,  # a retry
        _order("o-06", "A-1", "paid", "2026-02-04T09:00:00Z"),
        _order("o-07", "B-2", "draft", "2026-02-03T08:00:00Z", published="2026-02-04T09:10:00Z"),
    ],
    3: [
        _order("o-09", "A-1", "returned", "2026-06-01T09:00:00Z"),
        _order("o-11", "B-2", "shipped", "2026-06-02T09:00:00Z"),
        _order("o-12", "B-2", "paid", "2026-06-01T09:00:00Z"),
        _order("o-10", "C-3", "delivered", "2026-06-01T10:00:00Z"),
    ],
}
ORDER_MESSAGES = [f"o-{number:02d}" for number in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12)]
ORDER_SCHEMA = schema(
    "orders",
    {
        "order_id": {"json_path": "$.orderId", "cde": True},
        "status": {"required": True},
        "updated_at": {"json_path": "$.last_updated_ts", "type": "TIMESTAMP"},
    },
    version_column="updated_at",
)
# message, key, status, version: what each key shows after each run
ORDERS_CURATED = {
    "first run": [
        ("o-01", "order/A-1", "placed", "2026-02-03T10:00:00Z"),
        ("o-02", "order/B-2", "placed", "2026-02-03T10:05:00Z"),
        ("o-04", "order/C-3", "shipped", "2026-02-03T10:30:00Z"),
    ],
    "second run": [
        ("o-06", "order/A-1", "paid", "2026-02-04T09:00:00Z"),
        ("o-02", "order/B-2", "placed", "2026-02-03T10:05:00Z"),
        ("o-04", "order/C-3", "shipped", "2026-02-03T10:30:00Z"),
    ],
    "third run": [
        ("o-09", "order/A-1", "returned", "2026-06-01T09:00:00Z"),
        ("o-11", "order/B-2", "shipped", "2026-06-02T09:00:00Z"),
        ("o-10", "order/C-3", "delivered", "2026-06-01T10:00:00Z"),
    ],
}
ORDERS_LATEST = {
    "first run": ["o-01", "o-02", "o-05"],
    "second run": ["o-06", "o-07", "o-05"],
    "third run": ["o-09", "o-11", "o-10"],
}
# key: the copies of its messages in RAW, then its Standardized rows, each with its fate
ORDER_FATES = {
    "order/A-1": (
        [("o-01", "standardized"), ("o-01", "duplicate"), ("o-06", "standardized"), ("o-09", "standardized")],
        [("o-01", "replaced"), ("o-06", "replaced"), ("o-09", "curated")],
    ),
    "order/B-2": (
        [("o-02", "standardized"), ("o-07", "standardized"), ("o-12", "standardized"), ("o-11", "standardized")],
        [("o-02", "replaced"), ("o-07", "superseded"), ("o-12", "superseded"), ("o-11", "curated")],
    ),
    "order/C-3": (
        [("o-03", "standardized"), ("o-04", "standardized"), ("o-05", "standardized"), ("o-10", "standardized")],
        [("o-03", "superseded"), ("o-04", "replaced"), ("o-05", "superseded"), ("o-10", "curated")],
    ),
}

# drift


def _login(number: int, payload: dict[str, Any]) -> str:
    metadata = {"idempotencyKeyResource": f"login-{number}", "correlationId": f"c-{number}"}
    return message(f"lo-{number}", None, {"_metadata": metadata, **payload}, f"2026-02-03T10:15:0{number}Z")


def _event(number: int, **more: str) -> dict[str, Any]:
    return {"userId": f"u-{number}", "eventType": "Login", "timestamp": f"2026-02-03T10:15:0{number}Z", **more}


LOGIN_DAYS = {
    1: [_login(each, {"sessionId": f"s-{each}", "attempts": each, "event": _event(each)}) for each in (1, 2, 3)],
    2: [
        _login(4, {"sessionId": "s-4", "attempts": 4, "device": {"model": "M1"}, "event": _event(4)}),  # new column
        _login(5, {"event": _event(5)}),  # missing columns
        _login(6, {"sessionId": "s-6", "attempts": "6", "event": _event(6)}),  # text that casts
        _login(7, {"sessionId": "s-7", "attempts": "many", "event": _event(7)}),  # text that does not
        _login(8, {"sessionId": "s-8", "attempts": 8, "event": _event(8, userid="U8")}),  # collision
        _login(9, {"event": dict(reversed(_event(9).items())), "attempts": 9, "sessionId": "s-9"}),  # another order
    ],
}
LOGIN_SCHEMA = schema(
    "logins",
    {
        "user_id": {"json_path": "$.event.userId"},
        "event_timestamp": {"json_path": "$.event.timestamp", "type": "TIMESTAMP", "cde": True},
        "application_id": {"json_path": "$.event.applicationId", "type": "INT", "default": -1},
        "session_id": {"json_path": "$.sessionId"},
        "attempts": {"type": "INT"},
    },
)
USER_COLUMN = "event_userid__d590"  # the first digits of sha256("/event/userid")
LOGIN_DRIFT = {
    "first run": [
        ("NEW_COLUMN", "/attempts", "attempts", None, "attempts", 3),
        ("NEW_COLUMN", "/event/eventType", "event_eventtype", None, "event_eventtype", 3),
        ("NEW_COLUMN", "/event/timestamp", "event_timestamp", None, "event_timestamp", 3),
        ("NEW_COLUMN", "/event/userId", "event_userid", None, "event_userid", 3),
        ("NEW_COLUMN", "/sessionId", "sessionid", None, "sessionid", 3),
    ],
    "second run": [
        ("TYPE_CHANGE", "/attempts", "attempts", "number", "string", 2),
        ("NEW_COLUMN", "/device/model", "device_model", None, "device_model", 1),
        ("COLLISION", "/event/userid", USER_COLUMN, "/event/userId", USER_COLUMN, 1),
        ("NEW_COLUMN", "/event/userid", USER_COLUMN, None, USER_COLUMN, 1),
    ],
}
LOGINS = {"first run": 3, "second run": 9}  # rows in Standardized
_ENVELOPE = ("topic_name", "message_id", "idempotency_key", "period_reference", "correlation_id", "publish_time")
_FIXED = [*_ENVELOPE, "ingestion_ts", "_extra", "_batch_id"]
_KNOWN = [*_FIXED, "event_timestamp", "event_userid", "sessionid", "attempts", "event_eventtype"]
LOGIN_COLUMNS = {"first run": _KNOWN, "second run": [*_KNOWN, "device_model", USER_COLUMN]}
LOGIN_CURATED_COLUMNS = (
    *(*_ENVELOPE, "ingestion_ts", "user_id", "event_timestamp", "application_id", "session_id", "attempts"),
    *("first_seen_ts", "last_updated_ts", "_schema_version", "_batch_id"),
)


def _standardized(number: int, **more: str) -> dict[str, str]:
    moment = f"2026-02-03T10:15:0{number}Z"
    return {"event_userid": f"u-{number}", "event_eventtype": "Login", "event_timestamp": moment, **more}


def _curated(number: int, **more: Any) -> dict[str, Any]:
    return {
        "user_id": f"u-{number}",
        "event_timestamp": f"2026-02-03T10:15:0{number}Z",
        "application_id": -1,
        **more,
    }


LOGINS_STANDARDIZED = {
    **{f"lo-{number}": _standardized(number, sessionid=f"s-{number}", attempts=str(number)) for number in (1, 2, 3, 9)},
    "lo-4": _standardized(4, sessionid="s-4", attempts="4", device_model="M1"),
    "lo-5": _standardized(5),
    "lo-6": _standardized(6, sessionid="s-6", attempts="6"),
    "lo-7": _standardized(7, sessionid="s-7", attempts="many"),
    "lo-8": {**_standardized(8, sessionid="s-8", attempts="8"), USER_COLUMN: "U8"},
}
LOGINS_CURATED = {
    **{f"lo-{number}": _curated(number, session_id=f"s-{number}", attempts=number) for number in (1, 2, 3, 4, 6, 8, 9)},
    "lo-5": _curated(5),
}
