"""Firehose's error output, line by line."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ingest.firehose_errors import MAX_LINE_BYTES, FirehoseErrors, error_files, unpacked
from lean_ops.ingest.firehose_record import to_record
from lean_ops.ingest.lines import Brought, Line, ReadError, Spool
from lean_ops.model.envelope import DeadLetter, RawRow, Refusal
from lean_ops.model.errors import WrongUseError

ROW = RawRow("events", "m-1", "k-1", None, "c", 1_770_000_000_123_456, 1_770_000_060, '{"a": "é 1.10"}')
LIMIT = 10_000_000


def error_line(data: bytes, **members: Any) -> bytes:
    whole = {
        "attemptsMade": 4,
        "arrivalTimestamp": 1_770_000_061_000,
        "errorCode": "Lambda.FunctionError",
        "errorMessage": "it fell over",
        "attemptEndingTimestamp": 1_770_000_099_000,
        "rawData": base64.b64encode(data).decode(),
        "lambdaArn": "arn:aws:lambda:eu-central-1:000000000000:function:transform:$LATEST",
        **members,
    }
    return json.dumps(whole).encode() + b"\n"


def lines_of(errors: FirehoseErrors, content: bytes, folder: Path, step: int = 1_000_000) -> list[Line | None]:
    file = io.BytesIO(content)
    return list(errors.read_lines("in", lambda: file.read(step), LIMIT, folder))


def brought(content: bytes, folder: Path, topic: str = "events") -> list[Brought]:
    bodies = [line.body for line in lines_of(FirehoseErrors(topic), content, folder) if line]
    assert all(isinstance(body, Brought) for body in bodies)
    return [body for body in bodies if isinstance(body, Brought)]


def letter(found: Brought) -> DeadLetter:
    assert isinstance(found.outcome, DeadLetter)
    return found.outcome


def test_a_record_of_ours_comes_back_as_it_was(tmp_path: Path) -> None:
    (found,) = brought(error_line(to_record(ROW)), tmp_path)
    assert found.outcome == ROW


@given(
    st.builds(
        RawRow,
        st.just("events"),
        st.text(min_size=1),
        st.none() | st.text(),
        st.none() | st.text(),
        st.none() | st.text(),
        st.integers(0, 4_133_980_799_999_999),
        st.integers(0, 4_133_980_799),
        st.none() | st.text(),
    )
)
def test_any_record_of_ours_comes_back_as_it_was(row: RawRow) -> None:
    (found,) = brought(error_line(to_record(row)), Path())
    assert found.outcome == row


@pytest.mark.parametrize(
    ("data", "kind", "message_id"),
    [
        (b"junk", Refusal.MALFORMED_JSON, None),
        (b"", Refusal.MALFORMED_JSON, None),
        (b"\xff\xfe", Refusal.MALFORMED_JSON, None),
        (
            b'{"message_id": "m-9", "publish_time": "2026-02-03T10:15:30Z", "payload": 1}',
            Refusal.INVALID_CONTRACT,
            "m-9",
        ),
        (to_record(ROW._replace(topic_name="Not A Topic")), Refusal.INVALID_CONTRACT, "m-1"),
        (to_record(ROW._replace(publish_time=-1)), Refusal.INVALID_CONTRACT, "m-1"),
        (to_record(ROW).replace(b'"json_payload"', b'"more"'), Refusal.INVALID_CONTRACT, "m-1"),
    ],
)
def test_any_other_record_is_a_dead_letter_of_its_own_bytes(
    data: bytes, kind: Refusal, message_id: str | None, tmp_path: Path
) -> None:
    (found,) = brought(error_line(data), tmp_path)
    assert (letter(found).error_type, letter(found).message_id) == (kind, message_id)
    assert (found.body, found.source) == (data, "firehose")
    assert found.attributes == {
        "attemptsMade": 4,
        "arrivalTimestamp": 1_770_000_061_000,
        "errorCode": "Lambda.FunctionError",
        "errorMessage": "it fell over",
        "attemptEndingTimestamp": 1_770_000_099_000,
        "lambdaArn": "arn:aws:lambda:eu-central-1:000000000000:function:transform:$LATEST",
    }


@pytest.mark.parametrize(
    "line",
    [
        b"junk",
        b"[]",
        b"{}",
        b'{"rawData": 5}',
        b'{"rawData": null}',
        b'{"rawData": "not base64!"}',
        b'{"rawData": "YQ="}',
        b'{"rawData": "YQ=="',
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_error_output_is_a_dead_letter_as_it_stands(line: bytes, tmp_path: Path) -> None:
    (found,) = brought(line + b"\n", tmp_path)
    assert letter(found).error_type is Refusal.MALFORMED_JSON
    assert (found.body, found.source) == (line, "firehose")


def test_what_is_said_of_a_record_is_kept_within_bounds(tmp_path: Path) -> None:
    more = {f"x{number}": number for number in range(100)}
    (found,) = brought(error_line(b"x", errorMessage="é" * 9000, dataCatalogTable={"a": ["b"]}, **more), tmp_path)
    assert len(json.dumps(found.attributes)) < 20_000
    assert found.attributes["dataCatalogTable"] == '{"a": ["b"]}'
    assert len(found.attributes) == 32


def test_a_record_is_saved_though_what_is_said_of_it_is_spoilt(tmp_path: Path) -> None:
    (found,) = brought(b'{"rawData": "YQ==", "errorCode": "\xff"}\n', tmp_path)
    assert (found.body, found.attributes) == (b"a", {"errorCode": "\ufffd"})


def test_halves_of_characters_are_kept_as_escapes(tmp_path: Path) -> None:
    (found,) = brought(
        b'{"rawData": "YQ==", "errorMessage": "a \\ud800 b", "n": -0, "f": 1e999, "deep": [[[]]]}\n', tmp_path
    )
    assert found.attributes == {"errorMessage": "a \\ud800 b", "n": 0, "f": "1e999", "deep": "[[[]]]"}
    json.dumps(found.attributes, ensure_ascii=False, allow_nan=False).encode()


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters(), max_size=9), anything, max_size=8), st.binary(max_size=40))
def test_whatever_is_said_of_a_record_can_be_written_down(members: dict[str, Any], data: bytes) -> None:
    (found,) = brought(error_line(data, **{f"x{name}": value for name, value in members.items()}), Path())
    json.dumps(found.attributes, ensure_ascii=False, allow_nan=False).encode()
    assert (found.body, isinstance(found.outcome, DeadLetter)) == (data, True)


def test_records_of_other_topics_are_counted_and_left_alone(tmp_path: Path) -> None:
    other = to_record(ROW._replace(topic_name="orders"))
    errors = FirehoseErrors("events")
    lines = lines_of(errors, error_line(other) + error_line(to_record(ROW)) + error_line(other), tmp_path)
    assert [line.number for line in lines if line] == [2]
    assert errors.others == {"orders": 2}


def test_a_line_that_can_be_no_record_is_a_dead_letter_and_not_held_in_memory(tmp_path: Path) -> None:
    line = b'{"rawData": "' + b"A" * MAX_LINE_BYTES
    (found,) = brought(line + b"\n", tmp_path)
    assert letter(found).error_type is Refusal.OVERSIZED
    assert isinstance(found.body, Spool)
    assert (found.body.size, found.source) == (len(line), "firehose")


def test_blank_lines_stay_blank(tmp_path: Path) -> None:
    assert lines_of(FirehoseErrors("events"), b"\n  \n", tmp_path) == [Line(1, None), Line(2, None)]


# gzip


@pytest.mark.parametrize("step", [1, 7, 1_000_000])
def test_packed_output_is_unpacked_whatever_its_name(step: int, tmp_path: Path) -> None:
    content = gzip.compress(error_line(to_record(ROW)) * 50) + gzip.compress(error_line(b"junk"))
    lines = [line for line in lines_of(FirehoseErrors("events"), content, tmp_path, step) if line]
    assert [line.number for line in lines] == list(range(1, 52))


@pytest.mark.parametrize("content", [b"", b"\x1f", b"plain\n" * 100_000])
@pytest.mark.parametrize("step", [1, 1_000_000])
def test_other_bytes_pass_as_they_are(content: bytes, step: int) -> None:
    if len(content) > 1000 and step == 1:
        content = content[:1000]
    file = io.BytesIO(content)
    assert b"".join(_read(unpacked("in", lambda: file.read(step)))) == content


def test_a_source_that_is_idle_for_a_while_is_waited_for() -> None:
    chunks: Iterator[bytes | None] = iter([None, b"\x1f", None, gzip.compress(b"abc")[1:]])
    assert b"".join(_read(unpacked("in", lambda: next(chunks, b"")))) == b"abc"


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"abc" * 1000)[:-9], b"\x1f\x8bjunk", gzip.compress(b"abc") + b"junk"],
    ids=["breaks off", "no gzip", "something after it"],
)
def test_broken_gzip_is_told(content: bytes) -> None:
    file = io.BytesIO(content)
    with pytest.raises(ReadError, match=r"'in'.*not whole gzip"):
        list(_read(unpacked("in", lambda: file.read(100))))


def _read(read: Any) -> Iterator[bytes]:
    while chunk := read():
        yield chunk


# files


def test_a_folder_stands_for_all_files_in_it(tmp_path: Path) -> None:
    for name in ("b/2", "a/1", "c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert error_files([str(tmp_path / "c"), str(tmp_path), "-"]) == [
        *(str(tmp_path / name) for name in ("c", "a/1", "b/2", "c")),
        "-",
    ]


def test_a_folder_without_files_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="no files"):
        error_files([str(tmp_path)])
