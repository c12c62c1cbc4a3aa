from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.servers.supply import cache_dir, ensure, find

from lean_ops.model.errors import TerminalError, TransientError


@dataclass
class Program:
    """A supply of one small file."""

    name: str = "program"
    version: str = "1"
    made: list[Path] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def made_of(self) -> str:
        return self.version

    def is_whole(self, folder: Path) -> bool:
        file = folder / "file"
        return file.is_file() and file.read_text(encoding="ascii") == self.version

    def make(self, folder: Path, place: Path, cache_dir: Path) -> None:
        assert place.is_relative_to(cache_dir)
        (folder / "half").touch()
        self.before()
        self.made.append(folder)
        (folder / "file").write_text(self.version, encoding="ascii")


def say_nothing(_: str) -> None:
    pass


def test_a_supply_is_made_once_and_said_so_once(tmp_path: Path) -> None:
    program, said = Program(), list[str]()

    ensure(program, tmp_path, said.append)
    ensure(program, tmp_path, said.append)

    assert len(program.made) == 1
    assert said == ["program: fetching what it needs, only this once"]
    assert (find(program, tmp_path) / "file").read_text(encoding="ascii") == "1"


def test_a_missing_supply_names_the_command_that_brings_it(tmp_path: Path) -> None:
    with pytest.raises(TerminalError, match="make servers"):
        find(Program(), tmp_path)


def test_a_supply_that_could_not_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> None:
        raise TransientError("no network")

    with pytest.raises(TransientError):
        ensure(Program(before=fail), tmp_path, say_nothing)

    assert [file.name for file in (tmp_path / "servers").iterdir()] == [".lock"]
    ensure(Program(), tmp_path, say_nothing)
    find(Program(), tmp_path)


def test_a_damaged_supply_is_made_again(tmp_path: Path) -> None:
    program = Program()
    ensure(program, tmp_path, say_nothing)
    (find(program, tmp_path) / "file").write_text("damaged", encoding="ascii")

    with pytest.raises(TerminalError):
        find(program, tmp_path)
    ensure(program, tmp_path, say_nothing)

    assert len(program.made) == 2
    find(program, tmp_path)


def test_two_versions_live_side_by_side(tmp_path: Path) -> None:
    old, new = Program(version="1"), Program(version="2")
    ensure(old, tmp_path, say_nothing)
    ensure(new, tmp_path, say_nothing)

    assert find(old, tmp_path) != find(new, tmp_path)


def test_of_two_at_once_one_makes_it_and_the_other_waits(tmp_path: Path) -> None:
    is_making, may_end = threading.Event(), threading.Event()

    def wait() -> None:
        is_making.set()
        assert may_end.wait(30)

    first, second = Program(before=wait), Program()
    making = threading.Thread(target=ensure, args=(first, tmp_path, say_nothing))
    making.start()
    assert is_making.wait(30)
    waiting = threading.Thread(target=ensure, args=(second, tmp_path, say_nothing))
    waiting.start()
    may_end.set()
    making.join(30)
    waiting.join(30)

    assert (len(first.made), len(second.made)) == (1, 0)


def test_the_cache_is_where_the_product_keeps_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAN_OPS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LEAN_OPS_ENVIRONMENT", "a setting for another part")

    assert cache_dir() == tmp_path / "cache"
