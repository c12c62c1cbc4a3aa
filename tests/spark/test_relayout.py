"""A Curated table that outgrew its layout is moved to the next one, and nobody else notices."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table
from tests.spark.driver import TopicDriver, at

from lean_ops.lake import one_file
from lean_ops.lake.layout import TRIES_PROPERTY, LayoutMove, buckets_of
from lean_ops.lake.once import manifest_files
from lean_ops.lake.ranges import spark_name
from lean_ops.lake.snapshots import LAYOUT_PROPERTY, ROWS_PROPERTY, History, history_of
from lean_ops.ledger.books import RunStatus
from lean_ops.ledger.trace import Tracer, Wanted
from lean_ops.model.batch import Batch, Counts, Zone
from lean_ops.model.curated_layout import LayoutRule
from lean_ops.model.errors import TerminalError
from lean_ops.operate.batch import Listener
from lean_ops.operate.relayout import Relayout
from lean_ops.state.errors import LostLeaseError
from lean_ops.state.port import Lease

pytestmark = pytest.mark.spark

RULE = LayoutRule(first_rows=3, rows_per_bucket=2, fewest=2, most=8)
# No table of a test has rows for a bucket, and from the second file on it has too many (less than eight tell it apart).
GATHER = LayoutRule(first_rows=1_000, rows_per_bucket=1, fewest=2, most=8, few_files=-6)
# A column of each type, and what three messages have in it.
VALUES: dict[str, tuple[str, tuple[Any, Any, Any]]] = {
    "text": ("STRING", ("a\u0000b", "Grüße 東京 🙂", "")),
    "whole": ("INT", (-2147483648, 2147483647, None)),
    "long": ("BIGINT", (-9223372036854775808, 9223372036854775807, None)),
    "small": ("DECIMAL(9,2)", ("-9999999.99", "0.10", None)),
    "middle": ("DECIMAL(18,4)", ("-99999999999999.9999", "0.0001", None)),
    "exact": ("DECIMAL(38,10)", ("9999999999999999999999999999.9999999999", "-0.0000000001", None)),
    "near": ("DOUBLE", ("1e-300", -0.1, None)),
    "truth": ("BOOLEAN", (True, False, None)),
    "day": ("DATE", ("0001-01-01", "9999-12-31", None)),
    "moment": ("TIMESTAMP", ("0001-01-01T00:00:00.000001Z", "9999-12-31T23:59:59.999999Z", None)),
}
STEPS = ("layout begun", "layout written", "layout switched")


class Killed(BaseException):
    """The end of the process, as far as the code under test can tell."""


def message(message_id: str, value: Any, key: str | None = None, day: float = 0) -> dict[str, Any]:
    place = {"idempotency_key": key or message_id, "publish_time": at(day)}
    return {"message_id": message_id, "json_payload": f'{{"v":"{value}"}}', **place}


def put_first_rows(topic: TopicDriver) -> None:
    """Three rows, one of them corrected once, and an error."""
    topic.put(*(message(f"m{number}", number) for number in (1, 2, 3)), message("m4", "x"))
    assert topic.run() is not None
    topic.put(message("m5", 5, "m1", day=1))
    assert topic.run() is not None


@pytest.fixture
def grown(topic: TopicDriver) -> TopicDriver:
    """A topic whose Curated table has three rows and a delete file, and no partitions yet."""
    topic.use_schema({"v": {"type": "INT"}})
    put_first_rows(topic)
    assert buckets_of(table_of(topic)) == 0
    return topic


def table_of(topic: TopicDriver) -> Table:
    return topic.services.lake.load(topic.services.lake.names.curated(topic.name))


def history(topic: TopicDriver) -> History:
    return history_of(table_of(topic))


def relayout(topic: TopicDriver, on_step: Listener | None = None) -> Relayout:
    return topic.services.relayout(on_step, topic.gate.schema_of, RULE)


def look_after(topic: TopicDriver, made: Relayout) -> None:
    state = topic.services.state
    lease = state.acquire(topic.name, topic.services.presence.announce(), made.clock())
    assert isinstance(lease, Lease)
    try:
        made.look_after(topic.name, "1.0.0", lease, "a run")
    finally:
        state.release(lease)


def move(topic: TopicDriver, on_step: Listener | None = None) -> None:
    look_after(topic, relayout(topic, on_step))


def kill_after(wanted: str) -> Listener:
    def on_step(_: Batch, step: str) -> None:
        if step == wanted:
            raise Killed

    return on_step


def values(topic: TopicDriver) -> dict[str, int]:
    return {key: row["v"] for key, row in topic.curated().items()}


def plain(topic: TopicDriver) -> list[Any]:
    """The rows as Spark reads them, in its own words: Python has no time for all that Spark has."""
    rows = topic.services.sessions.mine().table(spark_name(topic.services.lake.names.curated(topic.name)))
    return sorted(rows.select([rows[name].cast("string") for name in rows.columns]).collect(), key=repr)


def moves(topic: TopicDriver) -> list[dict[str, Any]]:
    return topic.shared("maintenance_log")


def faults(topic: TopicDriver) -> list[str]:
    """What `reconcile` has against the topic's Curated table."""
    [account] = topic.services.reconciler(topic.services.state).reconcile([topic.name])
    [zone] = [each for each in account.zones if each.zone is Zone.CURATED]
    return [finding.message for finding in zone.findings]


def test_a_move_changes_the_layout_and_nothing_else(grown: TopicDriver) -> None:
    rows, before = grown.curated(), history(grown)
    move(grown)
    table, after = table_of(grown), history(grown)
    assert buckets_of(table) == 2
    assert grown.curated() == rows
    assert {row["v"] for row in table.scan().to_arrow().to_pylist()} == {5, 2, 3}
    assert (after.checkpoint(), after.checkpoint_ms()) == (before.checkpoint(), before.checkpoint_ms())
    assert (after.live_rows, list(after.refs)) == (3, ["main"])
    assert after.properties == before.properties
    head = after.snapshots[after.head or -1]
    assert (head.count("total-records"), head.count("total-delete-files"), head.parent_id) == (3, 0, before.head)
    assert faults(grown) == []


def test_a_move_is_written_down(grown: TopicDriver) -> None:
    move(grown)
    [row] = moves(grown)
    assert (row["action"], row["status"], row["error_message"]) == ("REWRITE_LAYOUT", "SUCCEEDED", None)
    assert (row["run_id"], row["table_name"]) == ("a run", str(grown.services.lake.names.curated(grown.name)))
    assert row["files_before"] >= 3  # two batches and the delete file of the second
    assert 1 <= row["files_after"] <= 2
    assert row["bytes_before"] > 0 < row["bytes_after"]


def test_a_run_moves_a_table_after_its_batch_and_goes_on_with_the_next_ones(grown: TopicDriver) -> None:
    grown.put(message("m6", 6))
    outcome = grown.run(rule=RULE)
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED
    assert buckets_of(table_of(grown)) == 2
    grown.put(message("m7", 7), message("m8", 8, "m2", day=1), message("late", 0, "m1", day=-1))
    outcome = grown.run(rule=RULE)
    assert outcome is not None
    assert outcome.batches[-1].counts == Counts(3, inserted=1, updated=1, superseded=1)
    assert values(grown) == {"m1": 5, "m2": 8, "m3": 3, "m6": 6, "m7": 7}
    assert buckets_of(table_of(grown)) == 8
    assert [row["status"] for row in moves(grown)] == ["SUCCEEDED", "SUCCEEDED"]
    assert faults(grown) == []
    assert grown.run(rule=RULE) is None


@pytest.fixture(params=["without Spark", "by Spark"])
def gatherer(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who writes a small table anew: Spark only if it has more bytes than any table of a test."""
    if request.param == "by Spark":
        monkeypatch.setattr(one_file, "LITTLE_BYTES", 0)
    return str(request.param)


def engines(topic: TopicDriver) -> set[str]:
    """Who has written the snapshots that the table was written anew with."""
    table = table_of(topic)
    summaries = (snapshot.summary.additional_properties for snapshot in table.snapshots() if snapshot.summary)
    return {each.get("engine-name", "without Spark") for each in summaries if LAYOUT_PROPERTY in each}


@pytest.mark.usefixtures("gatherer")
def test_a_small_table_of_many_files_is_written_anew_after_a_batch_and_the_next_ones_go_on(grown: TopicDriver) -> None:
    grown.put(message("m6", 6))
    outcome = grown.run(rule=GATHER)
    assert outcome is not None
    assert outcome.status is RunStatus.SUCCEEDED
    table, after = table_of(grown), history(grown)
    head = after.snapshots[after.head or -1]
    assert (head.count("total-data-files"), head.count("total-delete-files")) == (1, 0)
    assert (buckets_of(table), after.live_rows, list(after.refs)) == (0, 4, ["main"])
    assert TRIES_PROPERTY not in table.properties
    [row] = moves(grown)
    assert (row["action"], row["status"], row["files_after"]) == ("REWRITE_FILES", "SUCCEEDED", 1)
    assert row["files_before"] > 2
    grown.put(message("m7", 7, "m2", day=1), message("late", 0, "m1", day=-1))
    outcome = grown.run()
    assert outcome is not None
    assert outcome.batches[-1].counts == Counts(2, updated=1, superseded=1)
    assert values(grown) == {"m1": 5, "m2": 7, "m3": 3, "m6": 6}
    assert faults(grown) == []


def test_only_what_is_more_than_a_little_takes_spark_to_gather(grown: TopicDriver, gatherer: str) -> None:
    grown.put(message("m6", 6))
    assert grown.run(rule=GATHER) is not None
    assert engines(grown) == {"without Spark" if gatherer == "without Spark" else "spark"}


@pytest.mark.usefixtures("gatherer")
def test_gathering_keeps_every_value_of_every_type_and_null(topic: TopicDriver) -> None:
    topic.use_schema({name: {"type": kind} for name, (kind, _) in VALUES.items()})
    for number in (1, 2, 3):
        place = {"idempotency_key": f"k{number}", "publish_time": at(number)}
        payload = json.dumps({name: texts[number - 1] for name, (_, texts) in VALUES.items()})
        topic.put({"message_id": f"m{number}", "json_payload": payload, **place})
        topic.put({"message_id": f"n{number}", "json_payload": payload, **place})
        assert topic.run() is not None
    names = [field.name for field in table_of(topic).schema().fields]
    before, rows = topic.curated(), plain(topic)
    assert {name for name in VALUES for row in before.values() if row[name] is not None} == set(VALUES)
    look_after(topic, topic.services.relayout(None, topic.gate.schema_of, GATHER))
    assert (topic.curated(), plain(topic)) == (before, rows)
    assert [field.name for field in table_of(topic).schema().fields] == names
    head = history(topic).snapshots[history(topic).head or -1]
    assert (head.count("total-data-files"), head.count("total-records")) == (1, 3)
    assert faults(topic) == []


@pytest.mark.usefixtures("gatherer")
def test_a_column_that_came_since_the_last_batch_stays_when_files_are_gathered(grown: TopicDriver) -> None:
    grown.use_schema({"v": {"type": "INT"}, "w": {"type": "DATE"}})
    before = grown.curated()
    assert {row["w"] for row in before.values()} == {None}
    look_after(grown, grown.services.relayout(None, grown.gate.schema_of, GATHER))
    assert grown.curated() == before
    grown.put({**message("m6", 6), "json_payload": '{"v": "6", "w": "2026-02-03"}'})
    assert grown.run() is not None
    assert str(grown.curated()["m6"]["w"]) == "2026-02-03"
    assert faults(grown) == []


def test_what_gathering_took_away_is_told_in_manifests_of_its_kind(grown: TopicDriver) -> None:
    before = {file.file_path: int(file.content) for _, file in manifest_files(table_of(grown))}
    assert set(before.values()) == {0, 1}
    look_after(grown, grown.services.relayout(None, grown.gate.schema_of, GATHER))
    table = table_of(grown)
    assert engines(grown) == {"without Spark"}
    head = table.current_snapshot()
    assert head is not None
    gone: dict[str, int] = {}
    for manifest in head.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            if entry.status is ManifestEntryStatus.DELETED:
                gone[entry.data_file.file_path] = int(manifest.content)
    assert gone == before
    assert [int(file.content) for _, file in manifest_files(table)] == [0]


@pytest.mark.parametrize("step", STEPS)
def test_gathering_that_is_killed_leaves_a_whole_table_and_the_next_batch_gathers(
    grown: TopicDriver, step: str
) -> None:
    rows = grown.curated()
    with pytest.raises(Killed):
        look_after(grown, grown.services.relayout(kill_after(step), grown.gate.schema_of, GATHER))
    assert grown.curated() == rows
    assert faults(grown) == []
    grown.put(message("m6", 6, "m3", day=1))
    assert grown.run(rule=GATHER) is not None
    assert values(grown) == {"m1": 5, "m2": 2, "m3": 6}
    head = history(grown).snapshots[history(grown).head or -1]
    assert (head.count("total-data-files"), head.count("total-delete-files")) == (1, 0)
    assert list(history(grown).refs) == ["main"]


def test_rows_of_one_key_are_in_one_bucket(grown: TopicDriver) -> None:
    move(grown)
    grown.put(message("m8", 8, "m2", day=1))
    assert grown.run() is not None
    places = {}
    for task in table_of(grown).scan().plan_files():
        assert task.file.spec_id == table_of(grown).spec().spec_id
        places[task.file.file_path] = task.file.partition[0]
    assert set(places.values()) <= {0, 1}
    assert len(values(grown)) == 3


@pytest.mark.parametrize("step", STEPS)
def test_a_move_that_is_killed_leaves_a_whole_table_and_the_next_one_finishes(grown: TopicDriver, step: str) -> None:
    rows = grown.curated()
    with pytest.raises(Killed):
        move(grown, kill_after(step))
    assert grown.curated() == rows
    assert faults(grown) == []
    grown.put(message("m6", 6, "m3", day=1))
    outcome = grown.run(rule=RULE)
    assert outcome is not None
    assert outcome.batches[-1].counts == Counts(1, updated=1)
    assert values(grown) == {"m1": 5, "m2": 2, "m3": 6}
    assert buckets_of(table_of(grown)) == 2
    assert list(history(grown).refs) == ["main"]
    assert TRIES_PROPERTY not in table_of(grown).properties
    assert len(table_of(grown).specs()) == 2
    assert faults(grown) == []


def test_a_batch_after_a_killed_move_may_also_come_without_another_move(grown: TopicDriver) -> None:
    with pytest.raises(Killed):
        move(grown, kill_after("layout written"))
    grown.put(message("m6", 6))
    assert grown.run() is not None
    assert values(grown) == {"m1": 5, "m2": 2, "m3": 3, "m6": 6}
    assert buckets_of(table_of(grown)) == 0
    assert list(history(grown).refs) == ["main"]


def test_while_a_table_is_moved_it_is_read_and_raw_takes_messages(grown: TopicDriver) -> None:
    rows, seen = grown.curated(), []

    def look(_: Batch, step: str) -> None:
        grown.put(message(f"n-{step}", 1))
        seen.append(grown.curated() == rows)

    move(grown, look)
    assert seen == [True, True, True]
    outcome = grown.run()
    assert outcome is not None
    assert outcome.batches[-1].counts == Counts(3, inserted=3)


def test_a_runner_that_lost_its_lease_does_not_switch(grown: TopicDriver) -> None:
    rows, head = grown.curated(), history(grown).head

    def lose_the_lease(_: Batch, step: str) -> None:
        if step == "layout written":
            db = grown.services.state._file.connection()
            db.execute("UPDATE locks SET owner = 'another', fence = fence + 1 WHERE topic_name = ?", (grown.name,))

    with pytest.raises(LostLeaseError):
        move(grown, lose_the_lease)
    assert (grown.curated(), history(grown).head) == (rows, head)
    grown.services.state._file.connection().execute("UPDATE locks SET owner = NULL WHERE topic_name = ?", (grown.name,))
    move(grown)
    assert (grown.curated(), buckets_of(table_of(grown))) == (rows, 2)


def test_other_rows_than_the_table_has_do_not_take_its_place(grown: TopicDriver) -> None:
    head = history(grown).head
    with table_of(grown).transaction() as transaction:
        transaction.set_properties({ROWS_PROPERTY: "4"})  # which the delete file leaves possible
    with pytest.raises(TerminalError, match="found 3 rows, 3 of them new, with 0 delete files; expected 4 rows"):
        move(grown)
    assert (history(grown).head, buckets_of(table_of(grown))) == (head, 0)
    [row] = moves(grown)
    assert row["status"] == "FAILED"
    assert "did not take its place" in row["error_message"]


@pytest.mark.parametrize("partitioning", [[], ["bucket(4, message_id)"], ["bucket(1, idempotency_key)"]])
def test_a_schema_with_a_layout_of_its_own_keeps_it(topic: TopicDriver, partitioning: list[str]) -> None:
    topic.use_schema({"v": {"type": "INT"}}, partitioning=partitioning)
    put_first_rows(topic)
    spec, head = table_of(topic).spec(), history(topic).head
    move(topic)
    assert (table_of(topic).spec(), history(topic).head, moves(topic)) == (spec, head, [])


def test_a_column_that_has_the_next_layouts_name_keeps_the_table_where_it_is(topic: TopicDriver) -> None:
    topic.use_schema({"v": {"type": "INT"}, "idempotency_key_bucket_2": {"type": "INT"}})
    put_first_rows(topic)
    move(topic)
    assert (buckets_of(table_of(topic)), moves(topic)) == (0, [])


def test_a_move_that_fails_is_told_and_the_batches_go_on(grown: TopicDriver) -> None:
    def fail(_: Batch, step: str) -> None:
        if step == "layout written":
            raise RuntimeError("no room")

    grown.put(message("m6", 6))
    outcome = grown.run(fail, RULE)
    assert outcome is not None
    assert (outcome.status, [batch.zone for batch in outcome.batches]) == (RunStatus.FAILED, list(Zone)[1:])
    assert "no room" in str(outcome.reason)
    assert [row["error_message"] for row in moves(grown)] == ["no room"]
    assert values(grown) == {"m1": 5, "m2": 2, "m3": 3, "m6": 6}


def test_a_move_that_fails_again_and_again_is_tried_once_a_day(grown: TopicDriver) -> None:
    tried: list[int] = []

    def fail(made: LayoutMove, _: int, __: Mapping[str, str]) -> None:
        tried.append(made.buckets)
        raise MemoryError

    clock = grown.services.clock
    later: Callable[[float], Any] = lambda days: lambda: clock() + timedelta(days=days)  # noqa: E731  a clock ahead
    failing = replace(relayout(grown), write_anew=fail)
    for days in (0, 0, 0, 0, 0.9, 1.1, 1.2, 2.3):
        try:
            look_after(grown, replace(failing, clock=later(days)))
        except MemoryError:
            continue
    assert tried == [2] * 5
    look_after(grown, replace(relayout(grown), clock=later(4)))
    assert buckets_of(table_of(grown)) == 2


def test_a_trace_tells_the_batches_that_wrote_the_rows_and_not_the_move(grown: TopicDriver) -> None:
    services = grown.services

    def told() -> list[Any]:
        tracer = Tracer(services.lake.file, services.lake.names, services.state)
        return [fate for key in ("m1", "m2") for fate in tracer.trace(Wanted.key(key), grown.name).curated]

    before = told()
    assert [str(fate.fate) for fate in before] == ["replaced", "curated", "curated"]
    move(grown)
    assert told() == before
