"""Runs a command for as long as the process that asked for it lives: `python -I guard.py [LEFTOVER …] -- COMMAND …`.

The asker keeps the other end of our standard input open. When it ends, in whatever way, the system closes that end,
and the command is killed. Nothing of the asker's doing is needed, so its SIGKILL leaves nothing behind either.
Leftovers are files that a killed command can't remove itself.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

LOOK_AGAIN_SECONDS = 0.2
PR_SET_PDEATHSIG = 1


def main(leftovers: list[str], command: list[str]) -> int:
    """The command's exit code, or 0 when it was ended with the asker."""
    asker = os.getppid()
    signal.signal(signal.SIGTERM, _leave)
    before = _end_with(os.getpid())
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=before)  # noqa: PLW1509  one thread only
    try:
        while child.poll() is None:
            # A fork of the asker may hold the pipe open after it; then its number as our parent changes.
            if _is_closed(sys.stdin.fileno(), LOOK_AGAIN_SECONDS) or os.getppid() != asker:
                return 0
        return child.returncode
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child.kill()
        child.wait()
        for leftover in leftovers:
            Path(leftover).unlink(missing_ok=True)


def _is_closed(pipe: int, seconds: float) -> bool:
    readable, _, _ = select.select([pipe], [], [], seconds)
    return bool(readable) and not os.read(pipe, 4096)


def _leave(_signal: int, _frame: object) -> None:
    sys.exit(0)


def _end_with(guard: int) -> Callable[[], None] | None:
    """For the child before it starts the command: be killed when the guard is, where the system can do that.

    Only Linux can. Elsewhere a command outlives a guard that is itself killed with SIGKILL, which nobody but a
    person or a system out of memory does.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guard:  # it ended before we asked
            os.kill(os.getpid(), signal.SIGKILL)

    return ask


if __name__ == "__main__":
    end = sys.argv.index("--")
    sys.exit(main(sys.argv[1:end], sys.argv[end + 1 :]))
