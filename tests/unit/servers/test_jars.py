from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.servers import dynamodb, elasticmq
from tests.servers import jars as module
from tests.servers.jars import LOCK, JarSupply
from tests.servers.supply import ensure, find

from lean_ops.lake.jars import Jar
from lean_ops.lake.java import JavaHome
from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError

SERVER = JarSupply("server", "org.example:server:1.0", without=("org.example:telemetry",))
ROOT_JAR, NEEDED_JAR = "org.example_server-1.0.jar", "org.example_needed-2.0.jar"


class Maven:
    """In the resolver's place: brings a jar and the one that it needs."""

    def __init__(self) -> None:
        self.files = {ROOT_JAR: b"the server", NEEDED_JAR: b"what it needs"}
        self.without: list[Sequence[str]] = []

    def resolve(self, jars: Sequence[Jar], _java: JavaHome, target: Path, without: Sequence[str]) -> None:
        assert [jar.coordinates for jar in jars] == ["org.example:server:1.0"]
        self.without.append(without)
        (target / "ivy" / "jars").mkdir(parents=True)
        (target / ROOT_JAR).write_bytes(self.files[ROOT_JAR])
        (target / "ivy" / "jars" / NEEDED_JAR).write_bytes(self.files[NEEDED_JAR])


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    """Maven Central, and a lock of what it has today."""
    maven = Maven()
    lines = [f"{hashlib.sha256(body).hexdigest()} {len(body)} server/{name}" for name, body in maven.files.items()]
    lock = tmp_path / "servers.txt"
    lock.write_text("\n".join(["# a remark", *lines, f"{'0' * 64} 1 server-two/other.jar"]), encoding="ascii")
    monkeypatch.setattr(module, "LOCK", lock)
    monkeypatch.setattr(module, "resolve_with_spark", maven.resolve)
    monkeypatch.setattr(module, "find_java", lambda *_: JavaHome(tmp_path / "jdk", "17", "test"))
    return maven


def fetch(cache: Path) -> None:
    ensure(SERVER, cache, lambda _: None)


def test_a_server_is_fetched_with_all_that_it_needs_and_without_what_it_does_not(maven: Maven, tmp_path: Path) -> None:
    fetch(tmp_path)
    assert sorted(file.name for file in find(SERVER, tmp_path).iterdir()) == [NEEDED_JAR, ROOT_JAR]
    assert maven.without == [("org.example:telemetry",)]


def test_another_file_under_the_same_name_is_refused(maven: Maven, tmp_path: Path) -> None:
    maven.files[NEEDED_JAR] = b"what it need5"
    with pytest.raises(TerminalError, match="not what the lock names") as caught:
        fetch(tmp_path)
    assert NEEDED_JAR in str(caught.value)
    with pytest.raises(TerminalError, match="make servers"):
        find(SERVER, tmp_path)


def test_a_jar_that_was_cut_since_is_fetched_again(maven: Maven, tmp_path: Path) -> None:
    fetch(tmp_path)
    (find(SERVER, tmp_path) / NEEDED_JAR).write_bytes(b"what")
    fetch(tmp_path)
    assert (find(SERVER, tmp_path) / NEEDED_JAR).read_bytes() == maven.files[NEEDED_JAR]


@pytest.mark.usefixtures("maven")
def test_a_network_that_is_down_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise TransientError("did not bring it", found="Connection refused")

    monkeypatch.setattr(module, "resolve_with_spark", refuse)
    with pytest.raises(LeanOpsError, match=r"Connection refused.*Maven Central.*make servers"):
        fetch(tmp_path)


@pytest.mark.parametrize("supply", [elasticmq.SUPPLY, dynamodb.SUPPLY])
def test_the_lock_pins_every_jar_of_a_server(supply: JarSupply) -> None:
    _, artifact, version = supply.coordinates.split(":")
    assert any(jar.file_name.endswith(f"_{artifact}-{version}.jar") for jar in supply.locked())
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) and jar.size > 0 for jar in supply.locked())


def test_the_lock_names_no_address() -> None:
    assert "://" not in LOCK.read_text(encoding="ascii")
