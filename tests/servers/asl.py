"""The checker of state machines' definitions (asl-validator): no server, but fetched and kept like one."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers.jars import ROOT
from tests.servers.supply import carried_out, contents, find

from lean_ops.model.errors import TerminalError

_SOURCES: Final = ROOT / "lock" / "asl"
_FILES: Final = ("package.json", "package-lock.json")
_PROGRAM: Final = Path("node_modules", ".bin", "asl-validator")
_PATIENCE_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class AslSupply:
    """The packages that lock/asl pins by their hashes."""

    name: str = "asl"

    def made_of(self) -> str:
        """The lock."""
        return contents(_SOURCES / file for file in _FILES)

    def is_whole(self, folder: Path) -> bool:
        """Whether the program is there; npm brings all packages or fails."""
        return (folder / _PROGRAM).is_file()

    def make(self, folder: Path, place: Path, cache_dir: Path) -> None:  # noqa: ARG002  others need it
        """Have npm fetch exactly what the lock names."""
        npm = _found("npm")
        for file in _FILES:
            shutil.copy(_SOURCES / file, folder / file)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--cache", str(place / "npm")]
        remedy = "Connect to npm's registry, this once, and run `make servers` again."
        carried_out(command, "asl-validator can't be fetched", remedy, _PATIENCE_SECONDS, folder)


SUPPLY: Final = AslSupply()


def complaints(definition: Path, cache: Path) -> str:
    """What asl-validator says against a definition; nothing if it is valid. TerminalError if it can't be asked."""
    program = find(SUPPLY, cache) / _PROGRAM
    command = [_found("node"), str(program), "--json-path", str(definition)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE_SECONDS)
    said = f"{done.stdout}\n{done.stderr}".strip()
    return "" if done.returncode == 0 else said or f"exit code {done.returncode}"


def _found(program: str) -> str:
    found = shutil.which(program, path=os.environ.get("PATH", ""))
    if found is None:
        raise TerminalError(
            f"there is no {program} on PATH",
            expected="Node.js 18 or newer, with npm",
            remedy="Install Node.js, then run `make servers`.",
        )
    return found
