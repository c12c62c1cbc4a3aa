"""An archived dead letter read back whole, in pieces."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ingest.archive_file import read_body, write
from lean_ops.model.errors import TerminalError

FACTS: dict[str, Any] = {"topic_name": "events", "message_id": 'm"1', "attributes": {"a": "é\n"}}


def archived(body: bytes, facts: dict[str, Any] = FACTS) -> bytes:
    file = io.BytesIO()
    write(file, facts, body)
    return file.getvalue()


def read(content: bytes) -> tuple[dict[str, Any], bytes]:
    facts, pieces = read_body(io.BytesIO(content), "a/b.json")
    return facts, b"".join(pieces)


texts = st.text(st.characters(codec="utf-8") | st.sampled_from('\\"\x00\x1f\x7f\n\r\u2028😀'))


@given(st.binary() | texts.map(str.encode))
def test_a_body_comes_back_byte_for_byte(body: bytes) -> None:
    assert read(archived(body)) == (FACTS, body)


@pytest.mark.parametrize(
    "unit", [b"\\", b'"', b"\x01", "é".encode(), "日".encode(), "😀".encode(), b"x", b"\xff", b'\\"\\u00', b"ab\xfe"]
)
@pytest.mark.parametrize("offset", range(4))
def test_a_large_body_comes_back_wherever_its_pieces_are_cut(unit: bytes, offset: int) -> None:
    body = b"-" * offset + unit * (3 * 1024 * 1024 // len(unit))
    assert read(archived(body)) == (FACTS, body)


def test_a_large_body_is_read_in_little_memory() -> None:
    for body in (b'{"a": "b\\n"}' * 1_000_000, b"\xff" * 12_000_000):
        content = archived(body)
        size = len(body)
        del body
        tracemalloc.start()
        _, pieces = read_body(io.BytesIO(content), "a/b.json")
        assert sum(map(len, pieces)) == size
        assert tracemalloc.get_traced_memory()[1] < len(content) + 9_000_000
        tracemalloc.stop()


GOOD = archived(b"body")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        b"{}\n",
        b'{"a": 1,\n',
        b'{"a": 1,\n"other": "x"}\n',
        GOOD[:-1],
        GOOD[:-3],
        GOOD[:-5],
        GOOD + b"x",
        GOOD.replace(b"body", b"bo\\xdy"),
        GOOD.replace(b'"body"}', b'"bo\\uZZZZ"}'),
        GOOD.replace(b'"body"}', b'"bo\\ud800"}'),
        GOOD.replace(b'"body"}', b'"bo\xffdy"}'),
        archived(b"\xff\xfe").replace(b"//4=", b"!!!!"),
        archived(b"\xff\xfe").replace(b"//4=", b"//4"),
        b'{"a": 1,\n"body": "\\uZZZZ' + b"x" * 5_000_000,
    ],
)
def test_a_damaged_file_is_named(content: bytes) -> None:
    with pytest.raises(TerminalError, match=r"a/b\.json.*damaged"):
        read(content)
