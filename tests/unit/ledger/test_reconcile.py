from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.entrypoints.commands.reconcile import account_line, finding_line, telling_columns, verdict
from lean_ops.lake.snapshots import History, history_from_json
from lean_ops.ledger.account import Finding, FindingKind, TopicAccount, ZoneAccount, listed, uncountable
from lean_ops.ledger.lines import ZoneLines
from lean_ops.ledger.moment import (
    CommitReaders,
    Moment,
    ShownBatch,
    TopicTables,
    shown_batches,
    tables_of,
    take_moment,
)
from lean_ops.ledger.reconcile import rows_finding, source_finding, zone_account
from lean_ops.ledger.recount import Recount, recount_rows, variance_alert
from lean_ops.ledger.recount_checks import slices
from lean_ops.ledger.zone_table import ZoneTable
from lean_ops.model.batch import Batch, Counts, Intent, Zone, pipeline_id
from lean_ops.model.registry import RegistryItem, Status
from lean_ops.model.tables import OPS_TABLES, Names
from lean_ops.operate.intent import LAST_BATCH_PROPERTY, last_batch_property, open_batch, published_batch
from lean_ops.state.port import Checkpoint

NOW = datetime(2026, 2, 3, 12, tzinfo=UTC)
NAMES = Names()
MISSING = Finding(FindingKind.MISSING, "gone: m1, m2", 2, 3, 3, ("m1", "m2"))
DOUBLED = Finding(FindingKind.DOUBLED, "twice: m3", 1, 1, 0, ("m3",))
NOTE = Finding(FindingKind.NOT_YET_BOOKED, "batch b is published and not yet in the ledger", 1, 9, 9, ("b",))


def metadata(*snapshots: dict[str, Any], **properties: str) -> dict[str, Any]:
    """Table metadata of a chain of snapshots; what is not `id` is its summary."""
    entries = [
        {
            "snapshot-id": one["id"],
            "timestamp-ms": 0,
            "summary": {"operation": "append", **{key: str(value) for key, value in one.items() if key != "id"}},
        }
        for one in snapshots
    ]
    for parent, child in pairwise(entries):
        child["parent-snapshot-id"] = parent["snapshot-id"]
    current = entries[-1]["snapshot-id"] if entries else -1
    return {"snapshots": entries, "current-snapshot-id": current, "properties": properties}


def history(*snapshots: dict[str, Any], **properties: str) -> History:
    return history_from_json("t", metadata(*snapshots, **properties))


def published(snapshot: int, batch: str, end: int, **summary: int) -> dict[str, Any]:
    return {"id": snapshot, "lean-ops.batch-id": batch, "lean-ops.to-snapshot": end, **summary}


RAW = history({"id": 1, "total-records": 10}, {"id": 2, "added-records": 5, "total-records": 15})
STANDARDIZED = history(published(8, "b1", 1, **{"total-records": 7}))


def tables(
    raw: History | None = RAW, standardized: History | None = STANDARDIZED, curated: History | None = None
) -> TopicTables:
    found = {Zone.RAW: raw, Zone.STANDARDIZED: standardized, Zone.CURATED: curated}
    return TopicTables("events", {zone: ZoneTable(str(zone), "here", one) for zone, one in found.items()})


def kinds(account: ZoneAccount) -> list[str]:
    return [str(finding.kind) for finding in account.findings]


# what an account says


def account(*findings: Finding, records_in: int = 10, source: int | None = None) -> ZoneAccount:
    return ZoneAccount("events", Zone.CURATED, Counts(records_in, inserted=4), 4, source, 0, findings)


def test_without_findings_everything_balances() -> None:
    found = account()
    assert (found.balanced, found.difference, found.variance, found.accountability) == (True, 0, 0.0, 1.0)


def test_a_note_is_told_and_speaks_against_nothing() -> None:
    found = account(NOTE)
    assert (found.balanced, found.difference, found.accountability) == (True, 0, 1.0)
    assert found.document()["findings"][0]["note"]


def test_the_finding_that_concerns_most_is_the_difference() -> None:
    found = account(DOUBLED, MISSING, NOTE)
    assert (found.balanced, found.difference, found.variance, found.accountability) == (False, 3, 0.3, 0.7)


def test_a_record_with_two_fates_is_a_difference_and_accounted_for() -> None:
    found = account(DOUBLED)
    assert (found.balanced, found.difference, found.accountability) == (False, 1, 1.0)


def test_what_came_is_what_the_zone_before_has_and_not_what_was_booked() -> None:
    assert account(MISSING, records_in=4, source=6).accountability == 0.5


def test_doubts_about_nothing_are_whole() -> None:
    assert account(records_in=0).accountability == 1.0
    assert account(MISSING, records_in=0).variance == 1.0
    assert account(MISSING, records_in=0).accountability == 0.0
    assert account(MISSING, records_in=1).accountability == 0.0


def test_what_cant_be_counted_does_not_balance() -> None:
    found = account(uncountable("the file is gone"))
    assert (found.balanced, found.difference) == (False, 0)
    assert found.findings[0].message == "can't be counted: the file is gone"


findings = st.lists(
    st.builds(Finding, st.sampled_from(FindingKind), st.just("x"), st.just(1), st.integers(0, 20), st.integers(0, 20))
)


@given(findings, st.integers(0, 30))
def test_shares_stay_shares(given_findings: list[Finding], records_in: int) -> None:
    found = account(*given_findings, records_in=records_in)
    assert found.variance >= 0
    assert 0 <= found.accountability <= 1
    assert found.balanced == all(finding.is_note for finding in given_findings)
    if found.balanced:
        assert (found.variance, found.accountability) == (0, 1)


def test_a_document_has_every_number() -> None:
    topic = TopicAccount("events", (account(MISSING),))
    assert topic.document() == {
        "topic": "events",
        "balanced": False,
        "zones": [
            {
                "zone": "curated",
                "records_in": 10,
                "records_out": 4,
                "inserted": 4,
                "updated": 0,
                "duplicates": 0,
                "superseded": 0,
                "errors": 0,
                "rows": 4,
                "waiting": 0,
                "difference": 3,
                "variance": 0.3,
                "accountability": 0.7,
                "balanced": False,
                "findings": [
                    {
                        "kind": "MISSING",
                        "note": False,
                        "message": "gone: m1, m2",
                        "count": 2,
                        "records": 3,
                        "ids": ["m1", "m2"],
                    }
                ],
            }
        ],
    }


def test_ids_are_listed_with_how_many_more_there_are() -> None:
    assert listed(("a", "b"), 2) == "a, b"
    assert listed(("a", "b"), 5) == "a, b and 3 more"


# the ledger beside the tables


def test_rows_and_what_was_inserted_agree_or_are_told() -> None:
    assert rows_finding(5, 5) == rows_finding(5, None) == ()
    [fewer] = rows_finding(5, 3)
    assert (fewer.records, fewer.without_fate) == (2, 2)
    [more] = rows_finding(3, 5)
    assert (more.records, more.without_fate) == (2, 0)
    assert more.message == "the table has 5 rows, the ledger's batches inserted 3"


def test_what_was_read_and_what_there_is_to_read_agree_or_are_told() -> None:
    assert source_finding(Zone.CURATED, 5, 5) == source_finding(Zone.CURATED, 5, None) == ()
    [unread] = source_finding(Zone.CURATED, 3, 5)
    assert (unread.records, unread.without_fate) == (2, 2)
    assert unread.message == "standardized has 5 records up to the checkpoint, the ledger's batches have read 3"
    [invented] = source_finding(Zone.STANDARDIZED, 5, 3)
    assert (invented.records, invented.without_fate) == (2, 0)
    assert invented.message.startswith("raw has 3 records")


LINES = ZoneLines(Counts(10, inserted=7, duplicates=2, errors=1), read=10)


def test_a_hop_that_fits_its_table_and_the_zone_before_balances_and_shows_what_waits() -> None:
    found = zone_account(tables(), Zone.STANDARDIZED, LINES)
    assert (found.balanced, found.rows, found.source, found.waiting) == (True, 7, 10, 5)


def test_replayed_records_are_inserted_and_not_read_twice() -> None:
    replayed = ZoneLines(Counts(12, inserted=7, duplicates=2, errors=3), read=10)
    assert zone_account(tables(), Zone.STANDARDIZED, replayed).balanced


def test_raw_has_no_zone_before() -> None:
    found = zone_account(tables(), Zone.RAW, ZoneLines(Counts(16, inserted=15, errors=1), read=16))
    assert (found.balanced, found.rows, found.source, found.waiting) == (True, 15, None, None)


def test_what_firehose_lands_in_raw_is_in_no_line_but_what_a_line_has_must_be_there() -> None:
    found = zone_account(tables(), Zone.RAW, ZoneLines(Counts(3, inserted=3), read=3), delivered=True)
    assert (found.balanced, found.difference, kinds(found)) == (True, 0, ["DELIVERED"])
    assert found.findings[0].message.startswith("12 of 15 rows were delivered by Firehose")
    assert kinds(zone_account(tables(), Zone.RAW, ZoneLines(Counts(3, inserted=3), read=3))) == ["ROWS"]
    more = ZoneLines(Counts(16, inserted=16), read=16)
    assert kinds(zone_account(tables(), Zone.RAW, more, delivered=True)) == ["ROWS"]


def test_only_raw_is_delivered_by_others() -> None:
    few = ZoneLines(Counts(10, inserted=6, duplicates=3, errors=1), read=10)
    assert kinds(zone_account(tables(), Zone.STANDARDIZED, few, delivered=True)) == ["ROWS"]


def test_rows_that_a_delete_file_took_out_are_not_counted() -> None:
    curated = history(published(9, "c1", 8, **{"total-records": 9, "total-position-deletes": 3}))
    assert curated.live_rows == 6
    assert history().live_rows == 0
    found = zone_account(tables(curated=curated), Zone.CURATED, ZoneLines(Counts(7, 6, 1), read=7))
    assert (found.balanced, found.rows, found.source, found.waiting) == (True, 6, 7, 0)


def test_before_the_first_batch_all_waits_and_a_line_in_the_ledger_is_one_too_many() -> None:
    blank = history({"id": 7, "total-records": 0})
    assert zone_account(tables(standardized=blank), Zone.STANDARDIZED, ZoneLines()).waiting == 15
    found = zone_account(tables(standardized=blank), Zone.STANDARDIZED, LINES)
    assert kinds(found) == ["ROWS", "SOURCE"]


def test_nothing_waits_for_a_zone_that_the_topic_does_not_reach() -> None:
    topic = replace(tables(), is_curated=False)
    assert zone_account(topic, Zone.CURATED, ZoneLines()).waiting is None
    assert zone_account(tables(), Zone.CURATED, ZoneLines()).waiting == 7


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (None, "raw: the table that its batches have read is gone"),
        (history({"id": 2, "total-records": 15}), "end snapshot 1 is not in the history"),
        (history({"id": 1}, {"id": 2}), "does not say how many rows it has"),
        (history({"id": 1, "total-records": 1}, {"id": 2, "operation": "delete"}), "snapshot 2 is a 'delete'"),
    ],
)
def test_a_range_that_cant_be_counted_is_told_once(raw: History | None, words: str) -> None:
    found = zone_account(tables(raw), Zone.STANDARDIZED, LINES)
    [problem] = [finding for finding in found.findings if finding.kind is FindingKind.UNCOUNTABLE]
    assert words in problem.message
    assert not found.balanced


def test_a_table_that_cant_be_read_is_told_by_its_own_zone_and_by_the_next() -> None:
    damaged = ZoneTable("standardized", "here", problem="its metadata file is damaged")
    topic = replace(tables(), tables={**tables().tables, Zone.STANDARDIZED: damaged})
    for zone in (Zone.STANDARDIZED, Zone.CURATED):
        found = zone_account(topic, zone, ZoneLines())
        assert kinds(found) == ["UNCOUNTABLE"]
        assert found.waiting is None
    assert zone_account(topic, Zone.RAW, ZoneLines(Counts(15, 15))).balanced


# batches that the tables show

BATCH = Batch("events", Zone.STANDARDIZED, None, 1, "1.0.0")
INTENT = Intent(BATCH, (), NOW.isoformat(), Counts(10, inserted=7, duplicates=2, errors=1))
FLUSH = {"topic_name": "events", "zone": "raw", "batch_id": "f1"}
READERS = CommitReaders(published_batch, open_batch, lambda _, raw: [FLUSH] if raw.head else [])


def shown(stored: Checkpoint | None, **properties: str) -> ShownBatch:
    standardized = history(published(8, BATCH.batch_id, 1), **properties)
    topic = replace(tables(None, standardized), stored={Zone.STANDARDIZED: stored} if stored else {})
    [found] = shown_batches(topic, READERS, NOW)
    return found


def test_a_published_batch_that_the_store_has_open_or_knows_nothing_of_is_booked_by_the_next_run() -> None:
    for stored in (Checkpoint("p", intent=INTENT), Checkpoint("p"), None):
        found = shown(stored, **last_batch_property(INTENT))
        assert found.is_open
        assert (found.row["batch_id"], found.row["records_in"], found.row["inserted"]) == (BATCH.batch_id, 10, 7)
        assert (found.row["from_snapshot"], found.row["to_snapshot"], found.row["kind"]) == (None, "1", "BATCH")


def test_a_batch_that_the_store_has_closed_is_booked_by_nobody() -> None:
    assert not shown(Checkpoint("p", last_snapshot_id=1), **last_batch_property(INTENT)).is_open


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", json.dumps(replace(INTENT, counts=None).to_dict())])
def test_a_batch_whose_counts_are_lost_is_booked_by_nobody(text: str | None) -> None:
    found = shown(None, **({} if text is None else {LAST_BATCH_PROPERTY: text}))
    assert not found.is_open
    assert (found.row["batch_id"], found.row["zone"]) == (BATCH.batch_id, "standardized")


def test_flushes_are_booked_by_the_next_ingestion() -> None:
    assert shown_batches(tables(standardized=None), READERS, NOW) == [ShownBatch(FLUSH, is_open=True)]


# the moment


class Catalog:
    """A catalog whose Standardized table moves a few times while it is looked at."""

    def __init__(self, moves: int) -> None:
        self._version = count()
        self._moves = moves

    def locations(self, database: str) -> dict[str, str]:
        if database == NAMES.standardized_database:
            version = min(next(self._version), self._moves)
            return {"events": f"v{version}.json", "parse_errors": f"e{next(self._version)}.json", "other": "x.json"}
        return {"reconciliation_log": "ledger.json"} if database == NAMES.ops_database else {"events_staging": "r.json"}


def test_tables_are_looked_up_again_until_none_of_them_moves() -> None:
    for moves in (0, 1, 3):
        moment = take_moment(Catalog(moves), NAMES, None, ["events"])  # type: ignore[arg-type]
        assert moment.zones == {NAMES.raw("events"): "r.json", NAMES.standardized("events"): f"v{moves}.json"}
        assert set(moment.shared) == {NAMES.parse_errors, NAMES.ops("reconciliation_log")}


def test_a_lake_that_never_rests_is_taken_as_it_is() -> None:
    assert take_moment(Catalog(10**6), NAMES, None, ["events"]).zones  # type: ignore[arg-type]


def test_a_topics_tables_are_read_with_what_the_store_knows(tmp_path: Path) -> None:
    raw, bad = tmp_path / "raw.json", tmp_path / "bad.json"
    raw.write_text(json.dumps(metadata({"id": 1, "total-records": 3})))
    bad.write_text(json.dumps(metadata({"id": 1, "total-records": 3, "total-position-deletes": "many"})))
    zones = {NAMES.raw("events"): str(raw), NAMES.curated("events"): str(bad)}
    stored = {pipeline_id(Zone.CURATED, "events"): Checkpoint("curated_events")}
    topic = tables_of(Moment(zones, {}, stored, {}), NAMES, "events")
    assert topic.tables[Zone.RAW].rows == 3
    assert topic.tables[Zone.STANDARDIZED].rows == 0
    assert topic.tables[Zone.CURATED].rows is None
    assert "its metadata file is damaged" in (topic.tables[Zone.CURATED].problem or "")
    assert list(topic.stored) == [Zone.CURATED]


def test_metadata_whose_main_points_nowhere_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "raw.json"
    file.write_text(json.dumps({**metadata({"id": 1, "total-records": 3}), "current-snapshot-id": 2}))
    topic = tables_of(Moment({NAMES.raw("events"): str(file)}, {}, {}, {}), NAMES, "events")
    assert "its metadata file is damaged" in (topic.tables[Zone.RAW].problem or "")


@pytest.mark.parametrize(
    ("item", "is_curated"),
    [
        (None, False),
        (RegistryItem("events", Status.READY), False),
        (RegistryItem("events", Status.READY, curated=True), True),
    ],
)
def test_the_registry_says_whether_a_topic_goes_on_to_curated(item: RegistryItem | None, is_curated: bool) -> None:
    topic = tables_of(Moment({}, {}, {}, {"events": item} if item else {}), NAMES, "events")
    assert topic.is_curated == is_curated


# what a recount writes


def test_a_recount_has_a_line_for_each_zone_with_a_table() -> None:
    zones = tuple(replace(account(), zone=zone) for zone in Zone)
    counted = TopicAccount("events", (zones[0], replace(zones[1], findings=(MISSING,)), zones[2]))
    ids = map(str, count())
    rows = recount_rows(Recount(counted, {Zone.RAW: 5, Zone.STANDARDIZED: None}), lambda: next(ids), NOW)
    assert [(row["zone"], row["kind"], row["batch_id"], row["from_snapshot"], row["to_snapshot"]) for row in rows] == [
        ("raw", "RECOUNT", "0", None, "5"),
        ("standardized", "RECOUNT", "1", None, None),
    ]
    assert [(row["variance"], row["balanced"], row["recorded_at"]) for row in rows] == [
        (0.0, True, NOW),
        (0.3, False, NOW),
    ]
    columns = [column.name for column in OPS_TABLES["reconciliation_log"].columns]
    assert all(list(row) == columns for row in rows)


@pytest.mark.parametrize(("records_in", "severity"), [(100, "critical"), (299, "critical"), (300, "warning")])
def test_a_difference_alerts_and_one_above_a_hundredth_is_critical(records_in: int, severity: str) -> None:
    alert = variance_alert(account(MISSING, DOUBLED, records_in=records_in), "id")
    assert alert is not None
    assert (alert.kind, alert.topic, alert.severity, alert.key) == ("RECOUNT_VARIANCE", "events", severity, "id")
    assert alert.message == "recount of curated: gone: m1, m2 (and 1 more findings)"
    assert (alert.value, alert.threshold) == (3 / records_in, 0.01 if severity == "critical" else 0.0)


def test_a_note_alerts_nobody() -> None:
    assert variance_alert(account(NOTE), "id") is None
    warning = variance_alert(account(uncountable("gone")), "id")
    assert warning is not None
    assert (warning.severity, warning.value) == ("warning", 0.0)


def test_large_tables_are_counted_in_slices() -> None:
    assert [slices(rows) for rows in (0, 3_999_999, 4_000_000, 9_000_000)] == [1, 1, 2, 3]


# how it looks


def test_the_verdict_is_one_sentence() -> None:
    good, bad = account(), account(MISSING)
    assert verdict([]) == "0 topics, 0 zones: everything balances"
    assert verdict([TopicAccount("events", (good, good, good))]) == "1 topic, 3 zones: everything balances"
    assert verdict([TopicAccount("a", (good, bad))]) == "1 topic, 2 zones: 1 not balanced: events curated"
    many = verdict([TopicAccount("a", (bad,) * 12)])
    assert many.endswith("events curated and 2 more")
    assert many.startswith("1 topic, 12 zones: 12 not balanced: ")


def test_columns_that_say_nothing_are_left_out() -> None:
    always = ["topic", "zone", "in", "inserted", "errors", "rows", "accounted", "balanced"]
    assert telling_columns([account_line(account())]) == always
    told = telling_columns([account_line(account()), account_line(account(MISSING))])
    assert told == [*always[:6], "difference", "variance", *always[6:]]
    assert telling_columns([]) == []


def test_a_line_and_its_findings_are_for_a_person() -> None:
    line = account_line(account(MISSING))
    assert (line["in"], line["difference"], line["variance"], line["accounted"], line["balanced"]) == (
        10,
        3,
        "30.00%",
        "70.00%",
        "NO",
    )
    tricky = Finding(FindingKind.KEY_TWICE, "keys: [red]k[/red]")
    assert finding_line(account(), tricky) == "[bold]events, curated: KEY_TWICE[/bold]: keys: \\[red]k\\[/red]"
    assert finding_line(account(), NOTE).startswith("note: events, curated: batch b is published")
