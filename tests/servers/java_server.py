"""Java as servers for tests want it: quick to start, small, and on IPv4 loopback."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.quick_java import QUICK_JAVA
from tests.servers.jars import JarSupply
from tests.servers.process import ServerProcess, start
from tests.servers.supply import find

from lean_ops.lake.java import find_java

_OPTIONS: Final = (
    *QUICK_JAVA.split(),
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
)


def start_java(supply: JarSupply, main: str, options: Sequence[str], folder: Path, cache: Path) -> ServerProcess:
    """A server's main class in a process of its own; TerminalError if its jars or Java are missing."""
    jars = find(supply, cache)
    java = find_java(cache, os.environ)
    command = [str(java.executable), *_OPTIONS, f"-Djava.io.tmpdir={folder}", *options]
    return start(supply.name, [*command, "-cp", supply.class_path(jars), main], folder)
