"""When our own jar is made, and under which name; the compiler here is a script. The real one: tests/integration."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from lean_ops.lake import jars as jars_module
from lean_ops.lake import kernel_jar as module
from lean_ops.lake.jars import Jar, jars_dir
from lean_ops.lake.java import JavaHome
from lean_ops.lake.kernel_jar import jars_to_fetch, spark_jars
from lean_ops.model.errors import TerminalError

pytestmark = pytest.mark.usefixtures("fetched")

# Notes that it was called, and makes a class of each source; a source that says BROKEN does not compile.
COMPILER_SCRIPT: Final = """\
#!/bin/sh
echo called >> "$(dirname "$0")/calls"
while [ "$1" != -d ]; do shift; done
target=$2
shift 2
mkdir -p "$target/leanops"
for source in "$@"; do
  if grep -q BROKEN "$source"; then echo "1. ERROR in $source (at line 1)"; exit 255; fi
  cp "$source" "$target/leanops/$(basename "$source" .java).class"
done
"""


def pinned(artifact: str) -> Jar:
    return Jar("org.example", artifact, "1.0", len(artifact), hashlib.sha256(artifact.encode()).hexdigest())


ICEBERG, COMPILER = pinned("iceberg"), pinned("compiler")


@pytest.fixture
def java(tmp_path: Path) -> JavaHome:
    executable = tmp_path / "jdk" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(COMPILER_SCRIPT)
    executable.chmod(0o755)
    return JavaHome(tmp_path / "jdk", "17.0.1", "test")


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the network."""
    asked: list[str] = []

    def fetch(jars: Sequence[Jar], _java: JavaHome, target: Path) -> None:
        for jar in jars:
            asked.append(jar.artifact)
            (target / jar.file_name).write_text(jar.artifact)

    monkeypatch.setattr(jars_module, "resolve_with_spark", fetch)
    return asked


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources of two classes, in the place of the package's own."""
    folder = tmp_path / "java"
    (folder / "leanops").mkdir(parents=True)
    for name in ("One", "Two"):
        (folder / "leanops" / f"{name}.java").write_text(f"class {name} {{}}")
    monkeypatch.setattr(module, "_SOURCES", folder)
    monkeypatch.setattr(module, "JARS", (ICEBERG,))
    monkeypatch.setattr(module, "COMPILER", COMPILER)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def made(cache: Path, java: JavaHome, sources: Path) -> Path:
    """Our jar, which comes last on the class path, after what it needs."""
    iceberg, ours = spark_jars(cache, java, lambda _: None, sources)
    assert iceberg == jars_dir(cache) / ICEBERG.file_name
    return ours


def calls(java: JavaHome) -> int:
    noted = java.home / "bin" / "calls"
    return len(noted.read_text().splitlines()) if noted.exists() else 0


def kernels(cache: Path) -> set[str]:
    return {file.name for file in jars_dir(cache).glob("lean-ops-kernel-*")}


def test_the_first_call_compiles_and_the_second_makes_nothing(
    cache: Path, java: JavaHome, sources: Path, fetched: list[str]
) -> None:
    first = made(cache, java, sources)
    facts = first.stat()
    assert made(cache, java, sources) == first
    assert (first.stat().st_ino, first.stat().st_mtime_ns) == (facts.st_ino, facts.st_mtime_ns)
    assert calls(java) == 1
    assert fetched == ["iceberg", "compiler"]


def test_the_jar_holds_the_classes_and_nothing_is_left_beside_it(cache: Path, java: JavaHome, sources: Path) -> None:
    ours = made(cache, java, sources)
    with zipfile.ZipFile(ours) as jar:
        assert jar.namelist() == ["leanops/One.class", "leanops/Two.class"]
    expected = {name for jar in (ICEBERG, COMPILER) for name in (jar.file_name, f"{jar.file_name}.verified")}
    assert {file.name for file in jars_dir(cache).iterdir()} == expected | {ours.name, ".lock"}


def test_the_same_sources_elsewhere_make_the_same_jar_byte_for_byte(
    cache: Path, java: JavaHome, sources: Path, tmp_path: Path
) -> None:
    first = made(cache, java, sources)
    elsewhere = sources.rename(tmp_path / "another place")
    second = made(tmp_path / "another cache", java, elsewhere)
    assert second.name == first.name
    assert second.read_bytes() == first.read_bytes()
    assert calls(java) == 2


def change_text(sources: Path) -> None:
    (sources / "leanops" / "One.java").write_text("class One { }")


def change_name(sources: Path) -> None:
    (sources / "leanops" / "One.java").rename(sources / "leanops" / "Three.java")


def change_folder(sources: Path) -> None:
    (sources / "other").mkdir()
    (sources / "leanops" / "One.java").rename(sources / "other" / "One.java")


def add_one(sources: Path) -> None:
    (sources / "leanops" / "Three.java").write_text("")


def remove_one(sources: Path) -> None:
    (sources / "leanops" / "One.java").unlink()


@pytest.mark.parametrize("change", [change_text, change_name, change_folder, add_one, remove_one])
def test_other_sources_make_a_jar_of_another_name(
    cache: Path, java: JavaHome, sources: Path, change: Callable[[Path], None]
) -> None:
    first = made(cache, java, sources)
    change(sources)
    assert made(cache, java, sources) != first
    assert first.is_file()
    assert calls(java) == 2


@pytest.mark.parametrize("what", ["version", "COMPILER", "_RELEASE"])
def test_another_spark_or_compiler_makes_a_jar_of_another_name(
    cache: Path, java: JavaHome, sources: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(cache, java, sources)
    another = {"version": lambda _: "9.9", "COMPILER": pinned("other"), "_RELEASE": "21"}
    monkeypatch.setattr(module, what, another[what])
    assert made(cache, java, sources) != first


def test_sources_that_do_not_compile_are_told_in_the_compilers_words_and_leave_nothing(
    cache: Path, java: JavaHome, sources: Path
) -> None:
    (sources / "leanops" / "Two.java").write_text("BROKEN")
    for _ in range(2):
        with pytest.raises(TerminalError, match="could not be compiled") as caught:
            made(cache, java, sources)
        assert caught.value.where == str(sources)
        assert f"1. ERROR in {sources}/leanops/Two.java (at line 1)" in str(caught.value.found)
        assert "make setup" in str(caught.value)
    assert kernels(cache) == set()
    assert list(jars_dir(cache).glob(".fetch-*")) == []
    assert calls(java) == 2, "what failed is tried again"


def test_a_jar_that_does_not_compile_leaves_the_older_ones(cache: Path, java: JavaHome, sources: Path) -> None:
    first = made(cache, java, sources)
    (sources / "leanops" / "Two.java").write_text("BROKEN")
    with pytest.raises(TerminalError):
        made(cache, java, sources)
    assert kernels(cache) == {first.name}


def test_of_many_at_once_one_compiles_and_all_get_the_jar(cache: Path, java: JavaHome, sources: Path) -> None:
    everybody_here = threading.Barrier(4)
    found: list[Path] = []

    def start() -> None:
        everybody_here.wait(10)
        found.append(made(cache, java, sources))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 4
    assert len(set(found)) == 1
    assert calls(java) == 1


def test_the_compiler_is_to_be_fetched_only_while_the_jar_is_missing(
    cache: Path, java: JavaHome, sources: Path
) -> None:
    assert jars_to_fetch(cache) == (ICEBERG, COMPILER)
    assert not cache.exists(), "asking writes nothing"
    made(cache, java, sources)
    assert jars_to_fetch(cache) == ()
    (jars_dir(cache) / COMPILER.file_name).unlink()
    assert jars_to_fetch(cache) == (), "nobody needs the compiler again"
    change_text(sources)
    assert jars_to_fetch(cache) == (COMPILER,)


def test_a_start_with_the_jar_in_place_needs_no_compiler(
    cache: Path, java: JavaHome, sources: Path, fetched: list[str]
) -> None:
    made(cache, java, sources)
    (jars_dir(cache) / COMPILER.file_name).unlink()
    made(cache, java, sources)
    assert fetched == ["iceberg", "compiler"]
    assert calls(java) == 1


def test_of_the_jars_of_older_sources_the_newest_three_stay(cache: Path, java: JavaHome, sources: Path) -> None:
    ours: list[Path] = []
    for number in range(6):
        (sources / "leanops" / "One.java").write_text(f"class One {{}} // {number}")
        ours.append(made(cache, java, sources))
        os.utime(ours[-1], (number, number))
    assert kernels(cache) == {jar.name for jar in ours[-4:]}
