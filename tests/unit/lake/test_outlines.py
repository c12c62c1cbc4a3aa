"""Outlines: they say what the history says, and the file that keeps them can neither lie nor get in the way."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lean_ops.lake import outline_reader
from lean_ops.lake.catalog_file import read_history
from lean_ops.lake.outline_reader import read_outline
from lean_ops.lake.outlines import Outlines
from lean_ops.lake.snapshots import Outline, TableCheckpoint
from lean_ops.model.errors import TerminalError

TABLE = "db.events"
BATCH = {"lean-ops.batch-id": "b1", "lean-ops.to-snapshot": "70"}


def snapshot(number: int, parent: int | None = None, **summary: str) -> dict[str, Any]:
    words = {"operation": "append", **{name.replace("_", "-"): value for name, value in summary.items()}}
    entry = {"snapshot-id": number, "timestamp-ms": number * 1000, "summary": words, "manifest-list": "x"}
    return entry if parent is None else {**entry, "parent-snapshot-id": parent}


def metadata(*snapshots: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"format-version": 2, "snapshots": list(snapshots), "current-snapshot-id": -1, **more}


def batch(number: int, parent: int | None = None, **summary: str) -> dict[str, Any]:
    entry = snapshot(number, parent, **summary)
    return {**entry, "summary": {**entry["summary"], **BATCH}}


def main_at(number: int) -> dict[str, Any]:
    return {"main": {"snapshot-id": number, "type": "branch"}}


CASES = {
    "a table without a snapshot": metadata(),
    "one without snapshots' names at all": {"current-snapshot-id": None},
    "rows and no batch": metadata(snapshot(1, total_records="7"), refs=main_at(1)),
    "a head in the old field": {"snapshots": [snapshot(1, total_records="7")], "current-snapshot-id": 1},
    "a batch that maintenance carried on": metadata(
        snapshot(1), batch(2, 1, total_records="7"), batch(3, 2, total_records="7"), refs=main_at(3)
    ),
    "rows behind the batch": metadata(batch(2, total_records="7"), snapshot(3, 2, total_records="9"), refs=main_at(3)),
    "a batch on another branch": metadata(snapshot(1), batch(2, 1), refs={**main_at(1), "wap": {"snapshot-id": 2}}),
    "counted rows": metadata(
        batch(1, total_records="9", total_position_deletes="4"), refs=main_at(1), properties={"lean-ops.rows": "6"}
    ),
    "rows that can't be": metadata(
        batch(1, total_records="9", total_position_deletes="4"), refs=main_at(1), properties={"lean-ops.rows": "2"}
    ),
    "a parent that is gone": metadata(batch(5, 4, total_records="1"), refs=main_at(5)),
    "no summary": metadata({"snapshot-id": 1, "timestamp-ms": 5, "summary": None}, refs=main_at(1)),
}


@pytest.mark.parametrize("content", CASES.values(), ids=CASES)
def test_an_outline_says_what_the_history_says(tmp_path: Path, content: dict[str, Any]) -> None:
    file = tmp_path / "v1.metadata.json"
    file.write_text(json.dumps(content))
    assert read_outline(TABLE, file) == read_history(TABLE, str(file)).outline()


SUMMARIES = st.fixed_dictionaries(
    {"operation": st.sampled_from(["append", "replace"])},
    optional={
        "lean-ops.batch-id": st.sampled_from(["b1", "b2"]),
        "total-records": st.integers(0, 9).map(str),
        "total-position-deletes": st.integers(0, 9).map(str),
        "other": st.just("x"),
    },
)


@settings(max_examples=200)
@given(st.lists(SUMMARIES, max_size=6), st.none() | st.integers(-1, 12).map(str), st.integers(0, 6))
def test_any_outline_says_what_the_history_says(
    tmp_path_factory: pytest.TempPathFactory, summaries: list[dict[str, str]], rows: str | None, at: int
) -> None:
    entries = []
    for number, words in enumerate(summaries, start=1):
        end = {"lean-ops.to-snapshot": str(number // 2)} if "lean-ops.batch-id" in words else {}
        entries.append({**snapshot(number, number - 1 or None), "summary": {**words, **end}})
    refs = main_at(at) if 0 < at <= len(entries) else {}
    content = metadata(*entries, refs=refs, properties={} if rows is None else {"lean-ops.rows": rows})
    file = tmp_path_factory.getbasetemp() / "any.metadata.json"
    file.write_text(json.dumps(content))
    assert read_outline(TABLE, file) == read_history(TABLE, str(file)).outline()


DAMAGED = {
    "no JSON": b"{",
    "no object": b"7",
    "a head that is not there": json.dumps(metadata(refs=main_at(1))).encode(),
    "a batch without its end": json.dumps(
        metadata({**snapshot(1), "summary": {"lean-ops.batch-id": "b"}}, refs=main_at(1))
    ).encode(),
    "rows that are no number": json.dumps(metadata(snapshot(1, total_records="x"), refs=main_at(1))).encode(),
    "a number for a summary": json.dumps(metadata({**snapshot(1), "summary": 7}, refs=main_at(1))).encode(),
    "very deep": b'{"snapshots":' + b"[" * 100_000,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_told_as_such(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "v1.metadata.json"
    file.write_bytes(content)
    with pytest.raises(TerminalError, match=f"{TABLE}: its metadata file is damaged"):
        Outlines(tmp_path / "outlines.db").outline(TABLE, str(file))


def test_a_chain_that_bites_its_tail_has_an_end(tmp_path: Path) -> None:
    file = tmp_path / "v1.metadata.json"
    file.write_text(json.dumps(metadata(snapshot(1, 2), batch(2, 1), refs=main_at(1))))
    assert read_outline(TABLE, file).checkpoint == TableCheckpoint("b1", 70)


# the file that keeps them


class Home:
    """A metadata file, the file of outlines, and how often a metadata file was really read."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.file, self.kept, self.read = folder / "1.metadata.json", folder / "outlines.db", 0
        self.write(7)
        quick = outline_reader.read_outline

        def counted(table: str, path: Path) -> Outline:
            self.read += 1
            return quick(table, path)

        patch.setattr(outline_reader, "read_outline", counted)

    def write(self, rows: int, name: str = "1.metadata.json") -> None:
        self.file = self.file.with_name(name)
        self.file.write_text(json.dumps(metadata(batch(1, total_records=str(rows)), refs=main_at(1))))

    def rows(self, *, keep: bool = True) -> int:
        """The outline's rows as the next process sees them."""
        outlines = Outlines(self.kept)
        outline = outlines.outline(TABLE, self.file.as_uri())
        assert outline == Outline(1, outline.rows, TableCheckpoint("b1", 70), 1000)
        if keep:
            outlines.keep()
        return outline.rows


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return Home(tmp_path, monkeypatch)


def test_what_was_kept_is_not_read_again(home: Home) -> None:
    assert [home.rows(), home.rows(), home.rows()] == [7, 7, 7]
    assert home.read == 1


def test_nothing_is_written_unless_it_is_kept(home: Home) -> None:
    assert [home.rows(keep=False), home.rows(keep=False)] == [7, 7]
    assert home.read == 2
    assert not home.kept.exists()


def test_a_table_that_moved_on_is_read_anew(home: Home) -> None:
    home.rows()
    home.write(8, "2.metadata.json")
    assert [home.rows(), home.rows()] == [8, 8]
    assert home.read == 2


def test_a_metadata_file_that_was_altered_by_hand_is_read_anew(home: Home) -> None:
    home.rows()
    home.write(8)
    os.utime(home.file, ns=(1, 1))
    assert home.rows() == 8
    home.file.write_bytes(b"{")
    with pytest.raises(TerminalError, match="damaged"):
        home.rows()
    home.file.unlink()
    with pytest.raises(TerminalError, match="missing"):
        home.rows()


def test_a_lost_or_damaged_file_of_outlines_costs_a_look_and_is_made_anew(home: Home) -> None:
    home.rows()
    home.kept.unlink()
    assert home.rows() == 7
    home.kept.write_bytes(b"no database" * 1000)
    assert [home.rows() for _ in range(4)] == [7] * 4
    # Once without the file, and twice with a damaged one: the first of these two has removed it.
    assert home.read == 4


def test_a_file_of_another_form_is_left_alone(home: Home) -> None:
    with closing(sqlite3.connect(home.kept)) as db, db:
        db.execute("CREATE TABLE outlines_0 (name TEXT)")
    assert [home.rows(), home.rows()] == [7, 7]
    assert home.read == 1


def test_a_file_that_somebody_keeps_locked_is_no_fault(home: Home) -> None:
    home.rows()
    home.write(8, "2.metadata.json")
    with closing(sqlite3.connect(home.kept, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert home.rows(keep=False) == 8
        outlines = Outlines(home.kept)
        outlines.outline(TABLE, home.file.as_uri())
        outlines.keep()
    assert home.rows() == 8


def test_a_file_that_can_not_be_written_is_no_fault(home: Home) -> None:
    home.kept.mkdir()
    assert [home.rows(), home.rows()] == [7, 7]
    assert home.read == 2
