"""The jars that teach Spark Iceberg, and the compiler: fetched once by Spark's own resolver, checked, and kept."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.lake.trust import write_trust_store
from lean_ops.model.errors import TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lean_ops.lake.java import JavaHome

_PATIENCE_SECONDS: Final = 1800
_FETCH_PREFIX: Final = ".fetch-"
_DISTRUST: Final = "SSLHandshakeException"
_SECOND_REPOSITORY: Final = "spark-packages"  # asked by Spark for everything, has nothing of ours, often not there


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar, pinned."""

    group: str
    artifact: str
    version: str
    size: int
    sha256: str

    @property
    def coordinates(self) -> str:
        """Its name in a Maven repository."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """Its name after Spark's resolver fetched it."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"


JARS: Final = (
    Jar(
        "org.apache.iceberg",
        "iceberg-spark-runtime-4.1_2.13",
        "1.11.0",
        47_959_591,
        "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
    ),
    Jar(
        "org.xerial",
        "sqlite-jdbc",
        "3.50.3.0",
        14_346_720,
        "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
    ),
)
# What Spark needs for Glue and S3, where it is ours and not AWS'.
AWS_JARS: Final = (
    Jar(
        "org.apache.iceberg",
        "iceberg-aws-bundle",
        "1.11.0",
        63_613_165,
        "38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f",
    ),
)
# Compiles our own Java sources, once; a runtime without a compiler is enough for it.
COMPILER: Final = Jar(
    "org.eclipse.jdt",
    "ecj",
    "3.42.0",
    3_327_035,
    "29f6d3918ee02db4400c103bc25dd90a22491c3a395867d9393070cb96a7dd29",
)


def jars_dir(cache_dir: Path) -> Path:
    """Where the jars are kept."""
    return cache_dir / "jars"


def missing_jars(cache_dir: Path, jars: Sequence[Jar] = JARS) -> tuple[Jar, ...]:
    """The jars that the next Spark start would have to fetch. Writes nothing."""
    folder = jars_dir(cache_dir)
    return tuple(jar for jar in jars if not (_is_marked(folder, jar) or _is_genuine(folder / jar.file_name, jar)))


def jar_files(
    cache_dir: Path,
    java: JavaHome,
    *,
    notice: Callable[[str], None] | None = None,
    jars: Sequence[Jar] = JARS,
    fetch: Callable[[Sequence[Jar], JavaHome, Path], None] | None = None,
) -> tuple[Path, ...]:
    """The jars, there and genuine; the first call fetches them, later ones look at four small facts."""
    folder = jars_dir(cache_dir)
    if not all(_is_marked(folder, jar) for jar in jars):
        with alone(folder):
            _complete(folder, jars, java, fetch or resolve_with_spark, notice or _say_nothing)
    return tuple(folder / jar.file_name for jar in jars)


def resolve_with_spark(jars: Sequence[Jar], java: JavaHome, target: Path, without: Sequence[str] = ()) -> None:
    """Put the jars into `target` by Spark's package resolver, or TransientError with its last words.

    What they need in turn is left in `target`/ivy/jars, except what `without` names as group:artifact.
    """
    said = _resolve(jars, java, target, (), without)
    store = target / "machine.jks"
    if _DISTRUST in said and write_trust_store(store, os.environ):
        said = _resolve(jars, java, target, (f"-Djavax.net.ssl.trustStore={store}",), without)
    for jar in jars:
        fetched = target / "ivy" / "jars" / jar.file_name
        if not fetched.is_file():
            raise TransientError("Spark's resolver did not bring it", where=jar.coordinates, found=_causes(said))
        fetched.replace(target / jar.file_name)


def _resolve(jars: Sequence[Jar], java: JavaHome, target: Path, options: Sequence[str], without: Sequence[str]) -> str:
    """What the resolver said.

    `SparkSubmit` is asked to run a class that does not exist: it resolves the packages and stops there, so no
    Spark context starts and nothing listens on any port. Its exit code says nothing; the files do.
    """
    # It takes what a person's ~/.m2 has and fails where Maven left a pom without its jar, so it sees another home.
    command = [str(java.executable), "-Xmx256m", f"-Duser.home={target}", *options, "-cp", spark_classpath()]
    command += ["org.apache.spark.deploy.SparkSubmit", "--master", "local"]
    command += ["--conf", f"spark.jars.ivy={target / 'ivy'}", "--packages", ",".join(jar.coordinates for jar in jars)]
    command += ["--exclude-packages", ",".join(without)] if without else []
    command += ["--class", "lean_ops.OnlyResolve", "spark-internal"]
    return _run(command, {**os.environ, "JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1"})


def _complete(
    folder: Path,
    jars: Sequence[Jar],
    java: JavaHome,
    fetch: Callable[[Sequence[Jar], JavaHome, Path], None],
    notice: Callable[[str], None],
) -> None:
    """Mark what is there and genuine, fetch the rest."""
    wanted = []
    for jar in jars:
        if _is_genuine(folder / jar.file_name, jar):
            _mark(folder, jar)
        else:
            wanted.append(jar)
    if not wanted:
        return
    jars_in_words = "a jar" if len(wanted) == 1 else f"{len(wanted)} jars"
    notice(f"fetching {jars_in_words} for Spark, {sum(jar.size for jar in wanted) // 1_000_000} MB, only this once")
    with scratch(folder) as place:
        try:
            fetch(wanted, java, place)
        except (TransientError, OSError) as error:
            raise _not_fetched(folder, jars, error) from error
        for jar in wanted:
            _take(place / jar.file_name, folder, jar)


def _take(fetched: Path, folder: Path, jar: Jar) -> None:
    """Move a fetched jar into place if it is the pinned one."""
    if not _is_genuine(fetched, jar):
        raise TerminalError(
            "what was fetched is not the pinned file",
            where=jar.coordinates,
            found=f"{fetched.stat().st_size} bytes, sha256 {_sha256(fetched)}",
            expected=f"{jar.size} bytes, sha256 {jar.sha256}",
            remedy=f"Find out what changes downloads on this network, or put the right {jar.file_name} into {folder}.",
        )
    fetched.replace(folder / jar.file_name)
    _mark(folder, jar)


def _not_fetched(folder: Path, jars: Sequence[Jar], cause: Exception) -> TransientError:
    names = " and ".join(jar.file_name for jar in jars)
    return TransientError(
        "the Iceberg jars could not be fetched",
        where=str(folder),
        found=getattr(cause, "found", None) or str(cause),
        expected="access to Maven Central, once",
        remedy=f"Connect and start again, or put {names} into {folder}.",
    )


# What is kept beside each jar, so that a start need not read 60 MB to know that they are whole.


def _mark(folder: Path, jar: Jar) -> None:
    draft = folder / f".{jar.file_name}.{os.getpid()}"
    draft.write_text(_fingerprint(folder / jar.file_name, jar), encoding="ascii")
    draft.replace(_mark_of(folder, jar))


def _is_marked(folder: Path, jar: Jar) -> bool:
    """Whether the jar was hashed since it was last written."""
    try:
        return _mark_of(folder, jar).read_text(encoding="ascii") == _fingerprint(folder / jar.file_name, jar)
    except (OSError, UnicodeDecodeError):
        return False


def _mark_of(folder: Path, jar: Jar) -> Path:
    return folder / f"{jar.file_name}.verified"


def _fingerprint(file: Path, jar: Jar) -> str:
    facts = file.stat()
    return f"{jar.sha256} {facts.st_size} {facts.st_mtime_ns}"


def _is_genuine(file: Path, jar: Jar) -> bool:
    return file.is_file() and file.stat().st_size == jar.size and _sha256(file) == jar.sha256


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time that makes jars: the others wait, then find them in place."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise TerminalError(
            "the folder for the Iceberg jars can't be written",
            where=str(folder),
            found=str(error),
            remedy="Make it writable, or set `cache_dir` to a folder that is.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A folder for making jars, on their own disk; leftovers of processes that were killed go too."""
    for leftover in folder.glob(f"{_FETCH_PREFIX}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_FETCH_PREFIX, dir=folder, ignore_cleanup_errors=True) as place:
        yield Path(place)


def spark_classpath() -> str:
    """Spark's own jars, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise TerminalError("pyspark is not installed", remedy="Run `make setup`, or install lean-ops[spark].")
    return str(Path(spec.submodule_search_locations[0]) / "jars" / "*")


def _run(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """All that the command said, whatever its exit code."""
    return run_java(command, environ).stdout


def run_java(command: Sequence[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with all that it said; TransientError if it does not end."""
    try:
        return subprocess.run(  # noqa: S603  our Java with our arguments
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            env=dict(environ),
        )
    except subprocess.TimeoutExpired as error:
        raise TransientError(f"nothing came within {_PATIENCE_SECONDS // 60} minutes") from error


def _causes(said: str) -> str:
    """The resolver's own reasons; its report is pages long and names every place it tried."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and _SECOND_REPOSITORY not in line]
    telling = [line for line in lines if line.startswith(("Server access error", "Host ", "Caused by", "Exception"))]
    return (telling or lines or ["no word from it"])[0].partition(" url=")[0]


def _say_nothing(_: str) -> None:
    pass
