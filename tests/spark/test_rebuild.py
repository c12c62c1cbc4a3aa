"""A topic's tables built again from RAW: nothing changes that was right, and what was wrong is right afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, In
from tests.spark.driver import TopicDriver
from tests.spark.rebuilds import (
    FIRST,
    HOPS,
    NOT_COMPARED,
    SCHEMA,
    SECOND,
    THIRD,
    Killed,
    _tidy,
    assert_sound,
    findings,
    leftovers,
    live,
    message,
    rebuild,
    rebuild_lines,
    rebuilt,
    seen,
    state,
)

from lean_ops.lake.restate import restate
from lean_ops.lake.snapshots import history_of
from lean_ops.ledger.books import RunStatus
from lean_ops.ledger.fates import Fate
from lean_ops.ledger.trace import Tracer, Wanted
from lean_ops.model.batch import Batch, Zone
from lean_ops.operate.rebuild_difference import Difference
from lean_ops.settings import load_settings
from lean_ops.state.port import Lease
from lean_ops.wiring import Services

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


def test_what_was_right_stays_as_it_is(lived: TopicDriver) -> None:
    before = state(lived)
    difference = rebuilt(lived)
    assert difference.is_none
    assert [(zone.rows.before, zone.rows.after) for zone in difference.zones] == [(14, 14), (9, 9)]
    assert [(zone.errors.before, zone.errors.after) for zone in difference.zones] == [(2, 2), (2, 2)]
    assert_sound(lived, before)
    lines = rebuild_lines(lived)
    counts = ("records_in", "records_out", "inserted", "updated", "duplicates", "superseded", "errors")
    assert [{row[name] for name in counts} for row in lines] == [{0}, {0}]
    assert all(row["balanced"] for row in lines)
    ids = {row["batch_id"] for row in lines}
    assert {row["_batch_id"] for row in (*lived.standardized(), *lived.curated().values())} == ids
    assert {row["batch_id"] for name in ("parse_errors", "errors") for row in lived.shared(name)} == ids


def test_its_history_tells_of_it(lived: TopicDriver) -> None:
    rebuilt(lived)
    rows = [row for row in lived.shared("job_run_history") if row["reason"] == "rebuild"]
    found = {row["zone"]: (row["status"], row["records_in"], row["records_out"]) for row in rows}
    assert found == {"standardized": ("SUCCEEDED", 19, 14), "curated": ("SUCCEEDED", 14, 9)}


def test_live_processing_goes_on_where_it_was(lived: TopicDriver, new_topic: Callable[[], TopicDriver]) -> None:
    rebuilt(lived)
    assert lived.run() is None
    live(lived, THIRD)
    other = new_topic()
    other.use_schema(SCHEMA)
    for messages in (FIRST, SECOND, THIRD):
        live(other, messages)
    assert seen(lived) == seen(other)
    assert findings(lived) == []
    rebuilt(lived)
    assert seen(lived) == seen(other)
    assert findings(lived) == []


def test_a_second_rebuild_changes_nothing(lived: TopicDriver) -> None:
    before = state(lived)
    rebuilt(lived)
    assert rebuilt(lived).is_none
    assert_sound(lived, before)


def test_rows_that_somebody_deleted_come_back(lived: TopicDriver) -> None:
    before, lake = state(lived), lived.services.lake
    lake.load(lake.names.standardized(lived.name)).delete(In("message_id", {"m4", "corrected"}))
    lake.load(lake.names.curated(lived.name)).delete(EqualTo("idempotency_key", "key-m7"))
    first_seen = lived.curated()["key-m5"]["first_seen_ts"]
    assert findings(lived) != []
    difference = rebuilt(lived)
    standardized, curated = difference.zones
    assert (standardized.rows.new, standardized.rows.ids) == (2, {"new": ["corrected", "m4"]})
    assert (curated.rows.new, curated.rows.ids) == (1, {"new": ["key-m7"]})
    hidden = {"_batch_id", "first_seen_ts", "last_updated_ts"}  # of a key that is gone nobody knows when it came
    after = state(lived)
    assert after["standardized"] == before["standardized"]
    assert {key: row["a"] for key, row in lived.curated().items()}["key-m7"] == 7
    assert len(lived.curated()) == len(before["curated"])
    assert hidden <= {*lived.curated()["key-m7"]}
    assert lived.curated()["key-m5"]["first_seen_ts"] == first_seen
    assert findings(lived) == []
    assert leftovers(lived) == []
    live(lived, THIRD)
    assert findings(lived) == []


def test_rows_that_somebody_added_or_doubled_go(lived: TopicDriver) -> None:
    before, lake = state(lived), lived.services.lake
    table = lake.load(lake.names.standardized(lived.name))
    rows = table.scan(row_filter=EqualTo("message_id", "m4")).to_arrow()
    table.append(rows)
    curated = lake.load(lake.names.curated(lived.name))
    doubled = curated.scan(row_filter=EqualTo("idempotency_key", "key-m4")).to_arrow()
    curated.append(doubled)
    difference = rebuilt(lived)
    assert [(zone.rows.before - zone.rows.after, zone.rows.changed) for zone in difference.zones] == [(1, 1), (1, 1)]
    assert_sound(lived, before)


def test_first_copies_stay_first_copies_to_trace(lived: TopicDriver) -> None:
    rebuilt(lived)
    services = lived.services
    tracer = Tracer(services.lake.file, services.lake.names, services.state)
    fates = {copy.copy.payload: copy.fate for copy in tracer.trace(Wanted.message("m2"), lived.name).copies}
    assert fates == {'{"a":2,"note":"n"}': Fate.STANDARDIZED, '{"a":"!"}': Fate.DUPLICATE}


def test_live_batches_come_while_it_is_built(lived: TopicDriver, new_topic: Callable[[], TopicDriver]) -> None:
    came: list[str] = []

    def on_step(step: str) -> None:
        if step in {"standardized built", "compared"} and step not in came:
            came.append(step)
            live(lived, THIRD if len(came) == 1 else [message("n9", '{"a":9}'), message("bad1", "{", second=77)])

    difference = rebuilt(lived, on_step)
    assert came == ["standardized built", "compared"]
    assert difference.is_none
    assert len(rebuild_lines(lived)) == 2
    other = new_topic()
    other.use_schema(SCHEMA)
    for messages in (FIRST, SECOND, THIRD, [message("n9", '{"a":9}'), message("bad1", "{", second=77)]):
        live(other, messages)
    assert seen(lived) == seen(other)
    assert findings(lived) == []
    assert leftovers(lived) == []


def killed_before_curated(topic: TopicDriver) -> None:
    def on_step(batch: Batch, step: str) -> None:
        if step == "intent stored" and batch.zone is Zone.CURATED:
            raise Killed

    with pytest.raises(Killed):
        topic.run(on_step)


def test_a_rebuild_between_the_hops_of_a_live_run_keeps_the_live_first_times(lived: TopicDriver) -> None:
    lived.put(*THIRD)

    killed_before_curated(lived)
    times: dict[str, Any] = {}

    def on_step(step: str) -> None:
        if step == "caught up" and not times:
            outcome = lived.run()
            assert outcome is not None
            times.update({key: row["first_seen_ts"] for key, row in lived.curated().items()})

    difference = rebuilt(lived, on_step)
    assert difference.is_none
    assert {key: row["first_seen_ts"] for key, row in lived.curated().items()} == times
    assert findings(lived) == []


def test_a_rebuild_reads_what_live_processing_has_not_curated_yet(lived: TopicDriver) -> None:
    lived.put(*THIRD)

    killed_before_curated(lived)
    difference = rebuilt(lived)
    assert [(zone.rows.new, zone.rows.changed) for zone in difference.zones] == [(0, 0), (1, 1)]
    assert lived.curated()["key-n2"]["a"] == 8
    assert findings(lived) == []
    assert leftovers(lived) == []
    assert lived.run() is None


def test_what_is_not_wanted_leaves_everything_as_it_was(lived: TopicDriver) -> None:
    before = state(lived)
    tables = [lived.services.lake.names.of_zone(zone, lived.name) for zone in HOPS]
    heads = [history_of(lived.services.lake.load(name)).head for name in tables]
    outcome = rebuild(lived, agree=lambda _: False)
    assert (outcome.status, outcome.published) == (RunStatus.SKIPPED, False)
    assert_sound(lived, before)
    assert [history_of(lived.services.lake.load(name)).head for name in tables] == heads
    assert rebuild_lines(lived) == []


def test_who_agreed_is_asked_again_if_something_else_would_change_by_then(lived: TopicDriver) -> None:
    before, lake, asked = state(lived), lived.services.lake, list[Difference]()

    def agree(difference: Difference) -> bool:
        if not asked:
            lake.load(lake.names.standardized(lived.name)).delete(EqualTo("message_id", "m4"))
        asked.append(difference)
        return True

    outcome = rebuild(lived, agree=agree, asks=True)
    assert outcome.published
    assert [difference.zones[0].rows.ids for difference in asked] == [{}, {"new": ["m4"]}]
    assert_sound(lived, before)


def test_who_agreed_is_not_asked_again_for_what_live_processing_brings(lived: TopicDriver) -> None:
    asked: list[Difference] = []

    def agree(difference: Difference) -> bool:
        live(lived, THIRD)
        asked.append(difference)
        return True

    outcome = rebuild(lived, agree=agree, asks=True)
    assert (outcome.published, len(asked)) == (True, 1)
    assert outcome.difference is not None
    assert (asked[0].zones[0].rows.after, outcome.difference.zones[0].rows.after) == (14, 16)
    assert findings(lived) == []


def test_live_processing_that_does_not_let_go_is_told_and_nothing_is_changed(lived: TopicDriver) -> None:
    before, store = state(lived), lived.services.state
    lease = store.acquire(lived.name, lived.services.presence.announce(), lived.services.clock())
    assert isinstance(lease, Lease)
    outcome = rebuild(lived)
    store.release(lease)
    assert outcome.status is RunStatus.FAILED
    assert "did not let go" in (outcome.reason or "")
    assert_sound(lived, before)
    told = [row for row in lived.shared("job_run_history") if (row["reason"] or "").startswith("rebuild: ")]
    assert [row["status"] for row in told] == ["FAILED"]


def test_marks_of_replays_stay_where_the_fate_stays(lived: TopicDriver) -> None:
    lake = lived.services.lake
    marks = {
        "bad1": {"replay_status": "FAILED", "replay_id": "r1"},
        "bad2": {"replay_status": "FIXED", "replay_id": "r2"},
    }
    restate(lake, lake.names.parse_errors, lived.name, "message_id", marks)
    rebuilt(lived)
    found = {row["message_id"]: (row["replay_status"], row["replay_id"]) for row in lived.shared("parse_errors")}
    # Nothing in Standardized bears out that bad2 was fixed, and the rebuild refuses it again.
    assert found == {"bad1": ("FAILED", "r1"), "bad2": ("NEW", None)}


def test_a_topic_that_ends_at_standardized(topic: TopicDriver) -> None:
    topic.use_schema(SCHEMA, zones=["standardized"])
    live(topic, FIRST)
    live(topic, SECOND)
    rows, errors = topic.standardized(), len(topic.shared("parse_errors"))
    difference = rebuilt(topic)
    assert [zone.zone for zone in difference.zones] == [Zone.STANDARDIZED]
    assert difference.is_none
    assert _tidy(topic.standardized(), NOT_COMPARED) == _tidy(rows, NOT_COMPARED)
    assert len(topic.shared("parse_errors")) == errors == 2
    assert findings(topic) == []
    live(topic, THIRD)
    assert findings(topic) == []


def test_a_topic_without_a_batch_has_nothing_to_rebuild(topic: TopicDriver) -> None:
    topic.use_schema(SCHEMA)
    topic.put(*FIRST)
    outcome = rebuild(topic)
    assert outcome.status is RunStatus.FAILED
    assert "no batch of this topic has run yet" in (outcome.reason or "")


def test_columns_that_are_allowed_by_now_are_filled(topic: TopicDriver) -> None:
    topic.use_schema(SCHEMA, zones=["standardized"])
    limit = topic.services.settings.column_limit
    leaves = ", ".join(f'"leaf{number:02}": {number}' for number in range(limit + 2))
    live(topic, [message("wide", f"{{{leaves}}}"), message("narrow", '{"leaf01": 1}')])
    assert "_extra" in topic.payload_rows()["wide"]
    old = topic.services
    topic.services = Services(load_settings({"home": old.settings.home, "column_limit": limit + 5}, environ={}))
    vars(topic.services).update(sessions=old.sessions, presence=old.presence)
    [zone] = rebuilt(topic).zones
    assert zone.new_columns == (f"leaf{limit}", f"leaf{limit + 1}")
    assert (zone.rows.changed, zone.rows.ids) == (1, {"changed": ["wide"]})
    assert topic.payload_rows()["wide"] == {f"leaf{number:02}": str(number) for number in range(limit + 2)}
    drift = [row["column_name"] for row in topic.shared("drift_log") if row["kind"] == "NEW_COLUMN"]
    assert len(drift) == len(set(drift)) == limit + 2
    assert findings(topic) == []
