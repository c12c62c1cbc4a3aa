"""A topic that has lived for a while, its rebuild, and what must hold of it afterwards; for the tests of rebuilds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.spark.driver import TopicDriver, at

from lean_ops.ledger.books import RunStatus
from lean_ops.ledger.recount import Recounter
from lean_ops.model.batch import Zone, pipeline_id
from lean_ops.operate.rebuild import RebuildOutcome
from lean_ops.operate.rebuild_difference import Difference

SCHEMA: dict[str, Any] = {"a": {"type": "INT"}, "note": {"type": "STRING"}}
NOT_COMPARED = {"_batch_id"}
HOPS = (Zone.STANDARDIZED, Zone.CURATED)


class Killed(BaseException):
    """The end of the process, as far as the code under test can tell."""


def message(message_id: str, payload: str, day: float = 0, key: str | None = None, second: int = 1) -> dict[str, Any]:
    place = {"idempotency_key": key or f"key-{message_id}", "publish_time": at(day), "ingestion_ts": second}
    return {"message_id": message_id, "json_payload": payload, **place}


FIRST = [
    *(message(f"m{number}", f'{{"a":{number},"note":"n"}}', day=number % 3) for number in range(8)),
    message("m1", '{"a":"retry"}', day=1, second=2),
    message("bad1", "{"),
    message("wrong1", '{"a":"no number"}'),
    message("newer", '{"a":100}', day=9, key="key-m3"),
]
SECOND = [
    # In the same second and with a lower text, so that only its later batch makes it no first copy.
    message("m2", '{"a":"!"}', day=2),
    message("bad1", '{"a":"a copy of a refused one"}'),
    message("bad2", "[]"),
    message("wrong2", '{"a":"1.5"}'),
    message("corrected", '{"a":200}', day=9, key="key-m5"),
    message("late", '{"a":300}', day=-60, key="key-m6"),
    message("n1", '{"A":1,"a":7,"new":true}', day=4),
]
THIRD = [
    message("n2", '{"a":8,"newest":{"leaf":"x"}}', day=5),
    message("n1", '{"a":9}', day=4, second=9),
    message("bad3", "nonsense"),
    message("bad2", '{"a":1}', second=9),
    message("again", '{"a":201}', day=10, key="key-m5"),
]


def live(topic: TopicDriver, messages: list[dict[str, Any]]) -> None:
    topic.put(*messages)
    outcome = topic.run()
    assert outcome is not None
    assert (outcome.status, outcome.reason) == (RunStatus.SUCCEEDED, None)


def rebuild(
    topic: TopicDriver,
    on_step: Callable[[str], None] = lambda _: None,
    agree: Callable[[Difference], bool] = lambda _: True,
    asks: bool = False,
) -> RebuildOutcome:
    made = topic.services.rebuilder(on_step, topic.gate.gate, topic.gate.schema_of, patience_seconds=0)
    return made.rebuild(topic.name, agree, asks)


def rebuilt(topic: TopicDriver, on_step: Callable[[str], None] = lambda _: None) -> Difference:
    outcome = rebuild(topic, on_step)
    assert (outcome.status, outcome.reason, outcome.published) == (RunStatus.SUCCEEDED, None, True)
    assert outcome.difference is not None
    return outcome.difference


def state(topic: TopicDriver) -> dict[str, Any]:
    """All that readers see of the rows, whatever batches brought them."""
    hidden = {"processed_ts", "batch_id"}
    return {
        "standardized": _tidy(topic.standardized(), NOT_COMPARED),
        "curated": _tidy(list(topic.curated().values()), NOT_COMPARED),
        "parse_errors": _tidy(topic.shared("parse_errors"), hidden),
        "errors": _tidy(topic.shared("errors"), hidden),
    }


def _tidy(rows: list[dict[str, Any]], hidden: set[str]) -> list[str]:
    return sorted(repr(sorted((k, v) for k, v in row.items() if k not in hidden)) for row in rows)


def findings(topic: TopicDriver) -> list[str]:
    """What `reconcile` and `reconcile --recount` have against the topic, RAW left out: no flush brought its rows."""
    parts = topic.services.reconciler(topic.services.state)
    accounts = [*parts.reconcile([topic.name]), Recounter(parts).recount(topic.name).account]
    return [
        f"{zone.zone}: {finding.message}"
        for account in accounts
        for zone in account.zones
        if zone.zone is not Zone.RAW
        for finding in zone.findings
    ]


def rebuild_lines(topic: TopicDriver) -> list[dict[str, Any]]:
    return [row for row in topic.shared("reconciliation_log") if row["kind"] == "REPLAY"]


def leftovers(topic: TopicDriver) -> list[str]:
    """Branches, notes and open batches that are still there."""
    lake, store = topic.services.lake, topic.services.state
    tables = (lake.load(lake.names.of_zone(zone, topic.name)) for zone in HOPS)
    open_batches = (store.checkpoint(pipeline_id(zone, topic.name)).intent for zone in HOPS)
    return [
        *(ref for table in tables for ref in table.refs() if ref != "main"),
        *([] if store.rebuild_note(topic.name) is None else ["note"]),
        *(str(batch) for batch in open_batches if batch is not None),
    ]


def assert_sound(topic: TopicDriver, expected: dict[str, Any]) -> None:
    assert state(topic) == expected
    assert findings(topic) == []
    assert leftovers(topic) == []


def seen(topic: TopicDriver) -> dict[str, Any]:
    """A topic's rows in words that two topics share."""
    times = {"topic_name", "first_seen_ts", "last_updated_ts", "processed_ts", "batch_id", "_batch_id"}
    return {
        "standardized": _tidy(topic.standardized(), times),
        "curated": _tidy(list(topic.curated().values()), times),
        "parse_errors": _tidy(topic.shared("parse_errors"), times),
        "errors": _tidy(topic.shared("errors"), times),
    }
