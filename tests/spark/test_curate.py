"""Standardized to Curated through the real job: columns found, values typed, rules kept, versions merged."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.spark.driver import TopicDriver, at

from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Counts
from lean_ops.operate.run import TopicOutcome

pytestmark = pytest.mark.spark

ENVELOPE = {"topic_name", "message_id", "idempotency_key", "period_reference", "correlation_id"}
FIXED = ENVELOPE | {"publish_time", "ingestion_ts", "first_seen_ts", "last_updated_ts", "_schema_version", "_batch_id"}
_numbers = iter(range(10**6))


def message(key: str | None, payload: dict[str, Any] | str, day: float = 0, **more: Any) -> dict[str, Any]:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    message_id = f"m{next(_numbers):06d}"
    return {"message_id": message_id, "idempotency_key": key, "json_payload": text, "publish_time": at(day), **more}


def run(topic: TopicDriver, *messages: dict[str, Any]) -> Counts:
    """Put messages into RAW, run both hops; the books of the Curated batch."""
    if messages:
        topic.put(*messages)
    outcome = topic.run()
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED, outcome.reason
    return outcome.batches[-1].counts


def values(topic: TopicDriver) -> dict[str, dict[str, Any]]:
    """The payload columns that are not NULL, by key."""
    return {
        key: {name: value for name, value in row.items() if name not in FIXED and value is not None}
        for key, row in topic.curated().items()
    }


def only_error(topic: TopicDriver) -> dict[str, Any]:
    (row,) = topic.shared("errors")
    return row


# columns and values


def test_every_type_arrives_as_its_own_type(topic: TopicDriver) -> None:
    columns = {
        "text": {},
        "small": {"type": "INT"},
        "big": {"type": "BIGINT"},
        "real": {"type": "DOUBLE"},
        "exact": {"type": "DECIMAL(38,10)"},
        "flag": {"type": "BOOLEAN"},
        "day": {"type": "DATE"},
        "moment": {"type": "TIMESTAMP"},
        "epoch": {"type": "TIMESTAMP", "format": "epoch_ms"},
    }
    topic.use_schema(columns)
    payload = (
        '{"text": " a b ", "small": 12, "big": 9007199254740993, "real": 1e5, "exact": 12345678901234567890.0123456789,'
        ' "flag": "yes", "day": "2026-02-28", "moment": "2026-02-03T10:15:30.123456789+01:00", "epoch": 1770113730123}'
    )
    assert run(topic, message("k", payload)) == Counts(1, inserted=1)
    assert values(topic) == {
        "k": {
            "text": " a b ",
            "small": 12,
            "big": 9007199254740993,
            "real": 100000.0,
            "exact": Decimal("12345678901234567890.0123456789"),
            "flag": True,
            "day": date(2026, 2, 28),
            "moment": datetime(2026, 2, 3, 9, 15, 30, 123456, tzinfo=UTC),
            "epoch": datetime(2026, 2, 3, 10, 15, 30, 123000, tzinfo=UTC),
        }
    }


def test_the_envelope_and_the_audit_columns_come_along(topic: TopicDriver) -> None:
    topic.use_schema({"a": {}})
    run(topic, message("k", {"a": 1}, period_reference="2026-02", correlation_id="c-9", ingestion_ts=77))
    row = topic.curated()["k"]
    assert (row["topic_name"], row["period_reference"], row["correlation_id"]) == (topic.name, "2026-02", "c-9")
    assert (row["publish_time"], row["ingestion_ts"], row["_schema_version"]) == (at(0), 77, "1.0.0")
    assert row["first_seen_ts"] == row["last_updated_ts"]
    (curated,) = (entry for entry in topic.shared("reconciliation_log") if entry["zone"] == "curated")
    assert row["_batch_id"] == curated["batch_id"]


def test_a_column_is_found_by_its_json_path_however_standardized_calls_it(topic: TopicDriver) -> None:
    topic.use_schema(
        {"one": {"json_path": "$.userId"}, "two": {"json_path": "$.userid"}, "deep": {"json_path": "$.a.b"}}
    )
    run(topic, message("k", '{"userid": "small", "userId": "Large", "a_b": "flat", "a": {"b": "nested"}}'))
    assert values(topic) == {"k": {"one": "Large", "two": "small", "deep": "nested"}}


def test_a_column_without_a_path_takes_the_standardized_column_of_its_name(topic: TopicDriver) -> None:
    topic.use_schema({"event_userid": {}, "never_seen": {}})
    run(topic, message("k", {"event": {"userId": "u"}}))
    assert values(topic) == {"k": {"event_userid": "u"}}


def test_what_the_envelope_took_out_of_the_metadata_is_still_found_there(topic: TopicDriver) -> None:
    topic.use_schema({"period": {"json_path": "$._metadata.periodReference", "cde": True}})
    payload = {"_metadata": {"periodReference": "2026-02"}, "a": 1}
    assert run(topic, message("k", payload, period_reference="2026-02")) == Counts(1, inserted=1)
    assert values(topic) == {"k": {"period": "2026-02"}}


def test_a_leaf_past_the_column_limit_is_found_in_extra(topic: TopicDriver) -> None:
    run_before_schema = {f"c{number:02d}": number for number in range(40)}
    topic.gate.declared = ()
    topic.put(message("k", run_before_schema))
    assert topic.run() is not None
    topic.use_schema({"first": {"json_path": "$.c00", "type": "INT"}, "last": {"json_path": "$.c39", "type": "INT"}})
    run(topic)
    assert "c39" not in topic.standardized()[0]
    assert values(topic) == {"k": {"first": 0, "last": 39}}


def test_words_of_sql_are_good_column_names(topic: TopicDriver) -> None:
    topic.use_schema(
        {"select": {"json_path": "$['a`b\"c']"}, "order": {"type": "INT"}, "from": {"default": "it's `x`"}}
    )
    run(topic, message("it's; DROP TABLE", {'a`b"c': "';--", "order": 1}))
    run(topic, message("it's; DROP TABLE", {'a`b"c': "2", "order": 2}, day=1))
    assert values(topic) == {"it's; DROP TABLE": {"select": "2", "order": 2, "from": "it's `x`"}}


def test_columns_may_be_called_as_the_jobs_own_expressions_call_things(topic: TopicDriver) -> None:
    names = ("t", "w", "s", "m", "r", "found", "digits", "sign", "exponent", "field", "message", "text")
    topic.use_schema({name: {"type": "INT", "max": 99} for name in names} | {"row": {"type": "TIMESTAMP"}})
    good = dict.fromkeys(names, "1.0e1") | {"row": "2026-02-03 10:15+01"}
    bad = dict.fromkeys(names, "x") | {"row": "y"}
    run(topic, message("good", good), message("bad", bad), message("high", dict.fromkeys(names, 100)))
    moment = datetime(2026, 2, 3, 9, 15, tzinfo=UTC)
    assert values(topic) == {"good": dict.fromkeys(names, 10) | {"row": moment}}
    errors = {row["idempotency_key"]: row for row in topic.shared("errors")}
    assert errors["bad"]["error_fields"] == [*names, "row"]
    assert (errors["bad"]["error_type"], errors["high"]["error_type"]) == ("TYPE_CAST", "RULE_VIOLATION")
    assert json.loads(errors["bad"]["raw_record"]) == bad


def test_blank_is_nothing_and_the_default_stands_in_for_nothing(topic: TopicDriver) -> None:
    columns = {
        "a": {"type": "INT", "default": -1},
        "b": {"default": "none"},
        "c": {"type": "INT"},
        "d": {"required": True, "default": "x"},
    }
    topic.use_schema(columns)
    run(topic, message("k", {"a": " \t", "b": None, "c": ""}), message("l", {"a": 5, "b": "y", "c": 6, "d": "z"}))
    assert values(topic) == {"k": {"a": -1, "b": "none", "d": "x"}, "l": {"a": 5, "b": "y", "c": 6, "d": "z"}}


# rules and errors


def test_a_refused_row_is_written_once_with_all_its_reasons(topic: TopicDriver) -> None:
    columns = {
        "who": {"cde": True},
        "amount": {"type": "DECIMAL(10,2)", "min": 0, "max": "99.99"},
        "on": {"type": "DATE", "min": "2026-01-01"},
        "state": {"enum": ["new", "old"], "pattern": "[a-z]+"},
        "size": {"type": "INT", "required": True},
    }
    topic.use_schema(columns)
    bad = message("k", {"amount": "100", "on": "2025-12-31", "state": "NEW", "size": "12x", "undeclared": "left out"})
    assert run(topic, bad, message("l", {"who": "w", "amount": "99.99", "state": "new", "size": 1})) == Counts(
        2, inserted=1, errors=1
    )
    error = only_error(topic)
    assert error["error_type"] == "CDE_VIOLATION"
    assert error["error_fields"] == ["who", "amount", "on", "state", "size"]
    assert error["error_message"].split("; ") == [
        "who: is missing and a critical data element",
        "amount: '100' is above 99.99",
        "on: '2025-12-31' is below 2026-01-01",
        "state: 'NEW' is not one of new, old",
        "state: 'NEW' does not match [a-z]+",
        "size: '12x' is no INT",
    ]
    assert json.loads(error["raw_record"]) == {
        "who": None, "amount": "100", "on": "2025-12-31", "state": "NEW", "size": "12x",
    }  # fmt: skip
    assert (error["message_id"], error["idempotency_key"], error["schema_version"]) == (bad["message_id"], "k", "1.0.0")
    assert (error["publish_time"], error["replay_status"], error["replay_id"]) == (at(0), "NEW", None)
    assert list(values(topic)) == ["l"]


@pytest.mark.parametrize(
    ("payload", "key", "error_type", "fields"),
    [
        ({"n": "x", "e": "?"}, None, "CDE_VIOLATION", ["idempotency_key", "n", "e"]),
        ({"n": "x", "e": "?"}, " ", "CDE_VIOLATION", ["idempotency_key", "n", "e"]),
        ({"n": "x", "e": "?"}, "k", "TYPE_CAST", ["n", "e"]),
        ({"n": "1", "e": "?"}, "k", "RULE_VIOLATION", ["e"]),
        ({"n": [1], "e": "a"}, "k", "TYPE_CAST", ["n"]),
        ({"n": {}, "e": "a"}, "k", "TYPE_CAST", ["n"]),
    ],
)
def test_the_error_type_is_the_most_severe(
    topic: TopicDriver, payload: dict[str, Any], key: str | None, error_type: str, fields: list[str]
) -> None:
    topic.use_schema({"n": {"type": "INT"}, "e": {"enum": ["a"]}})
    assert run(topic, message(key, payload)) == Counts(1, errors=1)
    error = only_error(topic)
    assert (error["error_type"], error["error_fields"]) == (error_type, fields)


def test_required_envelope_columns_are_asked_for(topic: TopicDriver) -> None:
    topic.use_schema({"a": {}}, envelope_columns={"period_reference": {"required": True}})
    run(topic, message("k", {"a": 1}), message("l", {"a": 1}, period_reference="2026-02"))
    assert only_error(topic)["error_message"] == "period_reference: is missing and required"
    assert list(values(topic)) == ["l"]


def test_a_pattern_holds_for_the_whole_value(topic: TopicDriver) -> None:
    topic.use_schema({"a": {"pattern": "a|bc"}})
    run(topic, *(message(text, {"a": text}) for text in ("a", "bc", "ab", "bca", "a\n", "A")))
    assert sorted(values(topic)) == ["a", "bc"]


def test_bounds_and_choices_are_compared_as_values_not_as_texts(topic: TopicDriver) -> None:
    columns = {
        "d": {"type": "DECIMAL(38,20)", "min": "0.10000000000000000001", "enum": ["0.10000000000000000001", "1.50"]},
        "t": {"type": "TIMESTAMP", "min": "2026-01-01T00:00:00+02:00", "max": "9999-12-31T23:59:59.999999Z"},
    }
    topic.use_schema(columns)
    good = message("good", {"d": "0.100000000000000000010", "t": "2025-12-31T22:00:00Z"})
    also = message("also", {"d": "1.5", "t": "9999-12-31T23:59:59.999999Z"})
    low = message("low", {"d": "0.1", "t": "2025-12-31T21:59:59.999999Z"})
    run(topic, good, also, low)
    assert sorted(values(topic)) == ["also", "good"]
    assert only_error(topic)["error_fields"] == ["d", "t"]


def test_personal_data_is_protected_before_anything_is_written(
    topic: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "a secret of some length, even longer than a block of sha-256 is in bytes, to be on the safe side"
    settings = topic.services.settings.model_copy(
        update={"pii_key": type("S", (), {"get_secret_value": lambda _: key})()}
    )
    monkeypatch.setattr(type(topic.services), "settings", settings)
    columns = {
        "mail": {"pii": "hash", "pattern": ".+@.+"},
        "card": {"pii": "mask", "pattern": "[0-9]+"},
        "pin": {"pii": "mask"},
        "age": {"type": "INT", "pii": "drop", "max": 120},
    }
    topic.use_schema(columns)
    good = message("good", {"mail": "b\u00f6b@x.org", "card": "4000123412341234", "pin": "1234", "age": 40})
    bad = message("bad", {"mail": "nobody", "card": "no card", "pin": "12345", "age": "1000"})
    run(topic, good, bad)

    def hashed(text: str) -> str:
        return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()

    assert values(topic) == {"good": {"mail": hashed("b\u00f6b@x.org"), "card": "************1234", "pin": "****"}}
    error = only_error(topic)
    assert json.loads(error["raw_record"]) == {"mail": hashed("nobody"), "card": "***card", "pin": "*2345", "age": None}
    assert error["error_fields"] == ["mail", "card", "age"]
    assert not any(secret in error["error_message"] for secret in ("nobody", "no card", "1000"))


def test_many_and_long_errors_get_their_rows_too(topic: TopicDriver) -> None:
    topic.use_schema({"n": {"type": "INT"}, "text": {}})
    bad = [message(f"k{number}", {"n": "x", "text": "y" * (3000 if number == 5 else 10)}) for number in range(2500)]
    assert run(topic, *bad, message("good", {"n": 1})) == Counts(2501, inserted=1, errors=2500)
    errors = topic.shared("errors")
    assert {row["message_id"] for row in errors} == {row["message_id"] for row in bad}
    assert len(errors) == 2500
    assert {row["publish_time"] for row in errors} == {at(0)}


# versions


def test_of_several_versions_in_one_batch_the_newest_stays(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}})
    counts = run(topic, *(message("k", {"v": day}, day=day) for day in (2, 5, 1)), message("l", {"v": 9}))
    assert counts == Counts(4, inserted=2, superseded=2)
    assert values(topic) == {"k": {"v": 5}, "l": {"v": 9}}


def test_a_correction_takes_the_rows_place_and_first_seen_stays(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}, "w": {}})
    run(topic, message("k", {"v": 1, "w": "goes"}), message("other", {"v": 7}))
    before = topic.curated()
    assert run(topic, message("k", {"v": 2}, day=1)) == Counts(1, updated=1)
    after = topic.curated()
    assert values(topic) == {"k": {"v": 2}, "other": {"v": 7}}
    assert after["k"]["first_seen_ts"] == before["k"]["first_seen_ts"]
    assert after["k"]["last_updated_ts"] > before["k"]["last_updated_ts"]
    assert after["k"]["_batch_id"] != before["k"]["_batch_id"]
    assert after["other"] == before["other"]


def test_a_late_older_version_changes_nothing_even_months_late(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}})
    run(topic, message("k", {"v": 1}))
    before = topic.curated()
    assert run(topic, message("k", {"v": 0}, day=-100)) == Counts(1, superseded=1)
    assert topic.curated() == before
    assert run(topic, message("k", {"v": 2}, day=120)) == Counts(1, updated=1)
    assert values(topic) == {"k": {"v": 2}}


def test_the_version_column_counts_before_the_publish_time(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}, "at": {"type": "TIMESTAMP"}}, version_column="at")
    run(topic, message("k", {"v": 1, "at": at(10).isoformat()}, day=0))
    assert run(topic, message("k", {"v": 2, "at": at(9).isoformat()}, day=50)) == Counts(1, superseded=1)
    # Without a version its publish_time counts: day 9 is older than the row's day 10, day 11 is newer.
    assert run(topic, message("k", {"v": 3}, day=9)) == Counts(1, superseded=1)
    assert run(topic, message("k", {"v": 4}, day=11)) == Counts(1, updated=1)
    assert run(topic, message("k", {"v": 5, "at": at(10.5).isoformat()}, day=60)) == Counts(1, superseded=1)
    assert values(topic) == {"k": {"v": 4}}


def test_equal_versions_are_told_apart_by_publish_time_then_ingestion_then_id(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}, "at": {"type": "TIMESTAMP"}}, version_column="at")
    same = at(0).isoformat()
    run(topic, message("p", {"v": 2, "at": same}, day=2), message("p", {"v": 1, "at": same}, day=1, ingestion_ts=999))
    run(topic, message("i", {"v": 2, "at": same}, ingestion_ts=9), message("i", {"v": 1, "at": same}, ingestion_ts=8))
    twins = [message("m", {"v": number, "at": same}) for number in (1, 2)]
    run(topic, *reversed(twins))
    assert values(topic) == {key: {"v": 2, "at": at(0)} for key in "pim"}


@pytest.mark.parametrize("partitioning", [["bucket(4, idempotency_key)"], ["day(publish_time)"], []])
def test_any_layout_ends_in_the_same_rows(topic: TopicDriver, partitioning: list[str]) -> None:
    topic.use_schema({"v": {"type": "INT"}}, partitioning=partitioning)
    assert run(topic, message("k0", {"v": 0})) == Counts(1, inserted=1)  # most buckets are still missing
    run(topic, *(message(f"k{number}", {"v": number}, day=number % 3) for number in range(50)))
    again = [message(f"k{number}", {"v": -number}, day=10 * (number % 2) - 5) for number in range(60)]
    assert run(topic, *again) == Counts(60, inserted=10, updated=25, superseded=25)
    expected = {f"k{number}": {"v": -number if number % 2 or number >= 50 else number} for number in range(60)}
    assert values(topic) == expected


# the books


@pytest.mark.parametrize(("given", "delete_files"), [({}, 1), ({"write.delete.granularity": "file"}, 3)])
def test_what_a_batch_takes_back_from_a_small_table_is_in_one_file_unless_the_schema_wants_it_by_data_file(
    topic: TopicDriver, given: dict[str, str], delete_files: int
) -> None:
    topic.use_schema({"v": {"type": "INT"}}, table_properties=given)
    for key in ("a", "b", "c"):
        run(topic, message(key, {"v": 1}))
    run(topic, *(message(key, {"v": 2}, day=1) for key in ("a", "b", "c")))
    head = topic.services.lake.load(topic.services.lake.names.curated(topic.name)).current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary["added-position-delete-files"] == str(delete_files)
    assert values(topic) == {key: {"v": 2} for key in ("a", "b", "c")}


def test_a_batch_without_rows_moves_the_checkpoint_and_is_in_the_ledger(topic: TopicDriver) -> None:
    topic.use_schema({"v": {}})
    first = message("k", {"v": 1})
    run(topic, first)
    assert run(topic, first) == Counts()
    rows = [row for row in topic.shared("reconciliation_log") if row["zone"] == "curated"]
    assert sorted(row["records_in"] for row in rows) == [0, 1]
    assert topic.run() is None


def test_sums_of_inserted_are_the_rows_of_both_tables(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}})
    run(topic, *(message(f"k{number % 7}", {"v": number if number % 5 else "x"}, day=number) for number in range(30)))
    run(topic, *(message(f"k{number}", {"v": number}, day=100) for number in range(12)))
    for zone, rows in (("standardized", len(topic.standardized())), ("curated", len(topic.curated()))):
        entries = [row for row in topic.shared("reconciliation_log") if row["zone"] == zone]
        assert sum(row["inserted"] for row in entries) == rows
        assert all(row["balanced"] for row in entries)


def test_a_schema_that_stops_at_standardized_makes_no_curated_batch(topic: TopicDriver) -> None:
    topic.use_schema({"v": {}}, zones=["standardized"])
    topic.put(message("k", {"v": 1}))
    outcome = topic.run()
    assert outcome is not None
    assert [batch.zone for batch in outcome.batches] == ["standardized"]
    assert not topic.services.lake.exists(topic.services.lake.names.curated(topic.name))


def test_an_enhanced_schema_adds_its_columns_and_goes_on(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}})
    run(topic, message("k", {"v": 1, "w": "early"}))
    topic.use_schema({"v": {"type": "BIGINT"}, "w": {}}, schema_version="1.1.0")
    run(topic, message("l", {"v": 2**40, "w": "x"}), message("k", {"v": 3, "w": "y"}, day=1))
    assert values(topic) == {"k": {"v": 3, "w": "y"}, "l": {"v": 2**40, "w": "x"}}
    assert {row["_schema_version"] for row in topic.curated().values()} == {"1.1.0"}


def test_the_latest_view_shows_each_keys_newest_row_and_new_columns(topic: TopicDriver) -> None:
    topic.use_schema({"v": {}})
    run(topic, message("k", {"v": 1}), message("k", {"v": 2}, day=1), message(None, {"v": 3}), message(None, {"v": 4}))
    run(topic, message("k", {"v": 5, "new": "n"}, day=2))
    view = topic.services.sessions.mine().table(f"lean_ops.iceberg_standardized_db.{topic.name}_latest")
    standardized = topic.services.lake.load(topic.services.lake.names.standardized(topic.name))
    assert view.columns == [field.name for field in standardized.schema().fields]
    assert sorted((row["v"], row["new"]) for row in view.collect()) == [("3", None), ("4", None), ("5", "n")]


def test_topics_at_once_keep_their_own_batch_ids(new_topic: Callable[[], TopicDriver]) -> None:
    from tests.spark.driver import run_topics

    topics = [new_topic() for _ in range(6)]
    gate = topics[0].gate
    for topic in topics:
        topic.gate = gate
        topic.use_schema({"v": {"type": "INT"}})
        topic.put(*(message(f"k{number}", {"v": number}) for number in range(5)))
    outcomes: dict[str, TopicOutcome] = run_topics(topics[0].services, gate, [topic.name for topic in topics])
    for topic in topics:
        assert [batch.counts for batch in outcomes[topic.name].batches] == [
            Counts(5, inserted=5),
            Counts(5, inserted=5),
        ]
        assert {row["_batch_id"] for row in topic.curated().values()} == {outcomes[topic.name].batches[1].batch_id}
