"""A server as a process: started under a guard, ready when it says so, and gone with us for certain."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lean_ops.model.errors import TransientError

HOST: Final = "127.0.0.1"
_GUARD: Final = Path(__file__).with_name("guard.py")
# Seconds are enough on an idle machine; this is for one that is busy with something else.
_PATIENCE_SECONDS: Final = 240.0
_LOOK_AGAIN_SECONDS: Final = 0.05
_LAST_CHARACTERS: Final = 3000
# What a shell may have set for real clouds is none of a test server's business.
_KEPT_FROM_SERVERS: Final = ("AWS_", "GOOGLE_", "PUBSUB_", "MOTO_", "WEED_")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running server: its guard, and what it has said so far in `log`."""

    name: str
    guard: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """All that it has written."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> str:
        """The end of it, for an error message."""
        return self.said()[-_LAST_CHARACTERS:].strip() or "no word from it"

    def stop(self) -> None:
        """Gone when this returns; a second call does nothing."""
        self.guard.terminate()  # closing the pipe would not do: a fork of this process may hold it open still
        self.guard.wait(timeout=30)
        if self.guard.stdin is not None:
            self.guard.stdin.close()

    def wait_for(self, ready: Callable[[], bool], seconds: float = _PATIENCE_SECONDS) -> None:
        """Return when it is ready; if it ends or takes too long, it is stopped: TransientError with its last words."""
        deadline = time.monotonic() + seconds
        while not ready():
            ended = self.guard.poll() is not None
            if ended or time.monotonic() > deadline:
                self.stop()
                raise TransientError(
                    f"{self.name} {'ended' if ended else f'was not ready within {seconds:.0f} seconds'}",
                    where=str(self.log),
                    found=self.last_words(),
                )
            time.sleep(_LOOK_AGAIN_SECONDS)

    def wait_for_words(self, words: str) -> re.Match[str]:
        """What the pattern found in its log."""
        found: list[re.Match[str]] = []

        def is_said() -> bool:
            found.extend(re.finditer(words, self.said()))
            return bool(found)

        self.wait_for(is_said)
        return found[0]


def start(
    name: str,
    command: Sequence[str],
    folder: Path,
    environ: Mapping[str, str] | None = None,
    leftovers: Sequence[str] = (),
) -> ServerProcess:
    """Start a server in a folder of its own; it ends when `stop` is called or this process ends, however that is.

    `leftovers` are files elsewhere, which go with it.
    """
    log = folder / f"{name}.log"
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_KEPT_FROM_SERVERS)}
    with log.open("wb") as out:
        guard = subprocess.Popen(
            [sys.executable, "-I", str(_GUARD), *leftovers, "--", *command],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**kept, **(environ or {})},
            start_new_session=True,  # Ctrl-C is for pytest, which then stops it in good order
        )
    return ServerProcess(name, guard, log)
