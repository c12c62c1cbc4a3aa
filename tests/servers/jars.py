"""A server made of jars: fetched by Spark's resolver, held to lock/servers.txt, with a main of ours where needed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers.supply import contents

from lean_ops.lake.jars import COMPILER, Jar, jar_files, resolve_with_spark, run_java, spark_classpath
from lean_ops.lake.java import JavaHome, find_java
from lean_ops.model.errors import TerminalError, TransientError

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK: Final = ROOT / "lock" / "servers.txt"
MAINS: Final = Path(__file__).parent / "java"
_RELEASE: Final = "17"
_TO_LOCK: Final = "make servers SERVERS_FLAGS=--lock"
_OPENING: Final = (
    f"# Made by `{_TO_LOCK}`.",
    "# The jars of the servers that tests use: sha256, size, file. What is fetched must be these.",
)


@dataclass(frozen=True, slots=True)
class LockedJar:
    """One line of the lock."""

    sha256: str
    size: int
    file_name: str


@dataclass(frozen=True, slots=True)
class JarSupply:
    """A server's jar with all that it needs, except what `without` names; `main` is a Java source to compile beside."""

    name: str
    coordinates: str
    without: tuple[str, ...] = ()
    main: str | None = None

    def made_of(self) -> str:
        """The lock's lines, and the main's text and compiler."""
        lines = "\n".join(f"{jar.sha256} {jar.file_name}" for jar in self.locked())
        return f"{lines}\n{contents(self._sources())} {COMPILER.coordinates} {_RELEASE}"

    def is_whole(self, folder: Path) -> bool:
        """Whether every jar has its size; hashes were compared when they came."""
        jars = self.locked()
        sized = bool(jars) and all(_size(folder / jar.file_name) == jar.size for jar in jars)
        return sized and all((folder / f"{source.stem}.class").is_file() for source in self._sources())

    def make(self, folder: Path, place: Path, cache_dir: Path) -> None:
        """Fetch, compare, compile."""
        java = find_java(cache_dir, os.environ)
        self.resolve(java, place)
        fetched = {file.name: file for file in _fetched(place)}
        for jar in self.locked():
            _take(fetched.get(jar.file_name), jar, folder)
        if self._sources():
            _compile(java, cache_dir, self._sources(), folder)

    def resolve(self, java: JavaHome, place: Path) -> None:
        """Fetch its jar and all that it needs; what size and hash they must have is the lock's business."""
        group, artifact, version = self.coordinates.split(":")
        try:
            resolve_with_spark([Jar(group, artifact, version, 0, "")], java, place, self.without)
        except TransientError as error:
            raise TransientError(
                "its jars can't be fetched",
                where=self.coordinates,
                found=error.found or str(error),
                expected="access to Maven Central, once",
                remedy="Connect, and run `make servers` again.",
            ) from error

    def class_path(self, folder: Path) -> str:
        """For starting it. The Scala library is Spark's: its resolver never fetches another one."""
        scala = Path(spark_classpath()).parent.glob("scala-library-*.jar")
        return ":".join(map(str, (folder, *_jars(folder), *sorted(scala))))

    def locked(self) -> tuple[LockedJar, ...]:
        """Its jars in the lock."""
        text = LOCK.read_text(encoding="ascii") if LOCK.is_file() else ""
        lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
        own = f"{self.name}/"
        return tuple(
            LockedJar(sha256, int(size), path.removeprefix(own)) for sha256, size, path in lines if path.startswith(own)
        )

    def _sources(self) -> list[Path]:
        return [MAINS / self.main] if self.main else []


def lock_lines(supplies: Iterable[JarSupply], place: Path, cache_dir: Path) -> list[str]:
    """The lock as it would be now, from what Maven Central has."""
    java = find_java(cache_dir, os.environ)
    lines = list(_OPENING)
    for supply in supplies:
        own = place / supply.name
        own.mkdir()
        supply.resolve(java, own)
        files = sorted(_fetched(own), key=lambda file: file.name)
        lines += [f"{_sha256(file)} {_size(file)} {supply.name}/{file.name}" for file in files]
    return lines


def _fetched(place: Path) -> list[Path]:
    """The jar that was asked for, and those that it needs."""
    return [*_jars(place), *_jars(place / "ivy" / "jars")]


def _jars(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jar"))


def _take(file: Path | None, jar: LockedJar, folder: Path) -> None:
    if file is None or _sha256(file) != jar.sha256:
        raise TerminalError(
            "what was fetched is not what the lock names",
            where=f"{LOCK.name}, {jar.file_name}",
            found="no such file" if file is None else f"{_size(file)} bytes, sha256 {_sha256(file)}",
            expected=f"{jar.size} bytes, sha256 {jar.sha256}",
            remedy=f"Find out what changes downloads on this network. After a change of versions: `{_TO_LOCK}`.",
        )
    file.replace(folder / jar.file_name)


def _compile(java: JavaHome, cache_dir: Path, sources: list[Path], folder: Path) -> None:
    (compiler,) = jar_files(cache_dir, java, jars=(COMPILER,))
    command = [str(java.executable), "-Xmx256m", "-jar", str(compiler), "-source", _RELEASE, "-target", _RELEASE]
    command += ["-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", ":".join(map(str, _jars(folder)))]
    done = run_java([*command, "-d", str(folder), *map(str, sources)], os.environ)
    if done.returncode != 0:
        raise TerminalError("can't be compiled", where=str(sources[0]), found=done.stdout.strip()[:2000])


def _size(file: Path) -> int | None:
    return file.stat().st_size if file.is_file() else None


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
