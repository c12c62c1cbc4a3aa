"""The seeds' scenarios through the command line: what every table holds afterwards, row by row.

All topics live on one home that is prepared once, because its runs need Spark; each scenario looks at its own topic.
"""

from __future__ import annotations

import getpass
import json

import pytest
from tests.e2e import scenario_books as books
from tests.e2e import scenario_gate as gate
from tests.e2e import scenario_refused as refused
from tests.e2e import scenario_story as story
from tests.e2e import scenario_versions as versions
from tests.e2e.scenario_home import Home

from lean_ops.model.batch import Counts

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ZONES = ("raw", "standardized", "curated")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return story.tell(tmp_path_factory.mktemp("scenarios"))


# no schema


def test_without_a_schema_every_payload_lands_in_raw_byte_for_byte(home: Home) -> None:
    raw, texts = "raw.meter_readings_staging", gate.METER_PAYLOADS
    rows = home.moments["first run"].picked(raw, "message_id", "json_payload", "publish_time", *books.ENVELOPE[:3])
    assert rows == [
        ("8841-77", texts["8841-77"], "2026-02-03T10:15:30.120000Z", "meter-42/10", "2026-02", "c-9"),
        ("8841-78", texts["8841-78"], "2026-02-03T10:20:00Z", "meter-42/11", None, None),
        ("8841-79", texts["8841-79"], "2026-02-03T23:59:59.999999Z", "meter-43/1", None, None),
    ]
    copies = home.moments["end"].picked(raw, "message_id", "json_payload")
    assert copies == sorted([*texts.items(), ("8841-77", texts["8841-77"])])


def test_without_a_schema_a_run_skips_the_topic_says_why_and_touches_nothing_else(home: Home) -> None:
    waiting = {"topic": "meter_readings", "records": 3, "reason": "no schema deployed"}
    for said, document in (("run before any schema", "run before any schema as json"), ("first run", "first run")):
        assert "meter_readings: skipped, no schema deployed; 3 records wait in RAW\n" in home.text(said)
        assert waiting in home.json(document)["waiting"]
    assert home.changed["run before any schema"] == set()
    first = home.moments["first run"]
    assert first.rows_of("meter_readings") == {"raw.meter_readings_staging": 3, "ops.reconciliation_log": 1}
    assert not {"standardized.meter_readings", "curated.meter_readings"} & first.tables.keys()
    assert home.of_topic("schemas after first run", "meter_readings")["status"] == "NO_SCHEMA"
    status = home.of_topic("status after first run", "meter_readings")
    assert (status["gate"], status["raw_rows"], status["pending"]) == ("NO_SCHEMA", 3, 3)


def test_once_the_schema_is_there_the_next_run_takes_all_that_waited_through_both_hops(home: Home) -> None:
    assert home.outcome("second run", "meter_readings") == books.LEDGER["meter_readings"][2:]
    assert home.moments["second run"].payload("standardized.meter_readings") == gate.METER_STANDARDIZED
    assert home.moments["second run"].payload("curated.meter_readings") == gate.METER_CURATED
    status = home.of_topic("status after second run", "meter_readings")
    assert (status["gate"], status["pending"], status["curated_pending"]) == ("open", 0, 0)


# an empty flow


def test_a_run_with_nothing_new_says_so_starts_no_spark_and_changes_nothing(home: Home) -> None:
    assert home.text("idle run") == "nothing new to process: 2 topics looked at\n"
    assert home.json("last run") == {"run_id": None, "topics": [], "waiting": []}
    assert home.changed["idle run"] == home.changed["last run"] == set()
    assert home.with_spark == ["first run", "second run", "third run"]


def test_a_batch_of_duplicates_only_adds_no_row_and_moves_both_checkpoints(home: Home) -> None:
    nothing = [("standardized", Counts(3, duplicates=3)), ("curated", Counts(0))]
    assert home.outcome("second run", "heartbeats") == nothing
    first, second = home.moments["first run"], home.moments["second run"]
    for table in ("standardized.heartbeats", "curated.heartbeats"):
        assert second.rows(table) == first.rows(table)
    assert second.payload("curated.heartbeats") == gate.CURATED["heartbeats"]
    before, after = (home.of_topic(f"status {name} second run", "heartbeats") for name in ("before", "after"))
    assert [(line["pending"], line["snapshots_waiting"]) for line in (before, after)] == [(3, 1), (0, 0)]
    assert after["checkpoint_at"] > before["checkpoint_at"]
    assert after["curated_checkpoint_at"] > before["curated_checkpoint_at"]


def test_a_topic_without_any_message_has_empty_tables_and_no_batch(home: Home) -> None:
    line = home.of_topic("status after third run", "silence")
    assert (line["gate"], line["raw_rows"], line["standardized_rows"], line["curated_rows"]) == ("open", 0, 0, 0)
    assert [home.moments["end"].rows(f"{zone}.silence") for zone in ("standardized", "curated")] == [[], []]


# invalid schemas


def test_a_first_schema_that_is_invalid_is_kept_with_its_problems_and_the_data_waits(home: Home) -> None:
    assert home.problems("submit shipments 1") == gate.BAD_FIRST_PROBLEMS
    assert home.failed("shipments") == (gate.BAD_FIRST, gate.BAD_FIRST_PROBLEMS)
    why = '$.schema_version: wrong value; found "one"; expected a version as 1.0.0 (and 3 more)'
    item = home.json("shipments after bad schema")
    assert (item["status"], item["processing_enabled"], item["schema"]) == ("ERROR", False, None)
    assert (item["last_error"], item["error_path"]) == (why, str(home.path / "schemas/shipments/failed/error.json"))
    waiting = {"topic": "shipments", "records": 2, "reason": f"its only schema failed: {why}"}
    assert waiting in home.json("first run")["waiting"]
    assert home.moments["first run"].rows_of("shipments") == {"raw.shipments_staging": 2, "ops.reconciliation_log": 1}


def test_a_good_schema_after_an_invalid_one_opens_the_topic(home: Home) -> None:
    assert home.json("submit shipments 2")["change_class"] == "NEW"
    assert home.moments["second run"].payload("curated.shipments") == gate.CURATED["shipments"]
    line = home.of_topic("schemas after second run", "shipments")
    assert (line["status"], line["version"], line["last_error"]) == ("READY", "1.0.0", None)


def test_a_bad_or_breaking_upload_leaves_the_active_schema_and_the_topic_as_they_were(home: Home) -> None:
    assert home.problems("submit bad invoices") == gate.BAD_LATER_PROBLEMS
    assert home.problems("submit breaking invoices") == gate.BREAKING_PROBLEMS
    assert home.failed("invoices") == (gate.BREAKING, gate.BREAKING_PROBLEMS)
    before, after = home.json("invoices before"), home.json("invoices after")
    assert {name for name in before if before[name] != after[name]} == {"error_path", "last_error", "updated_at"}
    assert (after["status"], after["schema_version"], after["processing_enabled"]) == ("READY", "1.0.0", True)
    active = home.path / "schemas" / "invoices" / "active" / "schema.json"
    assert active.read_text() == gate.SCHEMAS[1]["invoices"]


def test_after_a_refused_upload_the_next_run_goes_on_with_the_old_schema(home: Home) -> None:
    second = home.moments["second run"]
    assert second.payload("curated.invoices") == gate.CURATED["invoices"]
    assert second.picked("curated.invoices", "_schema_version") == ["1.0.0", "1.0.0"]


# parse errors


def test_every_unreadable_payload_is_kept_with_its_reason_and_the_rest_gets_through(home: Home) -> None:
    columns = ("message_id", "idempotency_key", "raw_payload", "error_type", "error_message")
    end = home.moments["end"]
    assert end.picked("standardized.parse_errors", *columns) == refused.CLICK_ERRORS
    assert end.payload("standardized.clicks") == refused.CLICKS_STANDARDIZED
    assert end.payload("curated.clicks") == refused.CLICKS_CURATED


def test_a_later_sound_copy_of_a_refused_message_is_a_duplicate(home: Home) -> None:
    story_of_one = home.json("trace clicks")
    assert [copy["fate"] for copy in story_of_one["copies"]] == ["parse_error", "duplicate"]
    assert (story_of_one["standardized"], len(story_of_one["parse_errors"])) == ([], 1)


def test_above_a_tenth_refused_is_critical_above_a_twentieth_a_warning_and_less_is_nothing(home: Home) -> None:
    end = home.moments["end"]
    assert end.alerts("clicks") == [
        ("ERROR_RATE", "critical", 0.875, 0.1, "14 of 16 records of a standardized batch were refused"),
        ("ERROR_RATE", "warning", 2 / 23, 0.05, "2 of 23 records of a standardized batch were refused"),
    ]
    assert home.outcome("second run", "clicks")[1] == ("curated", Counts(20, 19, errors=1))  # 5 %: no alert
    assert end.alerts("payments") == [
        ("ERROR_RATE", "critical", 0.75, 0.1, "6 of 8 records of a curated batch were refused"),
        ("ERROR_RATE", "warning", 0.1, 0.05, "1 of 10 records of a curated batch were refused"),
    ]


# rules


def test_a_row_that_breaks_rules_is_kept_with_all_reasons_and_masked(home: Home) -> None:
    rows = home.moments["end"].rows("curated.errors", "payments")
    assert {row["message_id"]: refused.reasons(row) for row in rows} == refused.PAYMENT_ERRORS
    assert {row["schema_version"] for row in rows} == {"1.0.0"}
    shown = json.dumps(rows)
    assert not any(secret in shown for secret in ("ann@example.org", "DE1250", "no account", "+49"))


def test_rows_that_keep_every_rule_are_in_curated_typed_and_no_other(home: Home) -> None:
    rows = home.moments["end"].rows("curated.payments")
    assert home.moments["end"].payload("curated.payments") == refused.PAYMENTS_CURATED
    assert {row["phone"] for row in rows} == {None}


# corrections


@pytest.mark.parametrize("run", ["first run", "second run", "third run"])
def test_curated_shows_the_newest_version_and_latest_the_newest_message(home: Home, run: str) -> None:
    columns = ("message_id", "idempotency_key", "status", "updated_at")
    moment = home.moments[run]
    assert moment.picked("curated.orders", *columns, by="idempotency_key") == versions.ORDERS_CURATED[run]
    latest = moment.picked("standardized.orders_latest", "message_id", by="idempotency_key")
    assert latest == versions.ORDERS_LATEST[run]


def test_standardized_keeps_every_version_and_the_retry_once(home: Home) -> None:
    assert home.moments["end"].picked("standardized.orders", "message_id") == versions.ORDER_MESSAGES
    assert home.moments["end"].picked("raw.orders_staging", "message_id") == ["o-01", *versions.ORDER_MESSAGES]


def test_a_correction_keeps_the_first_sight_of_its_key_and_moves_the_update(home: Home) -> None:
    columns = ("idempotency_key", "first_seen_ts", "last_updated_ts")
    first, second, third = (
        {key: times for key, *times in home.moments[run].picked("curated.orders", *columns, by="idempotency_key")}
        for run in ("first run", "second run", "third run")
    )
    assert [seen == updated for seen, updated in first.values()] == [True, True, True]
    for before, after, corrected in ((first, second, {"order/A-1"}), (second, third, set(first))):
        assert {key: seen for key, (seen, _) in after.items()} == {key: seen for key, (seen, _) in before.items()}
        assert {key for key in after if after[key][1] > before[key][1]} == corrected
        assert {key for key in after if after[key] == before[key]} == set(first) - corrected


@pytest.mark.parametrize("key", versions.ORDER_FATES)
def test_trace_shows_every_copy_and_every_version_of_a_key_with_its_fate(home: Home, key: str) -> None:
    document = home.json(f"trace {key}")
    copies, rows = ([(each["message_id"], each["fate"]) for each in document[part]] for part in ("copies", "curated"))
    assert (copies, rows) == versions.ORDER_FATES[key]
    assert [each["current"] for each in document["curated"]] == [fate == "curated" for _, fate in rows]


# drift


def test_every_change_of_a_payloads_shape_is_in_the_drift_log_once(home: Home) -> None:
    known = versions.LOGIN_DRIFT["first run"]
    assert home.moments["first run"].drift("logins") == known
    assert home.moments["end"].drift("logins") == [*known, *versions.LOGIN_DRIFT["second run"]]


def test_standardized_gets_a_column_for_each_new_leaf_and_loses_none(home: Home) -> None:
    for run, columns in versions.LOGIN_COLUMNS.items():
        assert [list(row) for row in home.moments[run].rows("standardized.logins")] == [columns] * versions.LOGINS[run]
    assert home.moments["end"].payload("standardized.logins") == versions.LOGINS_STANDARDIZED


def test_drift_leaves_curateds_shape_alone_and_only_what_does_not_cast_is_refused(home: Home) -> None:
    end = home.moments["end"]
    shapes = {tuple(row) for run in ("first run", "end") for row in home.moments[run].rows("curated.logins")}
    assert shapes == {versions.LOGIN_CURATED_COLUMNS}
    assert end.payload("curated.logins") == versions.LOGINS_CURATED
    columns = ("message_id", "error_type", "error_fields", "error_message")
    wrong = ("lo-7", "TYPE_CAST", ["attempts"], "attempts: 'many' is no INT")
    assert end.picked("curated.errors", *columns, topic="logins") == [wrong]
    alert = ("ERROR_RATE", "critical", 1 / 6, 0.1, "1 of 6 records of a curated batch were refused")
    told = f"its payloads changed: COLLISION, NEW_COLUMN, TYPE_CHANGE: attempts, device_model, {versions.USER_COLUMN};"
    drift = ("DRIFT", "info", 3.0, None, f"{told} `lean-ops drift logins` lists all")
    assert end.alerts("logins") == [alert, drift]


# where a topic ends, and who holds it back


def test_a_topic_that_ends_at_standardized_has_no_curated_table(home: Home) -> None:
    first = home.moments["first run"]
    assert home.outcome("first run", "audits") == [("standardized", Counts(2, 2))]
    assert "curated.audits" not in first.tables
    assert first.rows_of("audits").keys().isdisjoint({"curated.errors", "ops.alerts"})
    assert home.of_topic("schemas after first run", "audits")["zones"] == ["standardized"]
    status = home.of_topic("status after first run", "audits")
    assert (status["standardized_rows"], status["curated_rows"], status["curated_pending"]) == (2, None, None)
    (row,) = home.json("trace audits")["curated"]
    assert (row["fate"], row["reason"]) == ("not_curated", "schema 1.0.0 ends at Standardized")


def test_a_version_with_both_zones_curates_what_is_already_standardized(home: Home) -> None:
    assert home.of_topic("status before second run", "audits")["curated_pending"] == 2
    assert home.outcome("second run", "audits") == [("curated", Counts(2, 1, errors=1))]
    end = home.moments["end"]
    assert end.payload("curated.audits") == {"au-1": {"actor": "u-7", "action": "login"}}
    assert end.picked("curated.audits", "_schema_version") == ["1.1.0"]
    columns = ("message_id", "error_type", "error_message", "schema_version")
    wrong = ("au-2", "RULE_VIOLATION", "action: 'delete' is not one of login, logout", "1.1.0")
    assert end.picked("curated.errors", *columns, topic="audits") == [wrong]
    alert = ("ERROR_RATE", "critical", 0.5, 0.1, "1 of 2 records of a curated batch were refused")
    assert end.alerts("audits") == [alert]


@pytest.mark.parametrize("topic", gate.HOLDS)
def test_a_held_back_topic_is_skipped_with_the_reason_until_it_may_go_on(home: Home, topic: str) -> None:
    shut, reopened, skipped_by, taken_by, gate_words, reason = gate.HOLDS[topic]
    assert [home.json(f"{word} {topic}")["processing_enabled"] for word in (shut, reopened)] == [False, True]
    assert {"topic": topic, "records": 1, "reason": reason} in home.json(skipped_by)["waiting"]
    assert f"{topic}: skipped, {reason}; 1 records wait in RAW\n" in home.text(skipped_by)
    assert topic not in {outcome["topic"] for outcome in home.json(skipped_by)["topics"]}
    status = home.of_topic(f"status after {skipped_by}", topic)
    assert (status["gate"], status["pending"]) == (gate_words, 1)
    assert home.outcome(taken_by, topic) == books.LEDGER[topic][-2:]
    assert home.moments["end"].payload(f"curated.{topic}") == gate.CURATED[topic]


# dead letters


def test_a_refused_body_is_a_dead_letter_with_its_reason_and_archived_as_it_came(home: Home) -> None:
    rows = home.moments["end"].rows("raw.dlq_errors", by="body")
    columns = ("body", "message_id", "error_type", "error_message", "topic_name", "source", "receive_count")
    expected = sorted((*letter, "parcels", "ingest", 1) for letter in refused.DEAD_LETTERS)
    assert [tuple(row[name] for name in columns) for row in rows] == expected
    assert [(row["attributes"], row["replay_status"], row["replay_id"]) for row in rows] == [("{}", "NEW", None)] * 7
    archived = [json.loads((home.path / row["archive_path"]).read_bytes())["body"] for row in rows]
    assert archived == [row["body"] for row in rows]


def test_dead_letters_leave_raw_and_what_follows_untouched(home: Home) -> None:
    assert home.json("ingest parcels 1")["totals"] == {"lines": 8, "raw": 2, "dead_letters": 6, "blank": 0}
    for table in ("raw.parcels_staging", "standardized.parcels", "curated.parcels"):
        messages = home.moments["end"].picked(table, "message_id", "idempotency_key")
        assert messages == [("pc-0", "parcel-0"), ("pc-1", "parcel-1")]
    assert home.moments["end"].payload("curated.parcels") == {"pc-0": {"to": "Ulm"}, "pc-1": {"to": "Bonn"}}


def test_a_run_after_dead_letters_alone_does_not_speak_of_new_records(home: Home) -> None:
    assert home.outcome("run after dead letters", "parcels") == [("standardized", Counts(0)), ("curated", Counts(0))]
    assert "have new records; starting Spark" not in home.text("run after dead letters")


# the books of all topics


@pytest.mark.parametrize("topic", story.TOPICS)
def test_every_table_has_exactly_these_rows_and_the_ledger_these_batches(home: Home, topic: str) -> None:
    assert home.moments["third run"].rows_of(topic) == books.rows_of(topic)
    assert home.moments["third run"].ledger(topic) == books.LEDGER[topic]


def test_every_batch_is_once_in_the_ledger_and_once_in_the_history_as_its_run_told_it(home: Home) -> None:
    end, told_batches = home.moments["end"], books.told(home)
    assert books.in_ledger(end) == sorted(tuple(batch) for _, *batch in told_batches)
    assert books.in_history(end) == sorted(books.attempts(told_batches))
    verdicts = end.picked("ops.reconciliation_log", "variance", "balanced", by="batch_id")
    assert set(verdicts) == {(0.0, True)}


def test_each_run_names_exactly_the_topics_that_wait(home: Home) -> None:
    for run, waiting in story.WAITING.items():
        assert {line["topic"]: line["records"] for line in home.json(run)["waiting"]} == waiting


@pytest.mark.parametrize("topic", story.TOPICS)
def test_batches_follow_each_other_without_gap_up_to_the_last_snapshot(home: Home, topic: str) -> None:
    end = home.moments["end"]
    raw, standardized, curated = (books.ranges(end, topic, zone) for zone in ZONES)
    assert [to for _, to in raw] == books.flushed(home, topic)
    assert [to for _, to in standardized][-1:] == [to for _, to in raw][-1:]
    for batches in (raw, standardized, curated):
        assert [start for start, _ in batches] == [None, *(to for _, to in batches)][: len(batches)]


@pytest.mark.parametrize("topic", [topic for topic in story.TOPICS if topic != "silence"])
def test_every_row_carries_the_envelope_of_its_first_copy_and_the_batch_that_wrote_it(home: Home, topic: str) -> None:
    end = home.moments["end"]
    assert books.strangers(end, topic) == []
    written = books.rows_by_batch(end, f"standardized.{topic}", "_batch_id")
    assert written == books.booked(end, "standardized", "inserted", topic)
    assert books.rows_by_batch(end, f"curated.{topic}", "_batch_id") == books.curated_by_batch(end, topic)


def test_every_error_row_is_of_the_batch_that_refused_it_and_waits_for_its_replay(home: Home) -> None:
    end = home.moments["end"]
    for zone, table in (("standardized", "standardized.parse_errors"), ("curated", "curated.errors")):
        assert books.rows_by_batch(end, table, "batch_id") == books.booked(end, zone, "errors")
        assert set(end.picked(table, "replay_status", "replay_id")) == {("NEW", None)}


def test_the_schema_history_has_every_activated_schema_as_it_was_handed_in(home: Home) -> None:
    columns = ("topic_name", "schema_version", "change_class", "changes", "schema", "submitted_by", "justification")
    found = home.moments["end"].picked("ops.schema_versions", *columns, by="topic_name")
    assert sorted(found) == sorted((*row, getpass.getuser(), None) for row in story.SCHEMA_HISTORY)


@pytest.mark.parametrize("topic", story.TOPICS)
def test_every_zones_table_has_as_many_rows_as_its_batches_inserted(home: Home, topic: str) -> None:
    end = home.moments["end"]
    inserted = {zone: sum(books.booked(end, zone, "inserted", topic).values()) for zone in ZONES}
    assert end.zones(topic) == inserted


@pytest.mark.parametrize("name", ["reconcile", "recount"])
def test_reconcile_finds_every_zone_of_every_topic_balanced(home: Home, name: str) -> None:
    document, end = home.json(name), home.moments["end"]
    assert (document["balanced"], document["recount"]) == (True, name == "recount")
    assert [topic["topic"] for topic in document["topics"]] == list(story.TOPICS)
    zones = {(topic["topic"], zone["zone"]): zone for topic in document["topics"] for zone in topic["zones"]}
    columns = ("rows", "inserted", "balanced", "findings", "accountability")
    found = {place: tuple(zone[column] for column in columns) for place, zone in zones.items()}
    rows = {(topic, zone): end.zones(topic)[zone] for topic in story.TOPICS for zone in ZONES}
    assert found == {place: (number, number, True, [], 1.0) for place, number in rows.items()}
    assert {zone["waiting"] for zone in zones.values()} == {None, 0}


def test_a_recount_leaves_a_line_for_each_table_and_no_alert(home: Home) -> None:
    third, end = home.moments["third run"], home.moments["end"]
    columns = ("kind", "topic_name", "zone", "records_out")
    lines = [line for line in end.picked("ops.reconciliation_log", *columns, by="zone") if line[0] == "RECOUNT"]
    rows = {(topic, zone): end.zones(topic)[zone] for topic in story.TOPICS for zone in ZONES}
    del rows["silence", "raw"]  # nothing ever came
    assert sorted(lines) == sorted(("RECOUNT", *place, number) for place, number in rows.items())
    assert end.rows("ops.alerts", by="alert_id") == third.rows("ops.alerts", by="alert_id")
