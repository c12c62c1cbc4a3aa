"""All scenarios on one home, told once: three days of messages, three runs with work, and what is done in between."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e import scenario_gate as gate
from tests.e2e import scenario_refused as refused
from tests.e2e import scenario_versions as versions
from tests.e2e.scenario_home import Command, Home

TOPICS = (
    *("audits", "clicks", "coupons", "heartbeats", "invoices", "logins", "meter_readings", "orders", "parcels"),
    *("payments", "refunds", "shipments", "silence"),
)
DAYS = {
    "orders": versions.ORDER_DAYS,
    "logins": versions.LOGIN_DAYS,
    "clicks": refused.CLICK_DAYS,
    "payments": refused.PAYMENT_DAYS,
    "parcels": refused.PARCEL_DAYS,
}
SCHEMAS = {
    1: {
        **gate.SCHEMAS[1],
        "shipments": gate.BAD_FIRST,
        "orders": versions.ORDER_SCHEMA,
        "logins": versions.LOGIN_SCHEMA,
        "clicks": refused.CLICK_SCHEMA,
        "payments": refused.PAYMENT_SCHEMA,
        "parcels": refused.PARCEL_SCHEMA,
    },
    2: gate.SCHEMAS[2],
}
# topics whose data waits behind a shut gate, by run
WAITING = {
    "first run": {"meter_readings": 3, "refunds": 1, "shipments": 2},
    "run after dead letters": {},
    "second run": {"coupons": 1},
    "third run": {},
}
_ZONE_ADDED = {"path": "$.zones", "kind": "ZONE_ADDED", "change_class": "ENHANCEMENT"}
# topic, version, class, changes, schema
SCHEMA_HISTORY = [
    *((topic, "1.0.0", "NEW", "[]", text) for topic, text in SCHEMAS[1].items() if topic != "shipments"),
    *((topic, "1.0.0", "NEW", "[]", text) for topic, text in SCHEMAS[2].items() if topic != "audits"),
    (
        *("audits", "1.1.0", "ENHANCEMENT"),
        json.dumps([{**_ZONE_ADDED, "old": "standardized", "new": "standardized, curated"}]),
        SCHEMAS[2]["audits"],
    ),
]


def messages(day: int) -> dict[str, list[str]]:
    """The queue bodies of a day, by topic."""
    return {**gate.DAYS[day], **{topic: days[day] for topic, days in DAYS.items() if day in days}}


def tell(folder: Path) -> Home:
    """The whole story; tests look at what it left behind."""
    home = Home(folder)
    home.path.mkdir()
    (home.path / "lean-ops.toml").write_text(f'pii_key = "{refused.PII_KEY}"\n')
    home.do("init", "init")
    _first_day(home)
    _second_day(home)
    _third_day(home)
    _afterwards(home)
    return home


def _first_day(home: Home) -> None:
    _ingest(home, 1)
    home.do("run before any schema", "run")
    home.do("run before any schema as json", "run", "--json")
    _submit(home, 1)
    home.do("shipments after bad schema", "schema", "show", "shipments", "--json")
    home.do("pause refunds", "pause", "refunds", "--reason", "year-end closing", "--json")
    _run(home, "first run")
    home.do("idle run", "run", "heartbeats", "silence")
    home.do("trace audits", "trace", "au-1", "--json")


def _second_day(home: Home) -> None:
    home.do("invoices before", "schema", "show", "invoices", "--json")
    home.do("disable coupons", "schema", "disable", "coupons", "--json")
    _ingest(home, 2)
    _submit(home, 2)
    home.do("submit bad invoices", *_submission(home, "invoices", "bad", gate.BAD_LATER))
    home.do("submit breaking invoices", *_submission(home, "invoices", "breaking", gate.BREAKING))
    home.do("invoices after", "schema", "show", "invoices", "--json")
    home.do("resume refunds", "resume", "refunds", "--json")
    home.do("status before second run", "status", "--json")
    home.do("run after dead letters", "run", "parcels", "--json")
    _run(home, "second run")


def _third_day(home: Home) -> None:
    home.do("enable coupons", "schema", "enable", "coupons", "--json")
    _ingest(home, 3)
    _run(home, "third run")


def _afterwards(home: Home) -> None:
    home.do("last run", "run", "--json")
    traces = {f"trace {key}": ("trace", "--key", key, "--json") for key in versions.ORDER_FATES}
    traces["trace clicks"] = ("trace", "cl-00", "--json")
    books = {"recount": ("reconcile", "--recount", "--json"), "reconcile": ("reconcile", "--json")}
    home.do_all({**books, **traces})
    home.look("end")


def _run(home: Home, name: str) -> None:
    home.do(name, "run", "--json")
    home.look(name)
    home.do_all({f"status after {name}": ("status", "--json"), f"schemas after {name}": ("schema", "list", "--json")})


def _ingest(home: Home, day: int) -> None:
    files = {topic: home.file(f"{topic}-{day}.jsonl", "\n".join(lines)) for topic, lines in messages(day).items()}
    home.do_all({f"ingest {topic} {day}": ("ingest", topic, file, "--json") for topic, file in files.items()})


def _submit(home: Home, day: int) -> None:
    home.do_all(
        {f"submit {topic} {day}": _submission(home, topic, str(day), text) for topic, text in SCHEMAS[day].items()}
    )


def _submission(home: Home, topic: str, name: str, text: str) -> Command:
    return ("schema", "submit", topic, home.file(f"{topic}-{name}.json", text), "--json")
