"""RAW to Standardized in real Spark and Iceberg: exact rows, errors, drift, ledger and checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.driver import TopicDriver, at, run_topics
from tests.unit.standardize.test_flattening_cases import ONE_PAYLOAD_CASES, flatten_all
from tests.unit.standardize.test_payload import REFUSED

from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Counts

pytestmark = pytest.mark.spark


def message(message_id: str, payload: str | None, **more: Any) -> dict[str, Any]:
    return {"message_id": message_id, "json_payload": payload, **more}


def counts(topic: TopicDriver) -> Counts:
    outcome = topic.run()
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED, outcome.reason
    assert len(outcome.batches) == 1
    return outcome.batches[0].counts


def test_every_flattening_case_comes_out_of_the_job_as_the_rules_say(topic: TopicDriver) -> None:
    payloads = [payload for payload, _ in ONE_PAYLOAD_CASES.values()]
    refused = {name: case for name, case in REFUSED.items() if case[0] is None or _is_text(case[0])}
    topic.put(*(message(f"ok-{number:02}", payload) for number, payload in enumerate(payloads)))
    topic.put(*(message(f"bad-{name}", _text(payload)) for name, (payload, _, _) in refused.items()))

    assert counts(topic) == Counts(records_in=len(payloads) + len(refused), inserted=len(payloads), errors=len(refused))
    expected = flatten_all(payloads, limit=25)
    assert any("_extra" in row for row in expected)
    assert topic.payload_rows() == {f"ok-{number:02}": row for number, row in enumerate(expected)}
    errors = {row["message_id"]: row for row in topic.shared("parse_errors")}
    assert errors.keys() == {f"bad-{name}" for name in refused}
    for name, (payload, error_type, words) in refused.items():
        row = errors[f"bad-{name}"]
        assert (row["raw_payload"], row["error_type"]) == (_text(payload), error_type)
        assert words in row["error_message"]
        assert row["replay_status"] == "NEW"


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(payload: bytes | None) -> str | None:
    return None if payload is None else payload.decode()


def test_the_first_copy_wins_inside_a_batch(topic: TopicDriver) -> None:
    topic.put(
        message("m1", '{"v":"late"}', ingestion_ts=20),
        message("m1", '{"v":"first"}', ingestion_ts=10),
        message("m2", '{"v":"b"}'),
        message("m2", '{"v":"a"}'),
        message("m3", '{"v":"same"}'),
        message("m3", '{"v":"same"}'),
        message("m4", '{"v":"one day"}'),
        message("m4", '{"v":"another"}', publish_time=at(1)),
    )
    topic.put(message("m1", '{"v":"first"}', ingestion_ts=10))
    assert counts(topic) == Counts(records_in=9, inserted=5, duplicates=4)
    rows = sorted((row["message_id"], row["v"]) for row in topic.standardized())
    assert rows == [("m1", "first"), ("m2", "a"), ("m3", "same"), ("m4", "another"), ("m4", "one day")]


def test_an_earlier_batch_wins_over_a_later_one_whatever_became_of_it(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"v":1}'), message("m2", "broken"), message("old", '{"v":0}', publish_time=at(-400)))
    assert counts(topic) == Counts(records_in=3, inserted=2, errors=1)
    topic.put(
        message("m1", '{"v":2}', ingestion_ts=1),
        message("m2", '{"v":2}', ingestion_ts=1),
        message("m3", '{"v":2}'),
        message("m1", '{"v":3}', publish_time=at(2)),
        message("old", '{"v":9}', publish_time=at(-400)),
    )
    assert counts(topic) == Counts(records_in=5, inserted=2, duplicates=3)
    rows = sorted((row["message_id"], row["v"]) for row in topic.standardized())
    assert rows == [("m1", "1"), ("m1", "3"), ("m3", "2"), ("old", "0")]
    assert [row["message_id"] for row in topic.shared("parse_errors")] == ["m2"]


def test_a_batch_of_refused_payloads_only(topic: TopicDriver) -> None:
    topic.put(message("m1", "["), message("m2", None), message("m2", None))
    assert counts(topic) == Counts(records_in=3, duplicates=1, errors=2)
    assert topic.standardized() == []
    topic.put(message("m1", '{"a":1}'))
    assert counts(topic) == Counts(records_in=1, duplicates=1)
    assert topic.run() is None


def test_new_columns_are_added_and_older_rows_have_null_there(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"a":1}'))
    counts(topic)
    topic.put(message("m2", '{"a":2,"b":{"c":"x"}}'), message("m3", '{"A":3}'))
    assert counts(topic) == Counts(records_in=2, inserted=2)
    a_too = next(name for name in topic.payload_rows()["m3"] if name.startswith("a__"))
    assert topic.payload_rows() == {"m1": {"a": "1"}, "m2": {"a": "2", "b_c": "x"}, "m3": {a_too: "3"}}
    schema = topic.services.lake.load(topic.services.lake.names.standardized(topic.name)).schema()
    docs = {field.name: field.doc for field in schema.fields if field.doc}
    assert docs == {"a": "/a", "b_c": "/b/c", a_too: "/A"}
    drift = {
        (row["kind"], row["json_pointer"], row["column_name"], row["records"]) for row in topic.shared("drift_log")
    }
    assert drift == {
        ("NEW_COLUMN", "/a", "a", 1),
        ("NEW_COLUMN", "/b/c", "b_c", 1),
        ("NEW_COLUMN", "/A", a_too, 1),
        ("COLLISION", "/A", a_too, 1),
    }


def test_a_declared_leaf_gets_the_name_before_a_more_frequent_one(topic: TopicDriver) -> None:
    topic.gate.declared = ("/userId",)
    topic.put(message("m1", '{"userId":1,"userid":2}'), message("m2", '{"userid":3}'))
    counts(topic)
    assert topic.payload_rows()["m1"]["userid"] == "1"


def test_type_changes_are_logged_against_what_a_column_mostly_held(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"a":1}'), message("m2", '{"a":2}'), message("m3", '{"a":"x"}'))
    counts(topic)
    topic.put(message("m4", '{"a":"y"}'), message("m5", '{"a":"z"}'), message("m6", '{"a":[1]}'))
    counts(topic)
    topic.put(message("m7", '{"a":true}'))
    counts(topic)
    changes = [
        (row["old_value"], row["new_value"], row["records"])
        for row in topic.shared("drift_log")
        if row["kind"] == "TYPE_CHANGE"
    ]
    assert sorted(changes) == [
        ("number", "array", 1),
        ("number", "string", 1),
        ("number", "string", 2),
        ("string", "boolean", 1),
    ]


def test_leaves_past_the_limit_are_logged_once_and_never_lost(topic: TopicDriver) -> None:
    wide = {f"k{number:03}": number for number in range(28)}
    topic.put(message("m1", json.dumps(wide)))
    counts(topic)
    topic.put(message("m2", json.dumps(wide | {"k999": 1.50})))
    counts(topic)
    rows = topic.payload_rows()
    assert json.loads(rows["m1"]["_extra"]) == {"/k025": "25", "/k026": "26", "/k027": "27"}
    assert json.loads(rows["m2"]["_extra"]) == {"/k025": "25", "/k026": "26", "/k027": "27", "/k999": "1.5"}
    limits = sorted(row["json_pointer"] for row in topic.shared("drift_log") if row["kind"] == "COLUMN_LIMIT")
    assert limits == ["/k025", "/k026", "/k027", "/k999"]


def test_the_ledger_the_history_and_the_checkpoint_say_what_happened(topic: TopicDriver) -> None:
    first = topic.put(message("m1", '{"a":1}', ingestion_ts=7), message("m1", '{"a":1}', ingestion_ts=9))
    counts(topic)
    second = topic.put(message("m2", "x"))
    counts(topic)
    ledger = sorted(topic.shared("reconciliation_log"), key=lambda row: row["recorded_at"])
    columns = ("zone", "kind", "from_snapshot", "to_snapshot", "records_in", "records_out", "inserted", "updated")
    assert [tuple(row[name] for name in columns) for row in ledger] == [
        ("standardized", "BATCH", None, str(first), 2, 1, 1, 0),
        ("standardized", "BATCH", str(first), str(second), 1, 0, 0, 0),
    ]
    rest = ("duplicates", "superseded", "errors", "variance", "balanced")
    assert [tuple(row[name] for name in rest) for row in ledger] == [(1, 0, 0, 0.0, True), (0, 0, 1, 0.0, True)]
    history = topic.shared("job_run_history")
    assert sorted(row["batch_id"] for row in history) == sorted(row["batch_id"] for row in ledger)
    assert {row["status"] for row in history} == {"SUCCEEDED"}
    assert topic.checkpoint() == second
    stored = topic.services.state.checkpoint(f"standardization_{topic.name}")
    assert (stored.last_snapshot_id, stored.last_ingestion_ts, stored.intent, stored.failures) == (second, 100, None, 0)
    assert {row["batch_id"] for row in topic.shared("parse_errors")} == {ledger[1]["batch_id"]}
    assert [row["_batch_id"] for row in topic.standardized()] == [ledger[0]["batch_id"]]
    assert [row["kind"] for row in topic.shared("alerts")] == ["ERROR_RATE"]


def test_a_commit_without_rows_moves_the_checkpoint_without_spark(topic: TopicDriver) -> None:
    topic.put(message("m1", '{"a":1}'))
    counts(topic)
    snapshot = topic.put()
    assert counts(topic) == Counts()
    assert topic.checkpoint() == snapshot
    topic.put(message("m2", '{"a":1}'))
    assert counts(topic) == Counts(records_in=1, inserted=1)


def test_many_days_in_one_batch(topic: TopicDriver) -> None:
    topic.put(*(message(f"m{day:03}", '{"a":1}', publish_time=at(day * 3)) for day in range(150)))
    assert counts(topic) == Counts(records_in=150, inserted=150)
    topic.put(*(message(f"m{day:03}", '{"a":2}', publish_time=at(day * 3)) for day in range(150)))
    assert counts(topic) == Counts(records_in=150, duplicates=150)


def test_several_topics_at_once_share_the_error_tables(new_topic: Callable[[], TopicDriver]) -> None:
    topics = [new_topic() for _ in range(6)]
    for topic in topics:
        topic.put(message("m1", '{"a":1}'), message("m2", topic.name), message("m3", ""))
    outcomes = run_topics(topics[0].services, topics[0].gate, [topic.name for topic in topics])
    assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}
    for topic in topics:
        assert outcomes[topic.name].batches[0].counts == Counts(records_in=3, inserted=1, errors=2)
        assert sorted(row["raw_payload"] for row in topic.shared("parse_errors")) == sorted(["", topic.name])
        assert len(topic.shared("reconciliation_log")) == 1


def test_a_row_written_by_hand_with_broken_text_goes_to_the_errors(topic: TopicDriver) -> None:
    odd = '{"a":"x", "weird\\u0000":"\\u0000"}'
    topic.put(message("m1", odd), message("m2", "\ufeff{}"), message("m3", "\u00a0"))
    assert counts(topic) == Counts(records_in=3, inserted=1, errors=2)
    assert {row["error_type"] for row in topic.shared("parse_errors")} == {"INVALID_JSON"}


def test_refused_payloads_too_large_to_travel_with_the_counts(
    topic: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lean_ops.standardize.flatten.CARRIED_BYTES", 64 * 1024)
    large = {f"bad-{number}": "[" + "x" * 30_000 + str(number) for number in range(6)}
    topic.put(*(message(name, payload) for name, payload in large.items()), message("ok", '{"a":1}'))
    assert counts(topic) == Counts(records_in=7, inserted=1, errors=6)
    assert {row["message_id"]: row["raw_payload"] for row in topic.shared("parse_errors")} == large
    assert {row["publish_time"] for row in topic.shared("parse_errors")} == {at(0)}
