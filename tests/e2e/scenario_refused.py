"""Topics whose records are refused: at the door, by the parser, by the schema; and where they must be then."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from tests.e2e.scenario_gate import message, schema, written

# parse errors: payload in the body, its text in RAW, type, message

_BROKEN: list[tuple[Any, str | None, str, str]] = [
    (None, None, "EMPTY_PAYLOAD", "the payload is NULL"),
    ("", "", "EMPTY_PAYLOAD", "the payload is empty or blank"),
    (" \t\n", " \t\n", "EMPTY_PAYLOAD", "the payload is empty or blank"),
    ('{"page": ', '{"page": ', "INVALID_JSON", "Expecting value: line 1 column 10 (character 9)"),
    (
        "{'page': 1}",
        "{'page': 1}",
        "INVALID_JSON",
        "Expecting property name enclosed in double quotes: line 1 column 2 (character 1)",
    ),
    ('{"page": 1} {}', '{"page": 1} {}', "INVALID_JSON", "Extra data: line 1 column 13 (character 12)"),
    ('{"page": NaN}', '{"page": NaN}', "INVALID_JSON", "NaN is not a JSON value"),
    (
        '\ufeff{"page": 1}',
        '\ufeff{"page": 1}',
        "INVALID_JSON",
        "a byte-order mark stands before the JSON text",
    ),
    (
        '{"page": "\\ud800"}',
        '{"page": "\\ud800"}',
        "INVALID_JSON",
        "a lone surrogate near character 10",
    ),
    ([1, {"page": 2}], '[1, {"page": 2}]', "NOT_AN_OBJECT", "valid JSON, but an array, not an object"),
    (42, "42", "NOT_AN_OBJECT", "valid JSON, but a number, not an object"),
    (True, "true", "NOT_AN_OBJECT", "valid JSON, but a boolean, not an object"),
    ('"page"', '"page"', "NOT_AN_OBJECT", "valid JSON, but a string, not an object"),
    ("null", "null", "NOT_AN_OBJECT", "valid JSON, but null, not an object"),
]


def _click(number: int, payload: Any, time: str = "2026-02-03T10:15:30.120Z") -> str:
    return message(f"cl-{number:02d}", f"visit-{number}", payload, time)


CLICK_DAYS = {
    1: [
        *(_click(number, broken[0]) for number, broken in enumerate(_BROKEN)),
        *(_click(number, {"page": f"/{number}"}) for number in (50, 51)),
    ],
    # 2 of 23 can't be read, then 1 of 20 breaks a rule; a sound copy of what was refused comes too late
    2: [
        _click(0, {"page": "/0"}),
        *(_click(number, {"page": f"/{number}"}, "2026-02-04T10:00:00Z") for number in range(52, 71)),
        _click(71, {"page": " "}, "2026-02-04T10:00:00Z"),
        *(_click(number, "oops", "2026-02-04T10:00:00Z") for number in (14, 15)),
    ],
}
CLICK_SCHEMA = schema("clicks", {"page": {"cde": True}})
_OOPS = ("oops", "INVALID_JSON", "Expecting value: line 1 column 1 (character 0)")
# message, key, payload, type, message
CLICK_ERRORS = [
    *((f"cl-{number:02d}", f"visit-{number}", *broken[1:]) for number, broken in enumerate(_BROKEN)),
    ("cl-14", "visit-14", *_OOPS),
    ("cl-15", "visit-15", *_OOPS),
]
CLICKS_CURATED = {f"cl-{number}": {"page": f"/{number}"} for number in range(50, 71)}
CLICKS_STANDARDIZED = {**CLICKS_CURATED, "cl-71": {"page": " "}}

# rules

PII_KEY = "a key for scenarios only"
PAYMENT_SCHEMA = schema(
    "payments",
    {
        "payment_id": {"json_path": "$.paymentId", "cde": True, "pattern": "P-[0-9]{4}"},
        "amount": {"type": "DECIMAL(10,2)", "required": True, "min": 0, "max": 10000},
        "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
        "paid_at": {"json_path": "$.paidAt", "type": "TIMESTAMP", "cde": True},
        "booked_on": {"json_path": "$.bookedOn", "type": "DATE"},
        "attempts": {"type": "INT"},
        "terminal": {"type": "BIGINT"},
        "rate": {"type": "DOUBLE"},
        "instant": {"type": "BOOLEAN", "default": False},
        "settled_at": {"json_path": "$.settledMs", "type": "TIMESTAMP", "format": "epoch_ms"},
        "email": {"json_path": "$.payer.email", "pii": "hash"},
        "iban": {"json_path": "$.payer.iban", "pii": "mask", "pattern": "[A-Z]{2}[0-9]{20}"},
        "phone": {"json_path": "$.payer.phone", "pii": "drop"},
    },
)
_PAYER = '{"email": "ann@example.org", "iban": "DE12500105170648489890", "phone": "+49 30 1234"}'
_IBAN = "******************9890"
_PAID = "2026-02-03T10:15:29Z"


def hashed(text: str) -> str:
    """What `pii: hash` makes of a text."""
    return hmac.new(PII_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


def _payment(number: int, key: str | None, payload: str, day: int = 3) -> str:
    envelope = f'"message_id": "pa-{number:02d}", "publish_time": "2026-02-0{day}T10:15:30.120Z"'
    return written(envelope if key is None else f'{envelope}, "idempotency_key": "{key}"', payload)


def _sound(number: int, amount: str, key: str | None = None) -> str:
    payload = f'{{"paymentId": "{key or f"P-00{number}"}", "amount": {amount}, "paidAt": "{_PAID}"}}'
    return _payment(number, key or f"P-00{number}", payload, day=4)


PAYMENT_DAYS = {
    1: [
        _payment(
            1,
            "P-0001",
            '{"paymentId": "P-0001", "amount": 12.50, "currency": "USD", "paidAt": "2026-02-03T11:15:29.5+01:00",'
            ' "bookedOn": "2026-02-03", "attempts": 2, "terminal": 9007199254740993, "rate": 1e-3, "instant": "yes",'
            f' "settledMs": 1770113730123, "undeclared": "stays behind", "payer": {_PAYER}}}',
        ),
        _payment(
            2,
            "P-0002",
            f'{{"paymentId": "P-0002", "amount": "10000", "paidAt": "{_PAID}", "attempts": "", "payer": {{}}}}',
        ),
        _payment(3, "P-0003", f'{{"amount": 3, "paidAt": "  ", "payer": {_PAYER}}}'),
        _payment(
            4,
            "P-0004",
            '{"paymentId": "P-0004", "amount": "12,50", "paidAt": "yesterday", "bookedOn": "03.02.2026",'
            ' "attempts": 1.5, "terminal": 9223372036854775808, "rate": "fast", "instant": "maybe",'
            f' "settledMs": "soon", "payer": {_PAYER}}}',
        ),
        _payment(
            5,
            "P-0005",
            f'{{"paymentId": "X-1", "amount": -0.01, "currency": "GBP", "paidAt": "{_PAID}",'
            ' "payer": {"email": "ann@example.org", "iban": "no account 4711"}}',
        ),
        _payment(6, "P-0006", '{"paymentId": "P-6", "amount": "12.345", "currency": "", "paidAt": null}'),
        _payment(7, None, f'{{"paymentId": "P-0007", "amount": 7, "paidAt": "{_PAID}"}}'),
        _payment(8, "  ", f'{{"paymentId": "P-0008", "amount": 8, "paidAt": "{_PAID}"}}'),
    ],
    # 1 of 10 refused; what was refused under P-0003 comes again, whole
    2: [
        _sound(9, "3", key="P-0003"),
        *(_sound(number, f"{number}.0") for number in range(10, 18)),
        _sound(18, "10000.01"),
    ],
}


def _record(**given: str | None) -> dict[str, str | None]:
    """A refused row's declared columns: what is not given is NULL or has its default."""
    names: list[str] = list(json.loads(PAYMENT_SCHEMA)["payload_columns"])
    return {**dict.fromkeys(names), "currency": "EUR", "instant": "false", **given}


def reasons(row: dict[str, Any]) -> tuple[Any, ...]:
    """Why a row was refused, and what is kept of it."""
    why = (row["idempotency_key"], row["error_type"], row["error_fields"], row["error_message"].split("; "))
    return (*why, json.loads(row["raw_record"]))


_MASKED = {"email": hashed("ann@example.org"), "iban": _IBAN}
# message: key, type, fields, reasons, record
PAYMENT_ERRORS: dict[str, tuple[str | None, str, list[str], list[str], dict[str, str | None]]] = {
    "pa-03": (
        "P-0003",
        "CDE_VIOLATION",
        ["payment_id", "paid_at"],
        ["payment_id: is missing and a critical data element", "paid_at: is missing and a critical data element"],
        _record(amount="3", **_MASKED),
    ),
    "pa-04": (
        "P-0004",
        "TYPE_CAST",
        ["amount", "paid_at", "booked_on", "attempts", "terminal", "rate", "instant", "settled_at"],
        [
            "amount: '12,50' is no DECIMAL(10,2)",
            "paid_at: 'yesterday' is no TIMESTAMP (iso)",
            "booked_on: '03.02.2026' is no DATE",
            "attempts: '1.5' is no INT",
            "terminal: '9223372036854775808' is no BIGINT",
            "rate: 'fast' is no DOUBLE",
            "instant: 'maybe' is no BOOLEAN",
            "settled_at: 'soon' is no TIMESTAMP (epoch_ms)",
        ],
        _record(
            payment_id="P-0004",
            amount="12,50",
            paid_at="yesterday",
            booked_on="03.02.2026",
            attempts="1.5",
            terminal="9223372036854775808",
            rate="fast",
            instant="maybe",
            settled_at="soon",
            **_MASKED,
        ),
    ),
    "pa-05": (
        "P-0005",
        "RULE_VIOLATION",
        ["payment_id", "amount", "currency", "iban"],
        [
            "payment_id: 'X-1' does not match P-[0-9]{4}",
            "amount: '-0.01' is below 0",
            "currency: 'GBP' is not one of EUR, USD",
            "iban: its value (not shown) does not match [A-Z]{2}[0-9]{20}",
        ],
        _record(
            payment_id="X-1",
            amount="-0.01",
            currency="GBP",
            paid_at=_PAID,
            email=_MASKED["email"],
            iban="***********4711",
        ),
    ),
    "pa-06": (
        "P-0006",
        "CDE_VIOLATION",
        ["payment_id", "amount", "paid_at"],
        [
            "payment_id: 'P-6' does not match P-[0-9]{4}",
            "amount: '12.345' is no DECIMAL(10,2)",
            "paid_at: is missing and a critical data element",
        ],
        _record(payment_id="P-6", amount="12.345"),
    ),
    "pa-07": (
        None,
        "CDE_VIOLATION",
        ["idempotency_key"],
        ["idempotency_key: is missing and a critical data element"],
        _record(payment_id="P-0007", amount="7", paid_at=_PAID),
    ),
    "pa-08": (
        "  ",
        "CDE_VIOLATION",
        ["idempotency_key"],
        ["idempotency_key: is missing and a critical data element"],
        _record(payment_id="P-0008", amount="8", paid_at=_PAID),
    ),
    "pa-18": (
        "P-0018",
        "RULE_VIOLATION",
        ["amount"],
        ["amount: '10000.01' is above 10000"],
        _record(payment_id="P-0018", amount="10000.01", paid_at=_PAID),
    ),
}
PAYMENTS_CURATED: dict[str, dict[str, Any]] = {
    "pa-01": {
        "payment_id": "P-0001",
        "amount": "12.50",
        "currency": "USD",
        "paid_at": "2026-02-03T10:15:29.500000Z",
        "booked_on": "2026-02-03",
        "attempts": 2,
        "terminal": 9007199254740993,
        "rate": 0.001,
        "instant": True,
        "settled_at": "2026-02-03T10:15:30.123000Z",
        **_MASKED,
    },
    "pa-02": {"payment_id": "P-0002", "amount": "10000.00", "currency": "EUR", "paid_at": _PAID, "instant": False},
    "pa-09": {"payment_id": "P-0003", "amount": "3.00", "currency": "EUR", "paid_at": _PAID, "instant": False},
    **{
        f"pa-{number}": {
            "payment_id": f"P-00{number}",
            "amount": f"{number}.00",
            "currency": "EUR",
            "paid_at": _PAID,
            "instant": False,
        }
        for number in range(10, 18)
    },
}

# dead letters: body, message id, type, message

_TIME_WANTED = "an RFC 3339 time in the years 1970 to 2100, like 2026-02-03T10:15:30.120Z"
DEAD_LETTERS: list[tuple[str, str | None, str, str]] = [
    (
        "no JSON at all",
        None,
        "MALFORMED_JSON",
        "not a JSON object: expected an object, found 'n' at character 1",
    ),
    (
        '["pc-2"]',
        None,
        "MALFORMED_JSON",
        "not a JSON object: expected an object, found an array at character 1",
    ),
    (
        '{"message_id": "pc-3", "publish_time": "2026-02-03T10:15:30Z"',
        "pc-3",
        "MALFORMED_JSON",
        "not a JSON object: expected ',' or '}', found the end at character 62",
    ),
    (
        '{"message_id": "pc-4", "publish_time": "2026-02-03T10:15:30Z", "data": {}}',
        "pc-4",
        "INVALID_CONTRACT",
        "payload: found no such member, expected any JSON value, null included",
    ),
    (
        '{"message_id": "pc-5", "publish_time": "2026-02-30T10:15:30Z", "payload": {}}',
        "pc-5",
        "INVALID_CONTRACT",
        f'publish_time: found "2026-02-30T10:15:30Z", expected {_TIME_WANTED}',
    ),
    (
        '{"message_id": "pc-6", "publish_time": "1969-12-31T23:59:59Z", "payload": {}}',
        "pc-6",
        "INVALID_CONTRACT",
        f'publish_time: found "1969-12-31T23:59:59Z", expected {_TIME_WANTED}',
    ),
    (
        '{"message_id": 7, "publish_time": "2026-02-03T10:15:30Z", "payload": {}}',
        None,
        "INVALID_CONTRACT",
        "message_id: found 7, expected a string that is not empty",
    ),
]
PARCEL_DAYS = {
    1: [
        message("pc-0", "parcel-0", {"to": "Ulm"}),
        *(body for body, *_ in DEAD_LETTERS[:6]),
        message("pc-1", "parcel-1", {"to": "Bonn"}),
    ],
    2: [DEAD_LETTERS[6][0]],  # nothing but a dead letter
}
PARCEL_SCHEMA = schema("parcels", {"to": {}})
