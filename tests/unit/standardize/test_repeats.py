"""Which rows of a small batch are left out: copies of what has a fate, and all but the lowest copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from lean_ops.lake.topic_files import TopicFile
from lean_ops.standardize import repeats
from lean_ops.standardize.repeats import EarlierFiles, rows_to_leave_out

SECOND = 1_000_000
TIMES = pa.timestamp("us", "UTC")
RAW = pa.schema(
    [
        *((name, pa.large_string()) for name in ("topic_name", "message_id", "idempotency_key", "period_reference")),
        ("correlation_id", pa.large_string()),
        ("publish_time", TIMES),
        ("ingestion_ts", pa.int64()),
        ("json_payload", pa.large_string()),
    ]
)


def raw_file(folder: Path, name: str, *rows: dict[str, Any]) -> str:
    """A RAW file: each row has an id, and the usual for whatever it does not say."""
    usual = {"topic_name": "t", "publish_time": SECOND, "ingestion_ts": 1, "json_payload": "{}"}
    pq.write_table(pa.Table.from_pylist([{**usual, **row} for row in rows], schema=RAW), folder / name)
    return str(folder / name)


def seen_file(folder: Path, name: str, *rows: tuple[str, int, str]) -> TopicFile:
    schema = pa.schema([("message_id", pa.string()), ("publish_time", TIMES), ("batch_id", pa.string())])
    columns = [dict(zip(schema.names, row, strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(columns, schema=schema), folder / name)
    times = [time for _, time, _ in rows]
    return TopicFile(str(folder / name), len(rows), min(times), max(times))


def left_out(files: list[str], *earlier: EarlierFiles) -> list[tuple[str, int]] | None:
    found = rows_to_leave_out(PyArrowFileIO(), files, earlier)
    return None if found is None else sorted((Path(path).name, position) for path, position in found)


def test_messages_that_come_once_and_are_new_all_stay(tmp_path: Path) -> None:
    assert left_out([raw_file(tmp_path, "a", {"message_id": "1"}, {"message_id": "2"})]) == []


def test_a_file_of_an_earlier_turn_has_the_first_copy_whatever_time_it_says(tmp_path: Path) -> None:
    later = raw_file(tmp_path, "a", {"message_id": "1", "ingestion_ts": 8})
    first = raw_file(tmp_path, "b", {"message_id": "1", "ingestion_ts": 9}, {"message_id": "1", "ingestion_ts": 10})
    unknown = raw_file(tmp_path, "c", {"message_id": "2", "ingestion_ts": 9})
    known = raw_file(tmp_path, "d", {"message_id": "2", "ingestion_ts": 8})

    found = rows_to_leave_out(PyArrowFileIO(), [later, first, unknown, known], [], {later: 1, first: 0, known: 0})
    assert sorted((Path(path).name, position) for path, position in found or ()) == [("a", 0), ("b", 1), ("d", 0)]


def test_the_copy_that_arrived_first_stays(tmp_path: Path) -> None:
    later = raw_file(tmp_path, "a", {"message_id": "1", "ingestion_ts": 9}, {"message_id": "2"})
    first = raw_file(tmp_path, "b", {"message_id": "1", "ingestion_ts": 8})

    assert left_out([later, first]) == [("a", 0)]


def test_of_copies_that_arrived_together_the_lowest_payload_stays_by_its_characters(tmp_path: Path) -> None:
    texts = ["\U0001f388", "\uffff", None, "b", "B"]  # in UTF-8, and in Spark, the first is the highest
    rows = [{"message_id": "1", "json_payload": text} for text in texts]

    assert left_out([raw_file(tmp_path, "a", *rows)]) == [("a", 0), ("a", 1), ("a", 3), ("a", 4)]
    assert left_out([raw_file(tmp_path, "b", *rows[:2])]) == [("b", 0)]


def test_of_equal_copies_one_stays(tmp_path: Path) -> None:
    files = [raw_file(tmp_path, name, {"message_id": "1"}, {"message_id": "1"}) for name in ("a", "b")]

    assert left_out(files) == [("a", 1), ("b", 0), ("b", 1)]


def test_the_same_id_at_another_time_is_another_message(tmp_path: Path) -> None:
    rows = {"message_id": "1"}, {"message_id": "1", "publish_time": 2 * SECOND}

    assert left_out([raw_file(tmp_path, "a", *rows)]) == []


def test_every_copy_of_what_already_has_a_fate_is_left_out(tmp_path: Path) -> None:
    files = [raw_file(tmp_path, "a", {"message_id": "1"}, {"message_id": "2"}, {"message_id": "1"})]
    seen = seen_file(tmp_path, "seen", ("1", SECOND, "b1"), ("2", 3 * SECOND, "b1"))

    assert left_out(files, EarlierFiles([seen])) == [("a", 0), ("a", 2)]


def test_of_earlier_files_only_those_are_read_that_may_hold_a_message_of_the_batch(tmp_path: Path) -> None:
    files = [raw_file(tmp_path, "a", {"message_id": "1"}, {"message_id": "2", "publish_time": 9 * SECOND})]
    first, last = (seen_file(tmp_path, name, (name, time * SECOND, "b")) for name, time in (("1", 1), ("2", 9)))
    between = TopicFile(str(tmp_path / "not there"), 1, 2 * SECOND, 8 * SECOND)

    assert left_out(files, EarlierFiles([first, between, last])) == [("a", 0), ("a", 1)]
    with pytest.raises(FileNotFoundError):
        left_out(files, EarlierFiles([between._replace(last=9 * SECOND)]))
    with pytest.raises(FileNotFoundError):
        left_out(files, EarlierFiles([between._replace(first=None)]))


def test_a_message_without_a_time_is_looked_for_everywhere(tmp_path: Path) -> None:
    files = [raw_file(tmp_path, "a", {"message_id": "1", "publish_time": None})]
    with pytest.raises(FileNotFoundError):
        left_out(files, EarlierFiles([TopicFile(str(tmp_path / "not there"), 1, 5, 6)]))


@pytest.mark.parametrize(
    ("first", "last", "may"),
    [(None, None, True), (1, 9, True), (4, 4, True), (2, 3, False), (5, 9, False), (None, 0, False), (5, None, False)],
)
def test_a_file_may_hold_one_of_some_times_if_one_lies_within_its_bounds(
    first: int | None, last: int | None, may: bool
) -> None:
    assert TopicFile("f", 1, first, last).may_hold_any([1, 4]) is may
    assert not TopicFile("f", 1, first, last).may_hold_any([])


def test_what_the_batch_itself_has_refused_counts_only_if_it_is_asked_for(tmp_path: Path) -> None:
    files = [raw_file(tmp_path, "a", {"message_id": "1"}, {"message_id": "2"})]
    seen = seen_file(tmp_path, "seen", ("1", SECOND, "own"), ("2", SECOND, "other"))

    assert left_out(files, EarlierFiles([seen], without_batch="own")) == [("a", 1)]
    assert left_out(files, EarlierFiles([seen])) == [("a", 0), ("a", 1)]


def test_many_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "_MOST_LEFT_OUT", 2)
    copies = [{"message_id": "1"}] * 4

    assert left_out([raw_file(tmp_path, "a", *copies)]) is None
    assert left_out([raw_file(tmp_path, "b", *copies[:3])]) == [("b", 1), ("b", 2)]
