"""A topic's tables built again from RAW: nothing changes that was right, and what was wrong is right afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, In
from tests.spark.driver import OpenGate, TopicDriver, at, run_topics

from lean_ops.lake.rebuild_ground import BRANCH_PREFIX
from lean_ops.lake.restate import restate
from lean_ops.lake.snapshots import history_of
from lean_ops.ledger.books import RunStatus
from lean_ops.ledger.fates import Fate
from lean_ops.ledger.recount import Recounter
from lean_ops.ledger.trace import Tracer, Wanted
from lean_ops.model.batch import Batch, Zone, pipeline_id
from lean_ops.operate.rebuild import RebuildOutcome
from lean_ops.operate.rebuild_difference import Difference
from lean_ops.settings import load_settings
from lean_ops.state.port import Lease
from lean_ops.wiring import Services

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

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


@pytest.fixture
def lived(topic: TopicDriver) -> TopicDriver:
    """A topic with two batches: copies, corrections, refused rows of both hops, new columns."""
    topic.use_schema(SCHEMA)
    live(topic, FIRST)
    live(topic, SECOND)
    return topic


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


def seen(topic: TopicDriver) -> dict[str, Any]:
    """A topic's rows in words that two topics share."""
    times = {"topic_name", "first_seen_ts", "last_updated_ts", "processed_ts", "batch_id", "_batch_id"}
    return {
        "standardized": _tidy(topic.standardized(), times),
        "curated": _tidy(list(topic.curated().values()), times),
        "parse_errors": _tidy(topic.shared("parse_errors"), times),
        "errors": _tidy(topic.shared("errors"), times),
    }


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


# kills


STEPS = (
    "branches made",
    "standardized rows staged",
    "standardized errors written",
    "standardized built",
    "curated rows merged",
    "curated built",
    "caught up",
    "compared",
    "switch noted",
    "intents stored",
    "standardized switched",
    "standardized errors replaced",
    "curated switched",
    "curated errors replaced",
    "standardized ledger written",
    "standardized history written",
    "standardized checkpoint moved",
    "curated ledger written",
    "curated checkpoint moved",
    "booked",
    "cleared",
)
SWITCHED = STEPS[STEPS.index("standardized switched") :]


def kill_after(wanted: str) -> Callable[[str], None]:
    def on_step(step: str) -> None:
        if step == wanted:
            raise Killed

    return on_step


def killed(topic: TopicDriver, step: str) -> None:
    with pytest.raises(Killed):
        rebuild(topic, kill_after(step))


@pytest.fixture
def several(new_topic: Callable[[], TopicDriver]) -> dict[str, TopicDriver]:
    """A topic for every step, all with the same gate and two batches; and one that nothing happens to."""
    gate = OpenGate()
    topics = {step: new_topic() for step in (*STEPS, "undisturbed")}
    for topic in topics.values():
        topic.gate = gate
        topic.use_schema(SCHEMA)
    services = topics["undisturbed"].services
    for messages in (FIRST, SECOND):
        for topic in topics.values():
            topic.put(*messages)
        outcomes = run_topics(services, gate, [topic.name for topic in topics.values()])
        assert {outcome.status for outcome in outcomes.values()} == {RunStatus.SUCCEEDED}
    return topics


def test_killed_after_any_step_the_next_run_finds_everything_as_it_should_be(several: dict[str, TopicDriver]) -> None:
    for step in STEPS:
        killed(several[step], step)
    gate = several["undisturbed"].gate
    for topic in several.values():
        topic.put(*THIRD)
    outcomes = run_topics(several["undisturbed"].services, gate, [topic.name for topic in several.values()])
    expected = seen(several["undisturbed"])
    for step, topic in several.items():
        outcome = outcomes[topic.name]
        assert {step: (outcome.status, outcome.reason)} == {step: (RunStatus.SUCCEEDED, None)}
        assert {step: seen(topic)} == {step: expected}
        assert {step: findings(topic)} == {step: []}
        assert {step: len(rebuild_lines(topic))} == {step: 2 if step in SWITCHED else 0}


@pytest.mark.parametrize("step", ["curated rows merged", "intents stored", "standardized switched", "curated switched"])
def test_killed_after_a_step_the_next_rebuild_puts_it_right(lived: TopicDriver, step: str) -> None:
    before = state(lived)
    killed(lived, step)
    outcome = rebuild(lived)
    assert outcome.status is RunStatus.SUCCEEDED
    assert_sound(lived, before)
    assert len(rebuild_lines(lived)) == 2


@pytest.mark.parametrize("step", ["standardized switched", "standardized ledger written"])
def test_killed_within_the_switch_a_run_without_anything_new_finishes_it(lived: TopicDriver, step: str) -> None:
    before = state(lived)
    killed(lived, step)
    outcome = lived.run()
    assert outcome is not None
    assert (outcome.status, outcome.reason) == (RunStatus.SUCCEEDED, None)
    assert_sound(lived, before)
    assert len(rebuild_lines(lived)) == 2


def test_an_open_live_batch_survives_a_rebuild_that_is_given_up(lived: TopicDriver) -> None:
    lived.put(*THIRD)

    def stop(_: Any, step: str) -> None:
        if step == "errors written":
            raise Killed

    with pytest.raises(Killed):
        lived.run(stop)
    killed(lived, "intents stored")
    outcome = lived.run()
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED
    assert findings(lived) == []
    assert len(lived.shared("parse_errors")) == 3


def test_a_published_batch_without_books_is_booked_before_the_switch(lived: TopicDriver) -> None:
    lived.put(*THIRD)

    def stop(_: Any, step: str) -> None:
        if step == "published":
            raise Killed

    with pytest.raises(Killed):
        lived.run(stop)
    rebuilt(lived)
    assert findings(lived) == []
    outcome = lived.run()
    assert outcome is None or outcome.status is RunStatus.SUCCEEDED
    assert findings(lived) == []


def test_branches_of_a_rebuild_are_not_taken_for_leftovers_of_batches(lived: TopicDriver) -> None:
    seen_branches: list[int] = []

    def on_step(step: str) -> None:
        if step == "standardized built" and not seen_branches:
            live(lived, THIRD)
            table = lived.services.lake.load(lived.services.lake.names.standardized(lived.name))
            seen_branches.append(sum(ref.startswith(BRANCH_PREFIX) for ref in table.refs()))

    rebuilt(lived, on_step)
    assert seen_branches == [1]
