"""Zips of the Lambda functions: locked packages and our code, the same bytes from the same input.

`python scripts/build_lambdas.py [NAME…]` builds into build/lambdas and prints what each weighs. Functions that are
images are built by deploy/lambdas/Dockerfile. `--lock` makes lock/lambda-*.txt again from lock/dev.txt.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src"
FUNCTIONS: Final = ROOT / "deploy" / "lambdas" / "functions.toml"
OUT: Final = ROOT / "build" / "lambdas"
PYTHON_VERSION: Final = "3.13"
# Lambda's Python 3.13 runs on Amazon Linux 2023, whose C library is 2.34.
PLATFORMS: Final = {"x86_64": "x86_64-manylinux_2_28", "arm64": "aarch64-manylinux_2_28"}
MOST_BYTES: Final = 50_000_000
NEVER_INSIDE: Final = frozenset({"pyspark", "py4j", "pandas", "duckdb", "pyarrow", "pyiceberg"})
_OLDEST_TIME: Final = (1980, 1, 1, 0, 0, 0)  # what a zip can say at the earliest
_FILE_MODE: Final = 0o100644 << 16
_UNIX: Final = 3
# What an installer writes about itself, and what would differ from machine to machine.
_LEFT_OUT_NAMES: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", ".lock", "uv_cache.json"})
_LEFT_OUT_FOLDERS: Final = frozenset({"__pycache__", "bin"})


class BuildError(Exception):
    """What went wrong, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its name, its form (zip or image) and its set of packages."""

    name: str
    form: str
    packages: str

    @property
    def handler(self) -> str:
        """Where its entry is."""
        return f"lean_ops.entrypoints.lambdas.{self.name}.handler"


@dataclass(frozen=True, slots=True)
class Built:
    """A zip that was built."""

    name: str
    file: str
    sha256: str
    bytes: int
    unpacked_bytes: int


def functions() -> dict[str, Function]:
    """All functions, by name."""
    return {name: Function(name, **values) for name, values in _data()["functions"].items()}


def package_sets() -> dict[str, list[str]]:
    """The packages that sets of functions carry, by the set's name."""
    sets: dict[str, list[str]] = _data()["packages"]
    return sets


def aws_services() -> list[str]:
    """The services of AWS that the zips can talk to."""
    services: list[str] = _data()["aws"]["services"]
    return services


def _data() -> dict[str, Any]:
    return tomllib.loads(FUNCTIONS.read_text(encoding="utf-8"))


def lock_file(packages: str) -> Path:
    """The versions and hashes of a set."""
    return ROOT / "lock" / f"lambda-{packages}.txt"


# the lock


def write_locks() -> None:
    """Make the lock files again: what lock/dev.txt has, as far as the sets need it."""
    for packages, names in package_sets().items():
        options = "--universal --generate-hashes --no-emit-index-url --no-annotate --quiet --python-version 3.11"
        command = [_uv(), "pip", "compile", *options.split(), "--constraint", str(ROOT / "lock" / "dev.txt"), "-"]
        told = ["--custom-compile-command", "make lambdas LAMBDA_FLAGS=--lock"]
        _run([*command, *told, "--output-file", str(lock_file(packages))], "\n".join(names))
        if "://" in lock_file(packages).read_text(encoding="utf-8"):
            raise BuildError(f"an address got into {lock_file(packages)}")


# the zips


def build(function: Function, out: Path, architecture: str) -> Built:
    """One function's zip."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{function.name}.zip"
    with tempfile.TemporaryDirectory(dir=out) as folder:
        _install(function, Path(folder), architecture)
        entries = dict(sorted({**dict(_package_entries(Path(folder))), **dict(_own_entries())}.items()))
        _refuse_unwanted(function, entries)
        _write_zip(file, entries)
    built = _weighed(function.name, file)
    if built.bytes > MOST_BYTES:
        raise BuildError(f"{function.name}: {built.bytes} bytes, but a zip has at most {MOST_BYTES}; make it an image")
    return built


def _weighed(name: str, file: Path) -> Built:
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Built(name, file.name, digest, file.stat().st_size, unpacked)


def _install(function: Function, folder: Path, architecture: str) -> None:
    """Exactly the locked wheels, for Lambda's platform and not for this machine's."""
    options = "--quiet --require-hashes --no-deps --only-binary :all: --link-mode copy"
    platform = ["--python-version", PYTHON_VERSION, "--python-platform", PLATFORMS[architecture]]
    requirements = ["--requirement", str(lock_file(function.packages))]
    _run([_uv(), "pip", "install", *options.split(), *platform, "--target", str(folder), *requirements])


def _package_entries(folder: Path) -> Iterator[tuple[str, Path]]:
    kept = frozenset(aws_services())
    for file in folder.rglob("*"):
        name = file.relative_to(folder)
        if file.is_file() and _is_wanted(name, kept):
            yield name.as_posix(), file


def _is_wanted(name: Path, services: frozenset[str]) -> bool:
    *folders, file = name.parts
    if file in _LEFT_OUT_NAMES or name.suffix == ".pyc" or not _LEFT_OUT_FOLDERS.isdisjoint(folders):
        return False
    return folders[:2] != ["botocore", "data"] or len(folders) == 2 or folders[2] in services


def _own_entries() -> Iterator[tuple[str, Path]]:
    for file in (SOURCE / "lean_ops").rglob("*.py"):
        yield file.relative_to(SOURCE).as_posix(), file


def _refuse_unwanted(function: Function, entries: dict[str, Path]) -> None:
    found = NEVER_INSIDE & {name.partition("/")[0] for name in entries}
    if found:
        raise BuildError(f"{function.name}: {', '.join(sorted(found))} must not be in a zip")


def _write_zip(file: Path, entries: dict[str, Path]) -> None:
    """Sorted names, one time, one mode: nothing of the machine or the moment gets in."""
    part = file.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, source in entries.items():
            entry = zipfile.ZipInfo(name, _OLDEST_TIME)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, _FILE_MODE, _UNIX
            archive.writestr(entry, source.read_bytes())
    part.replace(file)


# around it


def _uv() -> str:
    uv = Path(sys.executable).with_name("uv")
    if not uv.is_file():
        raise BuildError(f"there is no {uv}; `make setup` installs it")
    return str(uv)


def _run(command: Sequence[str], text: str | None = None) -> None:
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        raise BuildError(f"{' '.join(command[:3])} failed:\n{done.stderr.strip()}")


def table(built: Sequence[Built]) -> str:
    """What was built, as docs/lambdas.md has it."""
    lines = ["| function | zip | unpacked | of the 50 MB |", "|---|---|---|---|"]
    for each in built:
        share = f"{100 * each.bytes / MOST_BYTES:.0f} %"
        lines.append(f"| `{each.name}` | {_mb(each.bytes)} | {_mb(each.unpacked_bytes)} | {share} |")
    return "\n".join(lines)


def _mb(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when everything was built, 1 with the reason on stderr."""
    zips = [function for function in functions().values() if function.form == "zip"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(one.name for one in zips)}; else all")
    parser.add_argument("--architecture", choices=sorted(PLATFORMS), default="x86_64")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the zips")
    parser.add_argument("--lock", action="store_true", help="make the lock files again, and build nothing")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - {function.name for function in zips})
    if unknown:
        parser.error(f"no such zip: {', '.join(unknown)}")
    try:
        if given.lock:
            write_locks()
            return 0
        built = [build(one, given.out, given.architecture) for one in zips if one.name in (given.names or [one.name])]
    except BuildError as error:
        print(f"not built: {error}", file=sys.stderr)
        return 1
    (given.out / "manifest.json").write_text(json.dumps([asdict(each) for each in built], indent=2) + "\n")
    print(table(built))
    return 0


if __name__ == "__main__":
    sys.exit(main())
