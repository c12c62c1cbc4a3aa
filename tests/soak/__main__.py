"""`python -m tests.soak`: kills at random moments over hundreds of short runs, and comparisons with the oracle.

Exit code 1 if anything differs, hangs, shows a traceback or stays behind; then the home is kept, and the same seed
makes the same sequence of decisions again.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.soak.processes import SoakError
from tests.soak.report import document_of, write_report
from tests.soak.stage import Soak


def main() -> int:
    """Soak, report, and tell."""
    given = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that nothing is left running
    home = given.home or given.report / "home"
    if home.exists():
        raise SystemExit(f"{home} exists already: a soak needs a home of its own")
    document = soaked(given.seed, home, given.report, given.seconds, given.rounds)
    if document["passed"] and given.home is None:
        shutil.rmtree(home)
    return 0 if document["passed"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, required=True, help="no round begins after this time")
    parser.add_argument("--rounds", type=int, help="at the most")
    parser.add_argument("--seed", type=int, default=1, help="decides everything but the machine's own speed")
    parser.add_argument("--report", type=Path, required=True, help="folder of report.json and report.md")
    parser.add_argument("--home", type=Path, help="a folder that does not exist yet; kept in any case")
    return parser


def soaked(
    seed: int, home: Path, folder: Path, seconds: float, rounds: int | None = None, least_killed: int = 0
) -> dict[str, Any]:
    """A whole soak; its report, which is also written."""
    folder.mkdir(parents=True, exist_ok=True)
    soak, began = Soak(seed, home.absolute(), folder.absolute()), time.monotonic()
    try:
        soak.play(seconds, rounds, least_killed)
    except SoakError as error:
        place = f"seed {seed}, round {soak.tally.rounds}, home kept in {home}"
        soak.tally.failures.append(f"{place}\n{error}")
    finally:
        soak.close()
    command = [Path(sys.executable).name, "-m", "tests.soak", *sys.argv[1:]]
    document = document_of(soak, command, time.monotonic() - began)
    sys.stdout.write(write_report(folder, document))
    return document


if __name__ == "__main__":
    sys.exit(main())
