"""Java's classes as they are in memory, kept in a file: Spark then starts without reading and checking them again.

The file (class data sharing, JEP 350) belongs to one Java and one class path; any other has a file of its own. Java
looks at that itself, too, and starts without a file that does not fit. Nothing depends on it but the time of a start.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.lake.jars import alone, scratch, spark_classpath

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lean_ops.lake.java import JavaHome

_KEPT: Final = 3  # each has nearly 200 MB; another environment may still start with its own


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The file of one Java and one class path, whether it is there or not."""

    file: Path

    @classmethod
    def of(cls, cache_dir: Path, java: JavaHome, jars: Sequence[Path]) -> ClassArchive:
        """The file for Spark with these jars on its class path; only names, sizes and times are looked at."""
        digest = hashlib.sha256(f"{java.version} {java.home}".encode())
        for jar in (*jars, *sorted(Path(spark_classpath()).parent.glob("*.jar"))):
            facts = jar.stat()
            digest.update(f"\0{jar}\0{facts.st_size} {facts.st_mtime_ns}".encode())
        return cls(cache_dir / "classes" / f"{digest.hexdigest()[:16]}.jsa")

    @property
    def is_there(self) -> bool:
        """Whether a start can use it."""
        return self.file.is_file()

    @property
    def options(self) -> str:
        """What Java is told to use it; nothing if it is not there."""
        return f'-XX:SharedArchiveFile="{self.file}"' if self.is_there else ""

    def make(self, play: Callable[[str], None]) -> bool:
        """Write it unless it is there: `play` works in a Java with the option that it is given, and ends that Java.

        False if that Java wrote nothing: some come without the file of their own classes that this builds on.
        """
        with alone(self.file.parent):
            if self.is_there:
                return True
            with scratch(self.file.parent) as place:
                draft = place / self.file.name
                play(f'-XX:ArchiveClassesAtExit="{draft}"')
                if not draft.is_file():
                    return False
                draft.replace(self.file)
            for old in sorted(self.file.parent.glob("*.jsa"), key=lambda file: file.stat().st_mtime)[:-_KEPT]:
                old.unlink(missing_ok=True)
        return True
