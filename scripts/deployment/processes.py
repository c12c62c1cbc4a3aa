"""Other programs, started without a shell and ended in time."""

from __future__ import annotations

import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Final

from .finding import DeployError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS_TO_END: Final = 120


def found(program: str) -> str | None:
    """Where a program is; None if it is not on PATH."""
    return shutil.which(program)


def said(command: Sequence[str], environ: Mapping[str, str], seconds: float, text: str | None = None) -> str:
    """What a program prints; DeployError with its last words if it fails or takes too long."""
    try:
        done = subprocess.run(
            command, input=text, env=dict(environ), text=True, capture_output=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise DeployError(f"{_called(command)} took longer than {seconds:.0f} s") from error
    if done.returncode:
        raise DeployError(f"{_called(command)} failed:\n{_last_words(done.stderr or done.stdout)}")
    return done.stdout


def run(command: Sequence[str], environ: Mapping[str, str], seconds: float) -> None:
    """Let a program speak for itself; DeployError if it fails or takes too long."""
    process = subprocess.Popen(command, env=dict(environ))
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired as error:
        # As Ctrl-C does: Terraform then writes its state down and gives its lock back.
        process.send_signal(signal.SIGINT)
        _let_end(process)
        raise DeployError(f"{_called(command)} was ended, because it took longer than {seconds:.0f} s") from error
    except KeyboardInterrupt as error:
        # Ctrl-C has reached the program, too; a second one would make Terraform leave its lock behind.
        _let_end(process)
        raise DeployError(f"{_called(command)} was ended by Ctrl-C") from error
    if code:
        raise DeployError(f"{_called(command)} failed with {code}, as it says above")


def _let_end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _called(command: Sequence[str]) -> str:
    words = [word for word in command[1:] if not word.startswith("-")]
    return " ".join([command[0].rpartition("/")[2], *words[:2]])


def _last_words(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-20:])
