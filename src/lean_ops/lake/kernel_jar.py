"""Our own Java as a jar: compiled from the package's sources once, kept under the name of what it was made from."""

from __future__ import annotations

import hashlib
import os
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.lake.jars import (
    COMPILER,
    JARS,
    Jar,
    alone,
    jar_files,
    jars_dir,
    missing_jars,
    run_java,
    scratch,
    spark_classpath,
)
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lean_ops.lake.java import JavaHome

FUNCTIONS_CATALOG: Final = "lean_ops_functions"
FUNCTIONS_CLASS: Final = "leanops.Functions"
EXTENSIONS_CLASS: Final = "leanops.plan.Extensions"
FILE_IO_CLASS: Final = "leanops.files.LocalFileIO"
FILE_SYSTEM_CLASS: Final = "leanops.files.LocalFiles"
KERNEL_NAME: Final = "lean-ops-kernel"
_SOURCES: Final = Path(__file__).parent.parent / "java"
_RELEASE: Final = "17"
_MADE: Final = (1980, 1, 1, 0, 0, 0)  # the same sources make the same jar, byte for byte
_KEPT: Final = 3


def spark_jars(
    cache_dir: Path,
    java: JavaHome,
    notice: Callable[[str], None],
    sources: Path = _SOURCES,
) -> tuple[Path, ...]:
    """What Spark's class path needs beyond Spark: Iceberg's jars and ours. The first call fetches, compiles."""
    ours = kernel_jar(cache_dir, java, notice, sources)
    return (*jar_files(cache_dir, java, notice=notice, jars=JARS), ours)


def kernel_jar(cache_dir: Path, java: JavaHome, notice: Callable[[str], None], sources: Path = _SOURCES) -> Path:
    """Our own jar; the first call fetches what it needs and compiles."""
    ours = _jar_of(cache_dir, sources)
    if not ours.is_file():
        *fetched, compiler = jar_files(cache_dir, java, notice=notice, jars=(*JARS, COMPILER))
        with alone(jars_dir(cache_dir)):
            if not ours.is_file():
                _make(ours, java, compiler, fetched, sources)
    return ours


def jars_to_fetch(cache_dir: Path) -> tuple[Jar, ...]:
    """The jars that the next Spark start would have to fetch. Writes nothing."""
    compiled = _jar_of(cache_dir, _SOURCES).is_file()
    return missing_jars(cache_dir, JARS if compiled else (*JARS, COMPILER))


def _jar_of(cache_dir: Path, sources: Path) -> Path:
    """Where the jar of these sources, for this Spark and Iceberg and by this compiler, is or will be."""
    made_with = (version("pyspark"), COMPILER.coordinates, _RELEASE, *(jar.coordinates for jar in JARS))
    digest = hashlib.sha256(" ".join(made_with).encode())
    for file in _java_files(sources):
        digest.update(f"\0{file.relative_to(sources).as_posix()}\0".encode() + file.read_bytes())
    return jars_dir(cache_dir) / f"{KERNEL_NAME}-{digest.hexdigest()[:16]}.jar"


def _java_files(sources: Path) -> list[Path]:
    return sorted(sources.rglob("*.java"))


def _make(jar: Path, java: JavaHome, compiler: Path, beside: Sequence[Path], sources: Path) -> None:
    with scratch(jar.parent) as place:
        _compile(java, compiler, beside, sources, place / "classes")
        _pack(place / "classes", place / jar.name)
        _forget_old(jar.parent)
        (place / jar.name).replace(jar)


def _compile(java: JavaHome, compiler: Path, beside: Sequence[Path], sources: Path, target: Path) -> None:
    """Class files from sources that know Spark and the jars beside it; TerminalError with the compiler's words."""
    command = [str(java.executable), "-Xmx256m", "-jar", str(compiler), "-source", _RELEASE, "-target", _RELEASE]
    command += ["-proc:none", "-nowarn", "-g", "-encoding", "UTF-8", "-cp", _class_path(beside), "-d", str(target)]
    done = run_java([*command, *map(str, _java_files(sources))], os.environ)
    if done.returncode != 0:
        raise TerminalError(
            "the Java sources of lean-ops could not be compiled",
            where=str(sources),
            found=done.stdout.strip()[:2000],
            expected=f"pyspark {version('pyspark')} as it was installed, and {COMPILER.coordinates}",
            remedy="Run `make setup` again; it puts the locked packages in place.",
        )


def _class_path(beside: Sequence[Path]) -> str:
    """Spark's jars one by one, for the compiler knows no `*`, and those beside it."""
    return ":".join(map(str, (*sorted(Path(spark_classpath()).parent.glob("*.jar")), *beside)))


def _pack(classes: Path, jar: Path) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.writestr(zipfile.ZipInfo(file.relative_to(classes).as_posix(), _MADE), file.read_bytes())


def _forget_old(folder: Path) -> None:
    """Jars of sources that are long gone; the newest few stay, because another version may still run on them."""
    made = sorted(folder.glob(f"{KERNEL_NAME}-*.jar"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in made[_KEPT:]:
        old.unlink(missing_ok=True)
