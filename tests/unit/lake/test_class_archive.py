"""Which file of classes belongs to a Java and its jars, and how it comes to be."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lean_ops.lake.class_archive import ClassArchive
from lean_ops.lake.java import JavaHome

JAVA = JavaHome(Path("/java"), "17.0.15", "a test")


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    file = tmp_path / "a.jar"
    file.write_bytes(b"classes")
    return file


def archive(tmp_path: Path, jar: Path, java: JavaHome = JAVA) -> ClassArchive:
    return ClassArchive.of(tmp_path / "cache", java, [jar])


def dumped(option: str) -> Path:
    """Where Java is told to write."""
    found = re.fullmatch(r'-XX:ArchiveClassesAtExit="(.+)"', option)
    assert found
    return Path(found[1])


def test_another_java_another_jar_or_the_same_one_written_anew_has_a_file_of_its_own(tmp_path: Path, jar: Path) -> None:
    files = [archive(tmp_path, jar).file]
    assert archive(tmp_path, jar).file == files[0]
    files.append(archive(tmp_path, jar, JavaHome(Path("/java"), "17.0.16", "a test")).file)
    files.append(archive(tmp_path, jar, JavaHome(Path("/other"), "17.0.15", "a test")).file)
    files.append(archive(tmp_path, jar.rename(jar.with_name("b.jar"))).file)
    jar = jar.with_name("b.jar")
    os.utime(jar, ns=(0, 1))
    files.append(archive(tmp_path, jar).file)
    jar.write_bytes(b"more classes")
    os.utime(jar, ns=(0, 1))
    files.append(archive(tmp_path, jar).file)
    assert len(set(files)) == len(files)


def test_it_is_written_once_and_then_used(tmp_path: Path, jar: Path) -> None:
    made, told = archive(tmp_path, jar), []

    def play(option: str) -> None:
        told.append(option)
        assert not made.is_there  # a start in the meantime goes without
        dumped(option).write_bytes(b"in memory")

    assert made.options == ""
    assert made.make(play)
    assert made.make(play)
    assert len(told) == 1
    assert made.options == f'-XX:SharedArchiveFile="{made.file}"'
    assert made.file.read_bytes() == b"in memory"


def test_a_java_that_writes_nothing_or_breaks_leaves_nothing(tmp_path: Path, jar: Path) -> None:
    made = archive(tmp_path, jar)

    def break_down(option: str) -> None:
        dumped(option).write_bytes(b"half of it")
        raise KeyboardInterrupt

    assert not made.make(lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        made.make(break_down)
    assert [file.name for file in made.file.parent.iterdir()] == [".lock"]


def test_the_newest_few_stay(tmp_path: Path, jar: Path) -> None:
    versions = [JavaHome(Path("/java"), f"17.0.{number}", "a test") for number in range(5)]
    for number, java in enumerate(versions):
        made = archive(tmp_path, jar, java)
        made.make(lambda option: dumped(option).touch())
        os.utime(made.file, (number, number))
    assert [archive(tmp_path, jar, java).is_there for java in versions] == [False, False, True, True, True]
