"""The trace from Standardized on, over real tables written through pyiceberg: every curated fate occurs, no Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo
from tests.registry import put

from lean_ops.entrypoints.cli import main
from lean_ops.ledger.curated_fates import CuratedFate, RowFate
from lean_ops.ledger.trace import Tracer, Wanted
from lean_ops.model.batch import Batch, Intent, Zone
from lean_ops.model.registry import Flow, RegistryItem, Status
from lean_ops.model.tables import CURATED_AUDIT, ENVELOPE, Column, TableShape
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

DAY = datetime(2026, 2, 3, 10, tzinfo=UTC)
SHAPE = TableShape((*ENVELOPE, Column("amount"), *CURATED_AUDIT), ())
READY = RegistryItem("events", Status.READY, schema_version="1.0.0", curated=True)
Message = tuple[str, str | None, int]


def message(name: str, key: str | None, hour: int, topic: str = "events") -> dict[str, Any]:
    published = DAY + timedelta(hours=hour)
    return {
        "topic_name": topic,
        "message_id": name,
        "idempotency_key": key,
        "publish_time": published,
        "ingestion_ts": hour,
    }


def marks(batch_id: str, to_snapshot: int) -> dict[str, str]:
    return {"lean-ops.batch-id": batch_id, "lean-ops.to-snapshot": str(to_snapshot)}


def append(table: Table, rows: list[dict[str, Any]], properties: dict[str, str] | None = None) -> int:
    arrow = pa.Table.from_pylist(rows, schema=table.schema().as_arrow())
    table.append(arrow, snapshot_properties=properties or {})
    return head(table)


def head(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


class Home:
    """A topic's tables in every zone, filled batch by batch."""

    def __init__(self, folder: Path, topic: str = "events") -> None:
        self.services = Services(load_settings({"home": folder}, environ={}), clock=lambda: DAY)
        self.lake, self.topic = self.services.lake, topic
        self.lake.ensure_shared()
        self.raw, self.standardized = self.lake.ensure_raw(topic), self.lake.ensure_standardized(topic)
        put(self.services.state, READY)

    @property
    def curated(self) -> Table:
        return self.lake.ensure(self.lake.names.curated(self.topic), SHAPE)

    def standardize(self, batch_id: str, *messages: Message) -> int:
        """One RAW append and the Standardized batch that reads it; the latter's snapshot."""
        rows = [message(*values) for values in messages]
        landed = append(self.raw, rows)
        return append(self.standardized, [{**row, "_batch_id": batch_id} for row in rows], marks(batch_id, landed))

    def curate(self, batch_id: str, to_snapshot: int, *messages: Message) -> int:
        """A Curated batch that ends with these rows, in place of their keys' rows; its last snapshot."""
        table, properties = self.curated, marks(batch_id, to_snapshot)
        for _, key, _ in messages:
            if table.scan(EqualTo("idempotency_key", key)).count():
                table.delete(EqualTo("idempotency_key", key), snapshot_properties=properties)
        audit = {"_batch_id": batch_id, "_schema_version": "1.0.0", "first_seen_ts": DAY, "last_updated_ts": DAY}
        return append(table, [{**message(*values), **audit} for values in messages], properties)

    def refuse(self, batch_id: str, error_type: str, fields: list[str], refused: Message) -> None:
        error = {"error_type": error_type, "error_fields": fields, "error_message": f"{fields[0]}: [no] good"}
        more = {"schema_version": "1.0.0", "batch_id": batch_id, "replay_status": "NEW", "processed_ts": DAY}
        self.services.shared.append_rows(self.lake.names.curated_errors, [{**message(*refused), **error, **more}])

    @property
    def tracer(self) -> Tracer:
        return Tracer(self.lake.file, self.lake.names, self.services.state)

    def fate(self, message_id: str) -> RowFate:
        [found] = self.tracer.trace(Wanted.message(message_id)).curated
        return found

    def told(self, message_id: str) -> tuple[str, str]:
        found = self.fate(message_id)
        return str(found.fate), found.reason


class Story(Home):
    """Two Curated batches over two of three Standardized ones."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        first = (("old", "k1", 1), ("loser", "k2", 1), ("winner", "k2", 2), ("lost", "k4", 1))
        refused: tuple[Message, ...] = (("wrong", "k3", 1), ("keyless", None, 1))
        self.s1 = self.standardize("b1", *first, *refused)
        self.s2 = self.standardize("b2", ("new", "k1", 3), ("late", "k2", 0))
        self.refuse("c1", "TYPE_CAST", ["amount", "price"], refused[0])
        self.refuse("c1", "CDE_VIOLATION", ["idempotency_key"], refused[1])
        self.c1 = self.curate("c1", self.s1, first[0], first[2])
        self.c2 = self.curate("c2", self.s2, ("new", "k1", 3))
        self.s3 = self.standardize("b3", ("waiting", "k1", 4))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return Story(tmp_path_factory.mktemp("curated"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# the fates


def test_the_current_row_of_a_key_is_told_with_batch_snapshot_and_times(story: Story) -> None:
    found = story.fate("new")
    assert (found.fate, found.batch_id, found.snapshot_id) == (CuratedFate.CURATED, "c2", story.c2)
    assert found.version is not None
    assert (found.version.first_seen_ts, found.version.last_updated_ts) == (DAY, DAY)
    assert story.fate("winner").snapshot_id == story.c1


def test_a_replaced_row_names_what_took_its_place_and_the_snapshot_in_which_it_was_the_row(story: Story) -> None:
    found = story.fate("old")
    assert (found.fate, found.snapshot_id) == (CuratedFate.REPLACED, story.c1)
    assert found.reason == "the key's row after batch c1, until message new of batch c2 took its place"


def test_a_superseded_row_names_the_version_that_its_batch_ended_with(story: Story) -> None:
    words = "ended with a newer version of the key: message winner of batch c1"
    assert story.told("loser") == ("superseded", f"batch c1 {words}")
    assert story.told("late") == ("superseded", f"batch c2 {words}")


def test_a_refused_row_is_told_with_its_error(story: Story) -> None:
    assert story.told("wrong") == ("curated_error", "TYPE_CAST: amount: [no] good")
    [error] = story.tracer.trace(Wanted.message("wrong")).curated_errors
    assert (error.error_fields, error.schema_version, error.replay_status) == (("amount", "price"), "1.0.0", "NEW")
    assert story.told("keyless") == ("curated_error", "CDE_VIOLATION: idempotency_key: [no] good")


def test_a_row_that_a_batch_lost_is_not_hidden(story: Story) -> None:
    assert story.told("lost") == ("missing", "read by batch c1, but neither in Curated nor in its errors")


def test_a_row_after_the_checkpoint_waits(story: Story) -> None:
    assert story.told("waiting") == ("pending", f"newer than the checkpoint (Standardized snapshot {story.s2})")


def test_a_key_shows_all_its_versions_newest_last(story: Story) -> None:
    found = story.tracer.trace(Wanted.key("k1")).curated
    assert [(one.row.message_id, str(one.fate), one.is_current) for one in found] == [
        ("old", "replaced", False),
        ("new", "curated", True),
        ("waiting", "pending", False),
    ]


def test_a_replaced_version_names_the_next_one_and_not_the_newest(home: Home) -> None:
    for number in (1, 2, 3):
        home.curate(
            f"c{number}", home.standardize(f"b{number}", (f"m{number}", "k", number)), (f"m{number}", "k", number)
        )
    reasons = [found.reason for found in home.tracer.trace(Wanted.key("k")).curated]
    assert "until message m2 of batch c2 took its place" in reasons[0]
    assert "until message m3 of batch c3 took its place" in reasons[1]


# why not further


@pytest.mark.parametrize(
    ("item", "fate", "reason"),
    [
        (READY, "pending", "no Curated batch of this topic has run yet"),
        (RegistryItem("events", Status.DISABLED, curated=True), "pending", "gate shut: DISABLED"),
        (
            RegistryItem("events", Status.READY, Flow.PAUSED, "night", "1.0.0", curated=True),
            "pending",
            "gate shut: PAUSED: night",
        ),
        (
            RegistryItem("events", Status.READY, schema_version="1.0.0"),
            "not_curated",
            "schema 1.0.0 ends at Standardized",
        ),
    ],
)
def test_without_a_curated_table_the_registry_says_why(home: Home, item: RegistryItem, fate: str, reason: str) -> None:
    home.standardize("b1", ("m", "k", 1))
    put(home.services.state, item)
    assert home.told("m") == (fate, reason)


def test_a_row_of_an_open_batch_waits_for_it(home: Home) -> None:
    batch = Batch("events", Zone.CURATED, None, home.standardize("b1", ("m", "k", 1)), "1.0.0")
    lease = home.services.state.acquire("events", "elsewhere/1/x", DAY)
    home.services.state.save_intent(Intent(batch, (), DAY.isoformat()), lease, DAY)  # type: ignore[arg-type]
    assert home.curated.current_snapshot() is None
    assert home.told("m") == ("pending", f"batch {batch.batch_id} is open: the next run finishes it")


def test_a_row_that_got_there_before_the_schema_ended_at_standardized_is_still_curated(home: Home) -> None:
    home.curate("c1", home.standardize("b1", ("m", "k", 1)), ("m", "k", 1))
    home.standardize("b2", ("after", "k", 2))
    put(home.services.state, RegistryItem("events", Status.READY, schema_version="2.0.0"))
    assert home.told("m")[0] == "curated"
    assert home.told("after") == ("not_curated", "schema 2.0.0 ends at Standardized")


# histories that maintenance has been at


def test_deleted_positions_are_not_the_keys_row_any_more(home: Home, tmp_path: Path) -> None:
    home.curate("c1", home.standardize("b1", ("old", "k", 1)), ("old", "k", 1))
    to_snapshot, table = home.standardize("b2", ("new", "k", 2)), home.curated
    [task] = table.scan().plan_files()
    delete_position(table, task.file.file_path, tmp_path / "deletes.parquet", marks("c2", to_snapshot))
    audit = {"_batch_id": "c2"}
    append(home.curated, [{**message("new", "k", 2), **audit}], marks("c2", to_snapshot))
    assert [str(found.fate) for found in home.tracer.trace(Wanted.key("k")).curated] == ["replaced", "curated"]


def delete_position(table: Table, location: str, file: Path, properties: dict[str, str]) -> None:
    """Delete the first row of a data file as a merge-on-read writer does; pyiceberg itself only writes data files."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    pq.write_table(pa.table({"file_path": [location], "pos": [0]}), file)
    counts = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    delete = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{file}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=file.stat().st_size,
        split_offsets=[],
        **{name: {} for name in counts},
    )
    delete.spec_id = table.spec().spec_id
    update = table.transaction()
    with update, update.update_snapshot(snapshot_properties=properties).fast_append() as commit:
        commit.append_data_file(delete)


def test_a_batch_that_left_curateds_history_leaves_replaced_or_superseded(home: Home) -> None:
    old = home.curate("c1", home.standardize("b1", ("old", "k", 1)), ("old", "k", 1))
    home.curate("c2", home.standardize("b2", ("new", "k", 2)), ("new", "k", 2))
    home.curated.maintenance.expire_snapshots().by_id(old).commit()
    fate, reason = home.told("old")
    assert fate == "superseded"
    assert "can't be told apart any more: message new of batch c2 is the key's row" in reason


def test_rewritten_standardized_files_neither_move_a_row_behind_the_checkpoint_nor_to_another_batch(
    home: Home,
) -> None:
    old, new = ("old", "k", 1), ("new", "k", 2)
    first = home.standardize("b1", old)
    home.curate("c1", first, old)
    second = home.standardize("b2", new)
    rows = [{**message(*old), "_batch_id": "b1"}, {**message(*new), "_batch_id": "b2"}]
    table = home.standardized
    table.overwrite(pa.Table.from_pylist(rows, schema=table.schema().as_arrow()), snapshot_properties=marks("b2", 0))
    assert (home.told("old")[0], home.told("new")[0]) == ("curated", "pending")
    home.curate("c2", second, new)
    assert (home.told("old")[0], home.told("new")[0]) == ("replaced", "curated")


def test_a_checkpoint_that_left_standardizeds_history_is_no_reason_to_call_rows_missing(home: Home) -> None:
    home.standardize("b1", ("in", "k", 1), ("out", "l", 1))
    home.curate("c1", 77, ("in", "k", 1))
    assert (home.told("in")[0], home.told("out")[0]) == ("curated", "pending")


def test_tables_that_grow_while_the_trace_reads_do_not_contradict_each_other(home: Home) -> None:
    """Curated is looked up first: what a run adds meanwhile is at most not seen yet."""
    home.curate("c1", home.standardize("b1", ("m", "k", 1)), ("m", "k", 1))
    lookup = home.lake.file.locations

    def run_after_first_lookup(database: str) -> dict[str, str]:
        found = lookup(database)
        home.lake.file.locations = lookup  # type: ignore[method-assign]
        home.curate("c2", home.standardize("b2", ("m2", "k", 2)), ("m2", "k", 2))
        return found

    home.lake.file.locations = run_after_first_lookup  # type: ignore[method-assign]
    assert [str(found.fate) for found in home.tracer.trace(Wanted.key("k")).curated] == ["curated", "pending"]
    assert [str(found.fate) for found in home.tracer.trace(Wanted.key("k")).curated] == ["replaced", "curated"]


# the commands


@pytest.fixture
def run(story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as left:
            main(["--home", str(story.services.settings.home), *arguments])
        assert not left.value.code
        return capsys.readouterr().out

    return call


def test_trace_as_a_document(story: Story, run: Callable[..., str]) -> None:
    document = json.loads(run("trace", "new", "--json"))
    assert document["curated"] == [
        {
            "topic": "events",
            "message_id": "new",
            "publish_time": "2026-02-03T13:00:00Z",
            "key": "k1",
            "zone": "standardized",
            "fate": "curated",
            "reason": f"the key's current row: batch c2, snapshot {story.c2}",
            "current": True,
            "batch_id": "c2",
            "snapshot_id": story.c2,
            "first_seen_ts": "2026-02-03T10:00:00Z",
            "last_updated_ts": "2026-02-03T10:00:00Z",
            "schema_version": "1.0.0",
        }
    ]
    assert document["curated_errors"] == []
    [error] = json.loads(run("trace", "wrong", "--json"))["curated_errors"]
    assert (error["error_type"], error["error_fields"], error["batch_id"]) == ("TYPE_CAST", ["amount", "price"], "c1")


def test_trace_as_a_story(story: Story, run: Callable[..., str]) -> None:
    lines = run("trace", "--key", "k1").splitlines()
    at = lines.index("  topic events: message new, published 2026-02-03T13:00:00Z")
    assert [line.strip() for line in lines[at + 2 : at + 6]] == [
        f"standardized: batch b2, snapshot {story.s2}",
        f"standardized row of batch b2, snapshot {story.s2}",
        f"curated: the key's current row: batch c2, snapshot {story.c2}",
        "key first seen 2026-02-03T10:00:00Z, row written 2026-02-03T10:00:00Z, schema 1.0.0",
    ]
    assert f"until message new of batch c2 took its place (snapshot {story.c1})" in "\n".join(lines)
    assert lines[-4:] == [
        "  versions of the key in topic events, newest last",
        "    old: replaced",
        "    new: curated (current)",
        "    waiting: pending",
    ]
    words = "TYPE_CAST: amount: [no] good (fields amount, price, schema 1.0.0, batch c1, replay NEW)"
    assert f"curated error of message wrong: {words}" in run("trace", "wrong")


def test_status_and_errors_know_curated(run: Callable[..., str]) -> None:
    [status] = json.loads(run("status", "--json"))
    assert (status["standardized_rows"], status["curated_rows"], status["curated_pending"]) == (9, 2, 1)
    assert "to curate" in run("status")
    errors = {row["message_id"]: row for row in json.loads(run("errors", "--json"))["errors"]}
    assert errors["wrong"]["error_fields"] == ["amount", "price"]
    assert "error_fields" not in run("errors")
