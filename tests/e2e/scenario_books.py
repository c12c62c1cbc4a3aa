"""What the scenarios' topics have in every table in the end, and every batch that led there."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.e2e.scenario_home import SHARED, Home, Moment, Row, counts_of

from lean_ops.model.batch import Counts

ENVELOPE = ("idempotency_key", "period_reference", "correlation_id", "publish_time", "ingestion_ts")
RUNS = ("first run", "run after dead letters", "second run", "third run")

# raw, standardized, curated | dlq_errors, parse_errors, errors | ledger, history, drift, schema versions, alerts
_ROWS = {
    "audits": (2, 2, 1, 0, 0, 1, 3, 2, 2, 2, 1),
    "clicks": (39, 22, 21, 0, 16, 1, 6, 4, 1, 1, 2),
    "coupons": (2, 2, 2, 0, 0, 0, 6, 4, 1, 1, 0),
    "heartbeats": (5, 2, 2, 0, 0, 0, 6, 4, 3, 1, 0),
    "invoices": (2, 2, 2, 0, 0, 0, 6, 4, 3, 1, 1),
    "logins": (9, 9, 8, 0, 0, 1, 6, 4, 9, 1, 2),
    "meter_readings": (5, 4, 4, 0, 0, 0, 4, 2, 4, 1, 0),
    "orders": (12, 11, 3, 0, 0, 0, 9, 6, 3, 1, 0),
    "parcels": (2, 2, 2, 7, 0, 0, 6, 4, 1, 1, 0),
    "payments": (18, 18, 11, 0, 0, 7, 6, 4, 19, 1, 2),
    "refunds": (2, 2, 2, 0, 0, 0, 4, 2, 1, 1, 0),
    "shipments": (3, 3, 3, 0, 0, 0, 4, 2, 3, 1, 0),
    "silence": (0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0),
}


def rows_of(topic: str) -> dict[str, int]:
    """A topic's rows by table; tables without any are left out."""
    names = (f"raw.{topic}_staging", f"standardized.{topic}", f"curated.{topic}", *SHARED)
    return {name: rows for name, rows in zip(names, _ROWS[topic], strict=False) if rows}


def _landed(records: int, refused: int = 0) -> tuple[str, Counts]:
    return "raw", Counts(records, records - refused, errors=refused)


def _run(standardized: Counts, curated: Counts) -> list[tuple[str, Counts]]:
    return [("standardized", standardized), ("curated", curated)]


LEDGER: dict[str, list[tuple[str, Counts]]] = {
    "audits": [_landed(2), ("standardized", Counts(2, 2)), ("curated", Counts(2, 1, errors=1))],
    "clicks": [
        *(_landed(16), *_run(Counts(16, 2, errors=14), Counts(2, 2))),
        *(_landed(23), *_run(Counts(23, 20, duplicates=1, errors=2), Counts(20, 19, errors=1))),
    ],
    "coupons": [
        *(_landed(1), *_run(Counts(1, 1), Counts(1, 1))),
        *(_landed(1), *_run(Counts(1, 1), Counts(1, 1))),
    ],
    "heartbeats": [
        *(_landed(2), *_run(Counts(2, 2), Counts(2, 2))),
        *(_landed(3), *_run(Counts(3, duplicates=3), Counts(0))),
    ],
    "invoices": [
        *(_landed(1), *_run(Counts(1, 1), Counts(1, 1))),
        *(_landed(1), *_run(Counts(1, 1), Counts(1, 1))),
    ],
    "logins": [
        *(_landed(3), *_run(Counts(3, 3), Counts(3, 3))),
        *(_landed(6), *_run(Counts(6, 6), Counts(6, 5, errors=1))),
    ],
    "meter_readings": [_landed(3), _landed(2), *_run(Counts(5, 4, duplicates=1), Counts(4, 4))],
    "orders": [
        *(_landed(5), *_run(Counts(5, 5), Counts(5, 3, superseded=2))),
        *(_landed(3), *_run(Counts(3, 2, duplicates=1), Counts(2, updated=1, superseded=1))),
        *(_landed(4), *_run(Counts(4, 4), Counts(4, updated=3, superseded=1))),
    ],
    "parcels": [
        *(_landed(8, refused=6), *_run(Counts(2, 2), Counts(2, 2))),
        *(_landed(1, refused=1), *_run(Counts(0), Counts(0))),
    ],
    "payments": [
        *(_landed(8), *_run(Counts(8, 8), Counts(8, 2, errors=6))),
        *(_landed(10), *_run(Counts(10, 10), Counts(10, 9, errors=1))),
    ],
    "refunds": [_landed(1), _landed(1), *_run(Counts(2, 2), Counts(2, 2))],
    "shipments": [_landed(2), _landed(1), *_run(Counts(3, 3), Counts(3, 3))],
    "silence": [],
}


# what was told and what is written


def told(home: Home) -> list[tuple[Any, ...]]:
    """Every batch that a run told: run, topic, zone, batch, counts."""
    return sorted(
        (run["run_id"], outcome["topic"], batch["zone"], batch["batch_id"], Counts(**batch["counts"]))
        for run in map(home.json, RUNS)
        for outcome in run["topics"]
        for batch in outcome["batches"]
    )


def in_ledger(moment: Moment) -> list[tuple[Any, ...]]:
    """Every batch of a run in the ledger: topic, zone, batch, counts."""
    lines = moment.rows("ops.reconciliation_log", by="batch_id")
    return sorted(
        (line["topic_name"], line["zone"], line["batch_id"], counts_of(line))
        for line in lines
        if line["kind"] == "BATCH" and line["zone"] != "raw"
    )


def attempts(batches: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What the history must have of batches that went well."""
    return [
        (*batch, "SUCCEEDED", None, counts.records_in, counts.records_out, counts.error_rate, "spark")
        for *batch, counts in batches
    ]


def in_history(moment: Moment) -> list[tuple[Any, ...]]:
    """Every row of the history, without its times."""
    columns = ("run_id", "topic_name", "zone", "batch_id", "status", "reason")
    columns += ("records_in", "records_out", "error_rate", "engine")
    return sorted(moment.picked("ops.job_run_history", *columns, by="run_id"))


def ranges(moment: Moment, topic: str, zone: str) -> list[tuple[str | None, str]]:
    """The snapshots that a zone's batches lead from and to, in their order."""
    lines = moment.rows("ops.reconciliation_log", topic, by="recorded_at")
    found = [line for line in lines if (line["zone"], line["kind"]) == (zone, "BATCH")]
    return [(line["from_snapshot"], line["to_snapshot"]) for line in found]


def flushed(home: Home, topic: str) -> list[str]:
    """The RAW snapshots that ingestion told of, in their order."""
    names = (f"ingest {topic} {day}" for day in (1, 2, 3))
    return [flush["snapshot_id"] for name in names if name in home.said for flush in home.json(name)["flushes"]]


def strangers(moment: Moment, topic: str) -> list[Row]:
    """Rows of a topic whose envelope is not that of their message's first copy in RAW."""
    copies = moment.rows(f"raw.{topic}_staging", by="ingestion_ts")
    first = {row["message_id"]: row for row in reversed(copies)}
    tables = (f"standardized.{topic}", f"curated.{topic}", "standardized.parse_errors", "curated.errors")
    rows = [row for table in tables for row in moment.rows(table, topic)]
    return [row for row in rows if any(row[name] != first[row["message_id"]][name] for name in ENVELOPE if name in row)]


def rows_by_batch(moment: Moment, table: str, column: str) -> Counter[str]:
    """How many rows of a table each batch has written."""
    return Counter(moment.picked(table, column, by=column))


def curated_by_batch(moment: Moment, topic: str) -> Counter[str]:
    """How many Curated rows must be of each batch: a key that is corrected goes over to the batch that did it.

    The topic that has corrections has one for every key in its last batch.
    """
    if not booked(moment, "curated", "updated", topic):
        return booked(moment, "curated", "inserted", topic)
    *_, last = moment.rows("ops.job_run_history", topic, by="started_at")
    return Counter({last["batch_id"]: moment.zones(topic)["curated"]})


def booked(moment: Moment, zone: str, count: str, topic: str | None = None) -> Counter[str]:
    """How many the ledger says of each batch; batches with none are left out."""
    lines = moment.rows("ops.reconciliation_log", topic, by="batch_id")
    return +Counter(
        {line["batch_id"]: line[count] for line in lines if (line["zone"], line["kind"]) == (zone, "BATCH")}
    )
