"""What the Spark jobs need on AWS, in build/glue/VERSION: the wheel, our jar, their scripts and the list of packages.

`python scripts/build_glue.py` builds them, the same bytes from the same input; `make upload` brings the folder to the
bucket. The packages are those that are tested (lock/glue.txt, made again from lock/dev.txt by `--lock`); Spark itself
and Iceberg are Glue's own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
OUT: Final = ROOT / "build" / "glue"
SCRIPTS: Final = ROOT / "deploy" / "glue"
LOCK: Final = ROOT / "lock" / "glue.txt"
KERNEL: Final = "lean-ops-kernel.jar"
MODULES: Final = "modules.txt"
# 2020-01-01: what a wheel's files are dated, so that the same sources make the same wheel.
_EPOCH: Final = "1577836800"
# Glue 6.0 has Python 3.13 on Amazon Linux 2023, whose C library is 2.34.
_OF_GLUE: Final = "--python-version 3.13 --python-platform x86_64-manylinux_2_28"
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+(?:\[[a-z0-9,_-]+\])?==[^ ;\\]+)", re.MULTILINE)


class BuildError(Exception):
    """What went wrong, and what to do about it."""


def project() -> dict[str, Any]:
    """The project's own description."""
    described: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return described


def build(out: Path) -> Path:
    """The folder of this version, with everything in it."""
    folder = out / str(project()["version"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _wheel(folder)
    _kernel(folder / KERNEL)
    for script in sorted(SCRIPTS.glob("*.py")):
        shutil.copyfile(script, folder / script.name)
    (folder / MODULES).write_text(",".join(pins()) + "\n", encoding="utf-8")
    found = {file.name: _sha256(file) for file in sorted(folder.iterdir())}
    (folder / "manifest.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return folder


def pins() -> list[str]:
    """The packages beside ours, each with its version."""
    return _PIN.findall(LOCK.read_text(encoding="utf-8"))


def _wheel(folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    _run(command, {**os.environ, "SOURCE_DATE_EPOCH": _EPOCH})


def _kernel(file: Path) -> None:
    from lean_ops.lake.java import find_java
    from lean_ops.lake.kernel_jar import kernel_jar
    from lean_ops.settings import load_settings

    cache = load_settings({}, {}).settings.cache_dir
    shutil.copyfile(kernel_jar(cache, find_java(cache, os.environ), print), file)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def write_lock() -> None:
    """Make the lock again: what lock/dev.txt has, as far as the jobs need it."""
    dependencies, extras = project()["dependencies"], project()["optional-dependencies"]
    options = f"--generate-hashes --no-emit-index-url --no-annotate --quiet {_OF_GLUE}"
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", *options.split()]
    command += ["--constraint", str(ROOT / "lock" / "dev.txt"), "-", "--output-file", str(LOCK)]
    command += ["--custom-compile-command", "make glue GLUE_FLAGS=--lock"]
    _run(command, dict(os.environ), "\n".join([*dependencies, *extras["aws"]]))
    if "://" in LOCK.read_text(encoding="utf-8"):
        raise BuildError(f"an address got into {LOCK}")


def _run(command: Sequence[str], environ: dict[str, str], text: str | None = None) -> None:
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False, cwd=ROOT, env=environ)
    if done.returncode:
        raise BuildError(f"{' '.join(command[:3])} failed:\n{done.stderr.strip()}")


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when everything was built, 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="folder that gets a folder of this version")
    parser.add_argument("--lock", action="store_true", help="make the lock file again, and build nothing")
    given = parser.parse_args(arguments)
    try:
        if given.lock:
            write_lock()
            return 0
        folder = build(given.out)
    except BuildError as error:
        print(f"not built: {error}", file=sys.stderr)
        return 1
    for file in sorted(folder.iterdir()):
        print(f"{file.stat().st_size:>10}  {file.relative_to(given.out.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
