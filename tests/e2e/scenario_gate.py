"""Topics that wait, stay empty, get bad schemas, end at Standardized or are held back: what is sent to them."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.cli import body

ENVELOPE = {
    "message_id": {"type": "STRING", "required": True},
    "idempotency_key": {"type": "STRING", "required": True, "cde": True},
    "publish_time": {"type": "TIMESTAMP", "required": True},
}
BOTH = ["standardized", "curated"]


def schema(topic: str, columns: dict[str, Any], version: str = "1.0.0", **more: Any) -> str:
    """A schema file that leads to Curated unless `zones` says something else."""
    given = {"schema_version": version, "table_name": topic, "envelope_columns": ENVELOPE, "payload_columns": columns}
    return json.dumps({**given, "zones": BOTH, **more}, indent=1)


def message(message_id: str, key: str | None, payload: Any, time: str = "2026-02-03T10:15:30.120Z") -> str:
    """A queue body."""
    return body(message_id, payload, publish_time=time, **({} if key is None else {"idempotency_key": key}))


def written(envelope: str, payload: str) -> str:
    """A queue body whose payload has exactly this text."""
    return f'{{{envelope}, "payload": {payload}}}'


# no schema: the payload's text must not change, so these bodies are written out

METER_PAYLOADS = {
    "8841-77": (
        '{"_metadata": {"idempotencyKeyResource": "meter-42/10", "periodReference": "2026-02",'
        r' "correlationId": "c-9"},  "kWh":1.10 ,"serial": 12345678901234567890, "note": "caf\u00e9 Größe \"ab\" \/"}'
    ),
    "8841-78": '{"kWh": 2e1}',
    "8841-79": '{ "kWh" : 0.125, "note" : null }',
    "8841-80": '{"kWh":7,"serial":"77","note":""}',
}
_METERS = {
    "8841-77": written(
        '"message_id": "8841-77", "publish_time": "2026-02-03T10:15:30.120Z"', METER_PAYLOADS["8841-77"]
    ),
    "8841-78": written(
        '"messageId": "8841-78", "publishTime": "2026-02-03T11:20:00+01:00", "idempotency_key": "meter-42/11"',
        json.dumps(METER_PAYLOADS["8841-78"]),  # a string, whose own text is the payload
    ),
    "8841-79": written(
        '"message_id":"8841-79","publish_time":"2026-02-03T23:59:59.999999999Z","idempotency_key":"meter-43/1"',
        METER_PAYLOADS["8841-79"],
    ),
    "8841-80": written(
        '"message_id":"8841-80","publish_time":"2026-02-04T00:00:00Z","idempotency_key":"meter-43/2"',
        METER_PAYLOADS["8841-80"],
    ),
}
METER_SCHEMA = schema(
    "meter_readings",
    {
        "kwh": {"json_path": "$.kWh", "type": "DECIMAL(12,3)", "required": True, "min": 0},
        "serial": {},
        "note": {},
        "period": {"json_path": "$._metadata.periodReference"},
    },
)
METER_STANDARDIZED = {
    "8841-77": {"kwh": "1.10", "serial": "12345678901234567890", "note": 'café Größe "ab" /'},
    "8841-78": {"kwh": "2e1"},
    "8841-79": {"kwh": "0.125"},
    "8841-80": {"kwh": "7", "serial": "77", "note": ""},
}
METER_CURATED = {
    "8841-77": {"kwh": "1.100", "serial": "12345678901234567890", "note": 'café Größe "ab" /', "period": "2026-02"},
    "8841-78": {"kwh": "20.000"},
    "8841-79": {"kwh": "0.125"},
    "8841-80": {"kwh": "7.000", "serial": "77"},
}

# an empty flow

_BEATS = [
    message("hb-1", "web-1", {"host": "web-1", "up": True, "load": 0.25}),
    message("hb-2", "web-2", {"host": "web-2", "up": False}),
]

# invalid schemas

SHIPMENT_COLUMNS: dict[str, Any] = {"parcel": {"cde": True}, "kg": {"type": "DECIMAL(6,2)"}}
BAD_FIRST = schema("shipments", {"kg": {"type": "FLOAT"}, "topic_name": {}}, version="one", colour="red")
BAD_FIRST_PROBLEMS = [
    ("$.schema_version", "wrong value"),
    ("$.payload_columns.kg.type", "wrong value"),
    ("$.colour", "unknown key"),
    ("$.payload_columns.topic_name", "this name belongs to an envelope or audit column"),
]
INVOICE_COLUMNS: dict[str, Any] = {"number": {"cde": True}, "total": {"type": "DECIMAL(10,2)", "min": 0}}
BAD_LATER = schema("invoices", {"number": {"cde": "yes"}, "total": {"type": "MONEY"}}, "1.1.0", zones=["curated"])
BAD_LATER_PROBLEMS = [
    ("$.payload_columns.number.cde", "wrong value"),
    ("$.payload_columns.total.type", "wrong value"),
    ("$.zones", "not a way that exists"),
]
BREAKING = schema(
    "invoices",
    {"total": {"type": "DECIMAL(10,2)", "min": 1}, "due": {"json_path": "$.due", "type": "DATE", "required": True}},
    version="2.0.0",
)

BREAKING_PROBLEMS = [
    ("$.payload_columns.number", "breaks the active schema: column removed"),
    ("$.payload_columns.total.min", "breaks the active schema: rule tightened"),
    ("$.payload_columns.due", "breaks the active schema: required column added"),
]

# where it ends, who holds it back

AUDIT_COLUMNS: dict[str, Any] = {"actor": {"cde": True}, "action": {"enum": ["login", "logout"]}}
# how it is shut and opened, the runs that skip and take it, its gate in `status`, and why a run skips it
HOLDS = {
    "refunds": ("pause", "resume", "first run", "second run", "PAUSED: year-end closing", "paused: year-end closing"),
    "coupons": ("disable", "enable", "second run", "third run", "DISABLED", "disabled"),
}

CURATED = {
    "heartbeats": {"hb-1": {"host": "web-1", "up": True, "load": 0.25}, "hb-2": {"host": "web-2", "up": False}},
    "shipments": {
        "sh-1": {"parcel": "S-1", "kg": "1.50"},
        "sh-2": {"parcel": "S-2"},
        "sh-3": {"parcel": "S-3", "kg": "2.00"},
    },
    "invoices": {"in-1": {"number": "I-1", "total": "10.50"}, "in-2": {"number": "I-2", "total": "20.00"}},
    "refunds": {"re-1": {"amount": "5.00"}, "re-2": {"amount": "6.50"}},
    "coupons": {"co-1": {"code": "SPRING"}, "co-2": {"code": "SUMMER"}},
}

DAYS: dict[int, dict[str, list[str]]] = {
    1: {
        "meter_readings": [_METERS["8841-77"], _METERS["8841-78"], _METERS["8841-79"]],
        "heartbeats": _BEATS,
        "shipments": [message("sh-1", "S-1", {"parcel": "S-1", "kg": 1.5}), message("sh-2", "S-2", {"parcel": "S-2"})],
        "invoices": [message("in-1", "I-1", {"number": "I-1", "total": 10.5})],
        "audits": [
            message("au-1", "a-1", {"actor": "u-7", "action": "login"}),
            message("au-2", "a-2", {"actor": "u-8", "action": "delete"}),
        ],
        "refunds": [message("re-1", "R-1", {"amount": "5.00"})],
        "coupons": [message("co-1", "C-1", {"code": "SPRING"})],
    },
    2: {
        "meter_readings": [_METERS["8841-80"], _METERS["8841-77"]],
        "heartbeats": [_BEATS[0], _BEATS[1], _BEATS[1]],
        "shipments": [message("sh-3", "S-3", {"parcel": "S-3", "kg": "2"}, "2026-02-04T08:00:00Z")],
        "invoices": [message("in-2", "I-2", {"number": "I-2", "total": "20"}, "2026-02-04T08:00:00Z")],
        "refunds": [message("re-2", "R-2", {"amount": "6.5"}, "2026-02-04T08:00:00Z")],
        "coupons": [message("co-2", "C-2", {"code": "SUMMER"}, "2026-02-04T08:00:00Z")],
    },
    3: {},
}
SCHEMAS: dict[int, dict[str, str]] = {
    1: {
        "heartbeats": schema(
            "heartbeats", {"host": {"cde": True}, "up": {"type": "BOOLEAN"}, "load": {"type": "DOUBLE"}}
        ),
        "silence": schema("silence", {"a": {}}),
        "invoices": schema("invoices", INVOICE_COLUMNS),
        "audits": schema("audits", AUDIT_COLUMNS, zones=["standardized"]),
        "refunds": schema("refunds", {"amount": {"type": "DECIMAL(10,2)"}}),
        "coupons": schema("coupons", {"code": {}}),
    },
    2: {
        "meter_readings": METER_SCHEMA,
        "shipments": schema("shipments", SHIPMENT_COLUMNS),
        "audits": schema("audits", AUDIT_COLUMNS, "1.1.0"),
    },
}
