"""Our own Java through the pinned compiler, as the first start of Spark compiles it.

As a script (`python test_kernel_jar.py CACHE SOURCES`) it makes the jar once a line comes on stdin.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lean_ops.lake.jars import COMPILER, JARS, jar_files, jars_dir
from lean_ops.lake.java import JavaHome, find_java
from lean_ops.lake.kernel_jar import FUNCTIONS_CLASS, spark_jars
from lean_ops.model.errors import TerminalError
from lean_ops.settings import load_settings

SOURCES = Path(spark_jars.__code__.co_filename).parent.parent / "java"
SMALL = {"Small": "package leanops; public final class Small { record Pair(int one, String two) {} }"}


def java_of(cache: Path) -> JavaHome:
    return find_java(cache, os.environ)


@pytest.fixture(scope="module")
def fetched() -> tuple[Path, ...]:
    """The pinned jars from the machine's own cache, where every Spark start finds them."""
    cache = load_settings({}, environ={}).settings.cache_dir
    return jar_files(cache, java_of(cache), jars=(*JARS, COMPILER))


@pytest.fixture
def cache(tmp_path: Path, fetched: tuple[Path, ...]) -> Path:
    """A cache of the test's own that has all but our jar."""
    return filled(tmp_path / "cache", fetched)


def filled(cache: Path, fetched: tuple[Path, ...]) -> Path:
    jars_dir(cache).mkdir(parents=True)
    for jar in fetched:
        for file in (jar, jar.with_name(f"{jar.name}.verified")):
            (jars_dir(cache) / file.name).symlink_to(file)
    return cache


def made(cache: Path, sources: Path = SOURCES) -> Path:
    return spark_jars(cache, java_of(cache), pytest.fail, sources)[-1]


def written(folder: Path, sources: dict[str, str]) -> Path:
    (folder / "leanops").mkdir(parents=True)
    for name, text in sources.items():
        (folder / "leanops" / f"{name}.java").write_text(text, encoding="utf-8")
    return folder


def classes(jar: Path) -> set[str]:
    with zipfile.ZipFile(jar) as archive:
        assert archive.testzip() is None
        return {name.removesuffix(".class").replace("/", ".") for name in archive.namelist()}


def test_the_packages_own_sources_compile_and_each_of_them_has_its_class(cache: Path) -> None:
    ours = made(cache)
    each = {file.relative_to(SOURCES).with_suffix("").as_posix().replace("/", ".") for file in SOURCES.rglob("*.java")}
    assert {FUNCTIONS_CLASS, "leanops.flatten.Flatten", "leanops.judge.Judge"} <= each <= classes(ours)


def test_the_same_sources_make_the_same_jar_byte_for_byte(
    cache: Path, tmp_path: Path, fetched: tuple[Path, ...]
) -> None:
    first = made(cache)
    second = made(filled(tmp_path / "another", fetched))
    assert second.name == first.name
    assert second.read_bytes() == first.read_bytes()


def test_the_classes_run_on_the_oldest_java_that_is_let_in(cache: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(made(cache, written(tmp_path / "java", SMALL))) as jar:
        content = jar.read("leanops/Small.class")
    assert int.from_bytes(content[6:8]) == 44 + 17, "the format of Java 17"


def test_sources_that_do_not_compile_are_told_in_the_compilers_words_and_leave_nothing(
    cache: Path, tmp_path: Path
) -> None:
    before = set(jars_dir(cache).iterdir())
    sources = written(tmp_path / "java", {**SMALL, "Faulty": "package leanops; class Faulty { Nowhere field; }"})
    with pytest.raises(TerminalError, match="could not be compiled") as caught:
        made(cache, sources)
    assert "Nowhere cannot be resolved to a type" in str(caught.value.found)
    assert "Faulty.java" in str(caught.value.found)
    assert set(jars_dir(cache).iterdir()) - before == {jars_dir(cache) / ".lock"}


def test_texts_of_the_sources_are_utf_8_whatever_the_machine_speaks(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    word = "grüße 漢字"
    text = f'package leanops; public final class Small {{ static final String WORD = "{word}"; }}'
    with zipfile.ZipFile(made(cache, written(tmp_path / "java", {"Small": text}))) as jar:
        assert word.encode() in jar.read("leanops/Small.class")


def test_processes_that_start_at_once_make_one_jar(cache: Path, tmp_path: Path) -> None:
    sources = written(tmp_path / "java", SMALL)
    command = [sys.executable, __file__, str(cache), str(sources)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    try:
        for process in processes:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        told = [tell(process) for process in processes]
        ends = [process.communicate(timeout=120)[0].split() for process in told]
    finally:
        for process in processes:
            process.kill()
            process.wait(30)
    assert [process.returncode for process in processes] == [0, 0, 0]
    (ours,) = jars_dir(cache).glob("lean-ops-kernel-*")
    facts = ours.stat()
    assert ends == [[str(ours), str(facts.st_ino), str(facts.st_mtime_ns)]] * 3, "each saw the one file that is there"


def tell(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()
    return process


def make_on_command(cache: str, sources: str) -> None:
    """Make the jar, and say which file it is."""
    java = java_of(Path(cache))
    print("ready", flush=True)
    sys.stdin.readline()
    ours = spark_jars(Path(cache), java, print, Path(sources))[-1]
    facts = ours.stat()
    print(ours, facts.st_ino, facts.st_mtime_ns)


if __name__ == "__main__":
    make_on_command(*sys.argv[1:])
