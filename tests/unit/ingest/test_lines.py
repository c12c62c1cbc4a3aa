"""Lines out of chunks."""

from __future__ import annotations

import io
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.ingest.lines import Line, ReadError, Spool, check_sources, open_source, read_lines
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LIMIT = 20


def lines_of(chunks: Iterable[bytes | None], folder: Path, limit: int = LIMIT) -> list[Line | None]:
    left = iter(chunks)
    return list(read_lines("f", lambda: next(left, b""), limit, folder))


def bodies(chunks: Iterable[bytes | None], folder: Path) -> list[bytes | None]:
    found = [line.body for line in lines_of(chunks, folder) if line is not None]
    return [b"".join(body.chunks()) if isinstance(body, Spool) else body for body in found]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r", [b"a"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"\n \t\r\n\na\n", [None, None, None, b"a"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb", [b"\xef\xbb"]),
        (b"\xff\x00\xfe\n", [b"\xff\x00\xfe"]),
        (b"x" * 20 + b"\n" + b"y" * 20 + b"\r\n", [b"x" * 20, b"y" * 20]),
        (b"x" * 21 + b"\n" + b"y" * 50 + b"\r\nz", [b"x" * 21, b"y" * 50, b"z"]),
        (b" " * 100 + b"\nz", [None, b"z"]),
        (b"x" * 100, [b"x" * 100]),
        (b"\xef\xbb\xbf" + b"x" * 20, [b"x" * 20]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_they_are_cut(
    content: bytes, expected: list[bytes | None], size: int, tmp_path: Path
) -> None:
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    assert bodies(chunks, tmp_path) == expected


@given(st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.integers(1, 40))
def test_any_lines_come_back(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], size: int) -> None:
    content = b"\n".join(lines)
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    split = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    expected = [line.removesuffix(b"\r") for line in (split if split[-1] else split[:-1])]
    folder = tmp_path_factory.getbasetemp()
    assert bodies(chunks, folder) == [line if line.strip(b" \t\n\r\x0b\x0c") else None for line in expected]


def test_lines_are_numbered_from_one_with_blank_ones(tmp_path: Path) -> None:
    assert lines_of([b"a\n\nb"], tmp_path) == [Line(1, b"a"), Line(2, None), Line(3, b"b")]


def test_an_idle_source_says_so_between_lines(tmp_path: Path) -> None:
    assert lines_of([b"a\nb", None, b"c\n", None], tmp_path) == [Line(1, b"a"), None, Line(2, b"bc"), None]


def test_a_huge_line_is_never_held_in_memory_and_leaves_no_file(tmp_path: Path) -> None:
    chunk = b"x" * 1_000_000
    tracemalloc.start()
    (line,) = lines_of([chunk] * 50, tmp_path, limit=1024)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert line is not None
    assert isinstance(line.body, Spool)
    assert line.body.size == 50_000_000
    assert peak < 5_000_000
    assert list(tmp_path.iterdir()) == []


def test_a_read_that_fails_names_the_file(tmp_path: Path) -> None:
    def read() -> bytes:
        raise OSError(5, "Input/output error")

    with pytest.raises(ReadError, match=r"file 'f'.*Input/output error"):
        list(read_lines("f", read, LIMIT, tmp_path))


def test_sources_that_can_not_be_opened_are_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"")
    check_sources([str(tmp_path / "there"), "-"])
    for name in (tmp_path / "missing", tmp_path):
        with pytest.raises(WrongUseError, match=name.name):
            check_sources([str(tmp_path / "there"), str(name)])


def test_stdin_without_a_file_behind_it_is_read_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\nb")))
    with open_source("-") as read:
        assert list(read_lines("-", read, LIMIT, tmp_path)) == [Line(1, b"a"), Line(2, b"b")]
