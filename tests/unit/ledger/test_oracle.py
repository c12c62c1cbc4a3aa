from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ledger import oracle
from lean_ops.ledger.oracle import Expected, ExpectedFate, encode_line, read_oracle
from lean_ops.model.errors import WrongUseError

TIME = "2026-02-03T10:15:30.120000Z"
SHA256 = "0123456789abcdef" * 4
LINE: dict[str, Any] = {"topic": "orders", "message_id": "m1", "publish_time": TIME, "fate": "curated"}


def write(folder: Path, *lines: dict[str, Any] | str | bytes, name: str = "fates.jsonl") -> Path:
    texts = (line if isinstance(line, str | bytes) else json.dumps(line) for line in lines)
    file = folder / name
    file.write_bytes(b"\n".join(text.encode() if isinstance(text, str) else text for text in texts))
    return file


def rows(file: Path, topic: str = "orders") -> list[dict[str, Any]]:
    table = read_oracle([file]).topics[topic]
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


def test_all_members_of_a_line_are_read(tmp_path: Path) -> None:
    line = {
        **LINE,
        "file": "orders.jsonl",
        "line": 17,
        "kind": "corrections",
        "idempotency_key": "EU-000017",
        "reason": "TYPE_CAST",
        "fields": ["amount", "note"],
        "version": "m1",
        "curated": {"amount": "19.90", "express": False, "note": None},
        "body_sha256": SHA256,
    }
    [row] = rows(write(tmp_path, line))
    assert json.loads(row.pop("curated")) == line["curated"]
    told = {name: value for name, value in line.items() if name not in {"topic", "curated"}}
    assert row == {**told, "place": 1, "publish_time": datetime(2026, 2, 3, 10, 15, 30, 120000, tzinfo=UTC)}


def test_a_member_that_is_missing_is_null(tmp_path: Path) -> None:
    [row] = rows(write(tmp_path, LINE))
    assert set(row) == {"place", "message_id", "publish_time", "fate"}


def test_a_number_keeps_its_text(tmp_path: Path) -> None:
    values = '{"a": 1.10, "b": 0.1234567890123456789012, "c": 1e5, "d": 123456789012345678901234567890, "e": -0.0}'
    [row] = rows(write(tmp_path, f'{json.dumps(LINE)[:-1]}, "curated": {values}}}'))
    assert json.loads(row["curated"]) == {
        "a": "1.10",
        "b": "0.1234567890123456789012",
        "c": "1e5",
        "d": 123456789012345678901234567890,
        "e": "-0.0",
    }


@pytest.mark.parametrize(
    ("text", "hour", "microsecond"),
    [
        (TIME, 10, 120000),
        ("2026-02-03T10:15:30Z", 10, 0),
        ("2026-02-03T11:15:30.5+01:00", 10, 500000),
        ("2026-02-03 10:15:30", 10, 0),
        ("2026-02-03T10:15:30.123456789Z", 10, 123456),
    ],
)
def test_a_time_may_be_written_in_several_ways(tmp_path: Path, text: str, hour: int, microsecond: int) -> None:
    row = rows(write(tmp_path, LINE, {**LINE, "publish_time": text}))[1]
    assert row["publish_time"] == datetime(2026, 2, 3, hour, 15, 30, microsecond, tzinfo=UTC)


def test_blank_lines_are_passed_over_and_counted(tmp_path: Path) -> None:
    file = write(tmp_path, "", LINE, "  \t", {**LINE, "message_id": "m2"}, "")
    told = read_oracle([file])
    assert told.topics["orders"]["place"].to_pylist() == [2, 4]
    assert told.where(4) == f"{file}:4"


def test_places_lead_back_to_their_file(tmp_path: Path) -> None:
    one = write(tmp_path, LINE, LINE, name="one.jsonl")
    two = write(tmp_path, LINE, {**LINE, "topic": "events"}, name="two.jsonl")
    told = read_oracle([one, two, one])
    assert told.topics["orders"]["place"].to_pylist() == [1, 2, 3, 5, 6]
    assert told.topics["events"]["place"].to_pylist() == [4]
    assert [told.where(place) for place in (2, 3, 4, 5)] == [f"{one}:2", f"{two}:1", f"{two}:2", f"{one}:1"]


def test_only_the_wanted_topics_are_kept(tmp_path: Path) -> None:
    file = write(tmp_path, LINE, {**LINE, "topic": "events"}, {**LINE, "topic": "b"})
    assert list(read_oracle([file], ["events", "orders"]).topics) == ["events", "orders"]


def test_a_file_of_several_chunks_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "_CHUNK_LINES", 3)
    topics = ["a", "b", "a", "b", "b", "b", "b", "a"]
    file = write(tmp_path, *({**LINE, "topic": topic, "message_id": f"m{n}"} for n, topic in enumerate(topics)))
    told = read_oracle([file]).topics
    assert told["a"]["message_id"].to_pylist() == ["m0", "m2", "m7"]
    assert told["b"]["place"].to_pylist() == [2, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("no json", "malformed"),
        ("[]", "Expected `object`"),
        ({**LINE, "fate": "lost"}, "Invalid enum value 'lost'"),
        ({"topic": "orders", "message_id": "m1", "publish_time": TIME}, "missing required field `fate`"),
        ({"fate": "curated", "message_id": "m1", "publish_time": TIME}, "missing required field `topic`"),
        ({**LINE, "reson": "TYPE_CAST"}, "unknown field `reson`"),
        ({**LINE, "line": "17"}, "Expected `int | null`"),
        ({**LINE, "curated": []}, "Expected `object | null`"),
        ({**LINE, "fields": "amount"}, "Expected `array | null`"),
        ({**LINE, "message_id": None}, "curated needs message_id and publish_time"),
        ({**LINE, "publish_time": None}, "curated needs message_id and publish_time"),
        ({**LINE, "publish_time": "soon"}, "publish_time 'soon'"),
        ({**LINE, "publish_time": ""}, "publish_time ''"),
        ({"topic": "orders", "fate": "dead_letter"}, "needs body_sha256"),
        ({"topic": "orders", "fate": "dead_letter", "body_sha256": SHA256.upper()}, "needs body_sha256"),
        (b'{"topic": "orders", "fate": "curated", "message_id": "\xff"}', "can't decode byte 0xff"),
        ('{"topic": "orders", "kind": "\\ud800"}', "truncated"),
        ("[" * 100_000, "["),
    ],
)
def test_a_line_that_is_none_is_named_with_what_was_found(tmp_path: Path, line: Any, found: str) -> None:
    file = write(tmp_path, LINE, "", line, LINE)
    with pytest.raises(WrongUseError) as refused:
        read_oracle([file])
    assert refused.value.where == f"{file}:3"
    assert found in (refused.value.found or "")
    assert len(str(refused.value)) < 2000
    assert str(refused.value).isprintable()


def test_a_dead_letter_may_have_no_time_or_none_that_is_one(tmp_path: Path) -> None:
    letter = {"topic": "orders", "fate": "dead_letter", "body_sha256": SHA256}
    file = write(tmp_path, letter, {**letter, "publish_time": "soon"}, LINE)
    assert ["publish_time" in row for row in rows(file)] == [False, False, True]


@pytest.mark.parametrize("name", ["none.jsonl", "."])
def test_a_file_that_can_not_be_opened_is_wrong_use(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongUseError, match="can't be read"):
        read_oracle([tmp_path / name])


texts = st.text(st.characters(exclude_categories=["Cs"]))
lines = st.builds(
    Expected,
    topic=texts,
    file=st.none() | texts,
    line=st.none() | st.integers(0, 2**40),
    message_id=texts,
    publish_time=st.just(TIME),
    idempotency_key=st.none() | texts,
    fate=st.sampled_from([fate for fate in ExpectedFate if fate is not ExpectedFate.DEAD_LETTER]),
    reason=st.none() | texts,
    fields=st.none() | st.lists(texts).map(tuple),
    curated=st.none() | st.dictionaries(texts, st.none() | texts | st.booleans() | st.integers()),
)


@given(st.lists(lines, min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, told: list[Expected]) -> None:
    file = tmp_path_factory.mktemp("oracle") / "fates.jsonl"
    file.write_bytes(b"".join(map(encode_line, told)))
    read = {row["place"]: (topic, row) for topic, t in read_oracle([file]).topics.items() for row in t.to_pylist()}
    assert list(map(read.get, sorted(read))) == [
        (line.topic, {**read[place][1], **_arrow(line)}) for place, line in enumerate(told, start=1)
    ]


def _arrow(line: Expected) -> dict[str, Any]:
    names = ("file", "line", "message_id", "idempotency_key", "reason", "version")
    return {
        **{name: getattr(line, name) for name in names},
        "fate": str(line.fate),
        "fields": None if line.fields is None else list(line.fields),
        "curated": None
        if line.curated is None
        else json.dumps(line.curated, ensure_ascii=False, separators=(",", ":")),
    }
