"""The judge of infra/'s policies (checkov): no server, but fetched and kept like one, apart from our own packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.servers.jars import ROOT
from tests.servers.supply import carried_out, contents, find

from lean_ops.model.errors import TerminalError

INFRA: Final = ROOT / "infra"
_LOCK: Final = ROOT / "lock" / "checkov.txt"
_PYTHON: Final = Path("bin", "python")
_PROGRAM: Final = "site-packages/checkov/main.py"
_PATIENCE_SECONDS: Final = 900
# What can be judged from files alone; the rest of checkov asks a service, or is about things that infra/ has not.
_FRAMEWORKS: Final = ("terraform", "secrets")
_SKIP: Final = re.compile(r"checkov:skip=(?P<rule>\w+)(?::[ \t]*(?P<reason>[^\n]*))?")
_LEAST_WORDS: Final = 4


@dataclass(frozen=True, slots=True)
class CheckovSupply:
    """An environment with the packages that lock/checkov.txt pins: they clash with ours and are as many."""

    name: str = "checkov"

    def made_of(self) -> str:
        """The lock, and for which Python and machine."""
        version = ".".join(map(str, sys.version_info[:2]))
        return f"{contents([_LOCK])} {version} {sys.platform} {os.uname().machine}"

    def is_whole(self, folder: Path) -> bool:
        """Whether the program is there, with a Python that was not taken away since."""
        return (folder / _PYTHON).exists() and any(folder.glob(f"lib/python3*/{_PROGRAM}"))

    def make(self, folder: Path, place: Path, cache_dir: Path) -> None:  # noqa: ARG002  others need it
        """Exactly what the lock names, by our own pip. It is moved afterwards: only its Python is used, no script."""
        _fetch([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)])
        install = [sys.executable, "-m", "pip", "--python", str(folder / _PYTHON), "install", "--quiet"]
        _fetch([*install, "--require-hashes", "--only-binary", ":all:", "--requirement", str(_LOCK)])


SUPPLY: Final = CheckovSupply()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What checkov says of a folder: how many rules passed and were skipped, and all that is against it."""

    passed: int
    skipped: int
    complaints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Skip:
    """A comment that turns a rule off for the thing that it stands in."""

    file: str
    line: int
    rule: str
    reason: str


def judged(folder: Path, cache: Path) -> Verdict:
    """Checkov's word on a folder of Terraform, and ours on what it was told to skip. It talks to nobody."""
    reports = _reports(folder, find(SUPPLY, cache) / _PYTHON)
    complaints = [complaint for report in reports for complaint in _complaints(report)]
    skipped = [(each["file_path"], each["check_id"]) for report in reports for each in _of(report, "skipped_checks")]
    passed = sum(len(_of(report, "passed_checks")) for report in reports)
    if not passed:
        complaints.append(f"{folder}: no rule passed, so nothing was looked at")
    complaints += _complaints_about_skips(list(_skips(folder)), set(skipped))
    return Verdict(passed, len(skipped), tuple(complaints))


def _reports(folder: Path, python: Path) -> list[dict[str, Any]]:
    command = [str(python), "-I", "-m", "checkov.main", "--directory", str(folder.resolve()), "--skip-download"]
    command += ["--framework", *_FRAMEWORKS, "--compact", "--output", "json"]
    with tempfile.TemporaryDirectory() as place:  # a home of its own: files of settings there could turn rules off
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": place, "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, cwd=place, env=environ
        )
    try:
        reports = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        words = (done.stderr or done.stdout).strip()[-2000:]
        raise TerminalError("checkov said nothing that could be read", where=str(folder), found=words) from error
    # A folder without Terraform gives one short report without results.
    return [report for report in (reports if isinstance(reports, list) else [reports]) if "results" in report]


def _complaints(report: dict[str, Any]) -> Iterator[str]:
    for each in _of(report, "failed_checks"):
        first, last = each["file_line_range"]
        yield f"{_place(each['file_path'])}:{first}-{last} {each['resource']}: {each['check_id']} {each['check_name']}"
    yield from (f"{file}: checkov can't read it" for file in _of(report, "parsing_errors"))


def _of(report: dict[str, Any], kind: str) -> list[Any]:
    found: list[Any] = report["results"].get(kind, [])
    return found


# Rules that are skipped


def _skips(folder: Path) -> Iterator[_Skip]:
    """Every skip that is written in the folder; what Terraform itself put there is not looked at by checkov either."""
    for file in sorted(folder.rglob("*.tf")):
        if ".terraform" in file.relative_to(folder).parts:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            for found in _SKIP.finditer(line):
                place = f"/{file.relative_to(folder).as_posix()}"
                yield _Skip(place, number, found["rule"], (found["reason"] or "").strip())


def _complaints_about_skips(skips: list[_Skip], used: set[tuple[str, str]]) -> Iterator[str]:
    for skip in skips:
        place = f"{_place(skip.file)}:{skip.line}"
        if len(skip.reason.split()) < _LEAST_WORDS:
            yield f"{place}: {skip.rule} is skipped without a reason; write checkov:skip={skip.rule}:why, in a sentence"
        if (skip.file, skip.rule) not in used:
            yield f"{place}: {skip.rule} is skipped, but checkov has nothing to skip there; take the comment out"


def _place(path: str) -> str:
    return path.lstrip("/")


def _fetch(command: list[str]) -> None:
    remedy = "Connect to a package index, this once, and run `make servers` again."
    carried_out(command, "checkov can't be fetched", remedy, _PATIENCE_SECONDS)
