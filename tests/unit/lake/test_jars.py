from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

import pytest

from lean_ops.lake import jars as module
from lean_ops.lake.jars import JARS, Jar, jar_files, jars_dir, missing_jars
from lean_ops.lake.java import JavaHome
from lean_ops.model.errors import TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONTENTS = {"one": b"first jar", "two": b"second jar"}
PINS = tuple(
    Jar("org.example", name, "1.0", len(content), hashlib.sha256(content).hexdigest())
    for name, content in CONTENTS.items()
)


@pytest.fixture
def java(tmp_path: Path) -> JavaHome:
    return JavaHome(tmp_path / "jdk", "17.0.1", "test")


class Fetcher:
    """In the resolver's place: writes what it is told to, and counts."""

    def __init__(self, contents: dict[str, bytes] | None = None) -> None:
        self.contents = CONTENTS if contents is None else contents
        self.asked: list[list[str]] = []

    def __call__(self, jars: Sequence[Jar], _java: JavaHome, target: Path) -> None:
        self.asked.append([jar.artifact for jar in jars])
        for jar in jars:
            (target / jar.file_name).write_bytes(self.contents[jar.artifact])


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != ".lock"}


def test_the_pins_are_those_of_spark_4_1_and_iceberg_1_11() -> None:
    assert [jar.coordinates for jar in JARS] == [
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
        "org.xerial:sqlite-jdbc:3.50.3.0",
    ]
    assert JARS[0].file_name == "org.apache.iceberg_iceberg-spark-runtime-4.1_2.13-1.11.0.jar"


def test_the_first_call_fetches_and_the_second_does_not(tmp_path: Path, java: JavaHome) -> None:
    fetch = Fetcher()
    notices: list[str] = []

    first = jar_files(tmp_path, java, jars=PINS, fetch=fetch, notice=notices.append)
    second = jar_files(tmp_path, java, jars=PINS, fetch=fetch, notice=notices.append)

    folder = jars_dir(tmp_path)
    assert first == second == (folder / PINS[0].file_name, folder / PINS[1].file_name)
    assert fetch.asked == [["one", "two"]]
    assert len(notices) == 1
    assert names_in(folder) == {name for jar in PINS for name in (jar.file_name, f"{jar.file_name}.verified")}


def test_a_later_start_hashes_nothing(tmp_path: Path, java: JavaHome, monkeypatch: pytest.MonkeyPatch) -> None:
    first = jar_files(tmp_path, java, jars=PINS, fetch=Fetcher())
    monkeypatch.setattr(module, "_sha256", lambda _: pytest.fail("hashed again"))

    assert jar_files(tmp_path, java, jars=PINS, fetch=Fetcher()) == first


def test_jars_put_there_by_hand_are_taken_after_one_look(tmp_path: Path, java: JavaHome) -> None:
    jars_dir(tmp_path).mkdir()
    for jar in PINS:
        (jars_dir(tmp_path) / jar.file_name).write_bytes(CONTENTS[jar.artifact])
    fetch = Fetcher()

    assert missing_jars(tmp_path, PINS) == ()
    jar_files(tmp_path, java, jars=PINS, fetch=fetch)

    assert fetch.asked == []


@pytest.mark.parametrize("damage", [b"first", b"FIRST JAR", b""])
def test_a_damaged_jar_is_fetched_again_and_only_that_one(tmp_path: Path, java: JavaHome, damage: bytes) -> None:
    jar_files(tmp_path, java, jars=PINS, fetch=Fetcher())
    (jars_dir(tmp_path) / PINS[0].file_name).write_bytes(damage)
    fetch = Fetcher()

    assert missing_jars(tmp_path, PINS) == PINS[:1]
    jar_files(tmp_path, java, jars=PINS, fetch=fetch)

    assert fetch.asked == [["one"]]
    assert (jars_dir(tmp_path) / PINS[0].file_name).read_bytes() == CONTENTS["one"]


def test_something_else_than_the_pinned_file_is_refused_and_not_kept(tmp_path: Path, java: JavaHome) -> None:
    fetch = Fetcher({**CONTENTS, "two": b"another jar"})

    with pytest.raises(TerminalError, match="not the pinned file") as caught:
        jar_files(tmp_path, java, jars=PINS, fetch=fetch)

    assert PINS[1].sha256 in str(caught.value)
    assert names_in(jars_dir(tmp_path)) == {PINS[0].file_name, f"{PINS[0].file_name}.verified"}
    assert missing_jars(tmp_path, PINS) == PINS[1:]


def test_without_network_the_error_says_what_to_put_where(tmp_path: Path, java: JavaHome) -> None:
    def offline(*_: object) -> None:
        raise TransientError("no", found="Host central not found.")

    with pytest.raises(TransientError) as caught:
        jar_files(tmp_path, java, jars=PINS, fetch=offline)

    message = str(caught.value)
    for part in ("Maven Central", "Host central not found", str(jars_dir(tmp_path)), *(jar.file_name for jar in PINS)):
        assert part in message
    assert names_in(jars_dir(tmp_path)) == set()


def test_what_a_killed_fetch_left_behind_is_removed(tmp_path: Path, java: JavaHome) -> None:
    leftover = jars_dir(tmp_path) / ".fetch-dead" / "ivy"
    leftover.mkdir(parents=True)
    (leftover / PINS[0].file_name).write_bytes(b"half")

    jar_files(tmp_path, java, jars=PINS, fetch=Fetcher())

    assert not leftover.parent.exists()


def test_of_two_at_once_one_fetches_and_both_get_the_jars(tmp_path: Path, java: JavaHome) -> None:
    fetch = Fetcher()
    both_here = threading.Barrier(2)
    found: list[tuple[Path, ...]] = []

    def start() -> None:
        both_here.wait(10)
        found.append(jar_files(tmp_path, java, jars=PINS, fetch=fetch))

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(fetch.asked) == 1
    assert len(found) == 2
    assert found[0] == found[1]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, java: JavaHome) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(TerminalError, match="cache_dir"):
        jar_files(tmp_path / "file", java, jars=PINS, fetch=Fetcher())


def test_the_resolver_is_retried_with_the_machines_certificates_when_java_distrusts_the_network(
    tmp_path: Path, java: JavaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], _environ: object) -> str:
        commands.append(command)
        if len(commands) == 1:
            return "Server access error (javax.net.ssl.SSLHandshakeException: PKIX path building failed)"
        ivy = next(word for word in command if word.startswith("spark.jars.ivy=")).removeprefix("spark.jars.ivy=")
        for jar in PINS:
            fetched = tmp_path.joinpath(ivy, "jars", jar.file_name)
            fetched.parent.mkdir(parents=True, exist_ok=True)
            fetched.write_bytes(CONTENTS[jar.artifact])
        return "done"

    monkeypatch.setattr(module, "_run", run)
    monkeypatch.setattr(module, "write_trust_store", lambda *_: True)

    jar_files(tmp_path, java, jars=PINS)

    assert [any("javax.net.ssl.trustStore=" in word for word in command) for command in commands] == [False, True]
    assert all(str(java.executable) == command[0] for command in commands)


def test_the_resolvers_reason_is_told_without_its_noise(
    tmp_path: Path, java: JavaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ":: resolving\n\tHost repos.spark-packages.org not found. url=x\n\tHost central.example not found. url=y\n"
    monkeypatch.setattr(module, "_run", lambda *_: report)

    with pytest.raises(TransientError) as caught:
        jar_files(tmp_path, java, jars=PINS)

    assert caught.value.found == "Host central.example not found."


def test_the_resolver_sees_no_maven_folder_of_the_person_and_leaves_out_what_it_is_told_to(
    tmp_path: Path, java: JavaHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], _environ: object) -> str:
        commands.append(command)
        fetched = tmp_path / "ivy" / "jars" / PINS[0].file_name
        fetched.parent.mkdir(parents=True)
        fetched.write_bytes(CONTENTS["one"])
        return "done"

    monkeypatch.setattr(module, "_run", run)

    module.resolve_with_spark(PINS[:1], java, tmp_path, ["org.example:two", "org.example:three"])

    assert f"-Duser.home={tmp_path}" in commands[0]
    assert commands[0][commands[0].index("--exclude-packages") + 1] == "org.example:two,org.example:three"
