"""What a demo must come to by its own data, and what it came to."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.e2e.cli import CommandLine

from lean_ops.lake.query import QuerySession
from lean_ops.ledger.oracle import Expected
from lean_ops.model.batch import Counts, Zone
from lean_ops.operate.demo import FIRST_SEED, TOPICS, Day, two_days
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

# The numbers do not depend on the start; the message ids do.
DAYS: dict[str, tuple[Day, Day]] = {topic: two_days(topic, datetime(2026, 2, 3, tzinfo=UTC)) for topic in TOPICS}
# Day 1 of orders once more: every message of it is known.
RAW_AGAIN = DAYS["orders"][0].counts(Zone.RAW)
ONCE_MORE = Counts(RAW_AGAIN.inserted, duplicates=RAW_AGAIN.inserted)
# What the second day's batch must find changed: kind, JSON pointer, the new column or type, number of records.
DRIFT = {
    "events": [
        ("NEW_COLUMN", "/campaigns", "campaigns", 3),
        ("NEW_COLUMN", "/event/appVersion", "event_appversion", 3),
        ("NEW_COLUMN", "/event/experiment/arm", "event_experiment_arm", 3),
        ("NEW_COLUMN", "/event/experiment/name", "event_experiment_name", 3),
        ("NEW_COLUMN", "/event/metadata/tags/a", "event_metadata_tags_a", 1),
        ("NEW_COLUMN", "/event/page", "event_page", 1),
        ("TYPE_CHANGE", "/event/applicationId", "array", 1),
        ("TYPE_CHANGE", "/event/applicationId", "boolean", 1),
        ("TYPE_CHANGE", "/event/applicationId", "string", 3),
        ("TYPE_CHANGE", "/event/eventType", "number", 1),
        ("TYPE_CHANGE", "/sessionId", "number", 1),
    ],
    "orders": [
        ("NEW_COLUMN", "/customer/address/floor", "customer_address_floor", 2),
        ("NEW_COLUMN", "/gift", "gift", 2),
        ("NEW_COLUMN", "/loyalty/points", "loyalty_points", 3),
        ("NEW_COLUMN", "/loyalty/tier", "loyalty_tier", 3),
        ("NEW_COLUMN", "/promotions", "promotions", 2),
        ("TYPE_CHANGE", "/amount", "string", 3),
        ("TYPE_CHANGE", "/customer/id", "string", 3),
        ("TYPE_CHANGE", "/shipping/express", "string", 1),
    ],
    "readings": [
        ("NEW_COLUMN", "/alarms/tamper", "alarms_tamper", 2),
        ("NEW_COLUMN", "/meter/signalDbm", "meter_signaldbm", 2),
        ("NEW_COLUMN", "/reading/history", "reading_history", 1),
        ("TYPE_CHANGE", "/meter/batteryMillivolt", "string", 3),
        ("TYPE_CHANGE", "/reading/value", "array", 1),
        ("TYPE_CHANGE", "/reading/value", "string", 2),
    ],
}


# what the data foretells


def total(*counts: Counts) -> Counts:
    return Counts(*(sum(asdict(one)[name] for one in counts) for name in asdict(Counts())))


def books(times: int, **more: dict[Zone, Counts]) -> dict[tuple[str, Zone], Counts]:
    """The ledger after so many demos, and more counts of a topic."""
    return {
        (topic, zone): total(more.get(topic, {}).get(zone, Counts()), *(day.counts(zone) for day in days * times))
        for topic, days in DAYS.items()
        for zone in Zone
    }


def ledger(expected: dict[tuple[str, Zone], Counts]) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "zone": str(zone),
            **asdict(counts),
            "records_out": counts.records_out,
            "rows": counts.inserted,
            "waiting": None if zone is Zone.RAW else 0,
            "balanced": True,
        }
        for (topic, zone), counts in expected.items()
    ]


def fates(expected: dict[tuple[str, Zone], Counts]) -> dict[str, int]:
    raw, standardized, curated = (
        total(*(counts for (_, each), counts in expected.items() if each is zone)) for zone in Zone
    )
    return {
        "bodies": raw.records_in,
        "curated": curated.inserted,
        "replaced": curated.updated,
        "superseded": curated.superseded,
        "curated_errors": curated.errors,
        "parse_errors": standardized.errors,
        "duplicates": standardized.duplicates,
        "dead_letters": raw.errors,
        "pending_in_standardized": 0,
        "pending_in_raw": 0,
        "not_curated": 0,
    }


def ingested(day: int) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "sent": {kind.name.lower(): count for kind, count in days[day].kinds.items()},
            "lines": days[day].counts(Zone.RAW).records_in,
            "raw": days[day].counts(Zone.RAW).inserted,
            "dead_letters": dict(sorted(days[day].errors(Zone.RAW).items())),
        }
        for topic, days in DAYS.items()
    ]


def hops(day: int) -> dict[tuple[str, str], Counts]:
    return {
        (topic, str(zone)): days[day].counts(zone)
        for topic, days in DAYS.items()
        for zone in (Zone.STANDARDIZED, Zone.CURATED)
    }


# what the demo has done


@dataclass(frozen=True)
class Told:
    """A demo's document, and what it said meanwhile."""

    document: Any
    said: list[str]

    @property
    def acts(self) -> list[Any]:
        return list(self.document["acts"])

    def days(self, topic: str) -> tuple[Day, Day]:
        """The days that it has sent; keys have the second in them that they are made from."""
        seed = self.document["trace"]["idempotency_key"].split("-")[1]
        return two_days(topic, FIRST_SEED + timedelta(seconds=int(seed)))


def tell(command_line: CommandLine) -> Told:
    done = command_line.start("demo", "--json")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return Told(json.loads(done.stdout), done.stderr.splitlines())


def counts_of(run: dict[str, Any]) -> dict[tuple[str, str], Counts]:
    """The books by topic and zone; each has one batch."""
    assert {outcome["status"] for outcome in run["topics"]} <= {"SUCCEEDED"}
    batches = [(outcome["topic"], batch) for outcome in run["topics"] for batch in outcome["batches"]]
    assert len(batches) == len({(topic, batch["zone"]) for topic, batch in batches})
    return {(topic, batch["zone"]): Counts(**batch["counts"]) for topic, batch in batches}


def rows_of(command_line: CommandLine, table: str) -> list[dict[str, Any]]:
    """A table's rows; their values have the types that the table gives them."""
    services = services_of(command_line)
    return list(QuerySession(services.settings.names, services.lake.file).query(f"SELECT * FROM {table}"))  # noqa: S608


def services_of(command_line: CommandLine) -> Services:
    return Services(load_settings({"home": command_line.home}, environ={}))


@dataclass(frozen=True)
class Looked:
    """What the reading commands say of a home after its first demo."""

    status: Any
    history: Any
    doctor: Any
    trace: Any
    errors: dict[str, Any]
    drift: dict[str, Any]
    curated: dict[str, list[dict[str, Any]]]
    curated_errors: list[dict[str, Any]]


def sent_as(day: Day, message_id: str | None) -> tuple[Expected, bytes]:
    """What was told of a message, and its body."""
    sent = zip(day.told, day.content.splitlines(), strict=True)
    return next((line, body) for line, body in sent if line.message_id == message_id)


def suggested(command_line: CommandLine, told: Told) -> list[list[str]]:
    """The suggested commands' words behind the home, which must be this one."""
    commands = [shlex.split(command) for command in told.document["next"]]
    assert all(words[1] == "--home" and Path(words[2]).resolve() == command_line.home for words in commands)
    return [words[3:] for words in commands]
