"""Scenes for the meter, each to be measured in a process of its own: one that has no other children.

`python -m tests.unit.benchmarks.meter_scenes SCENE` plays one and prints what the meter saw.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from benchmarks.measure import Meter

BUSY = "import time; end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass"


def _python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def _told_to_work(meter: Meter, program: str, *, says_first: bool = False) -> None:
    """Measure a child from a line that it is told to one that it says; it may say one before, and is ended after."""
    child = subprocess.Popen(_python(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin and child.stdout  # noqa: PT018  both are pipes
    try:
        if says_first:
            child.stdout.readline()
        with meter:
            child.stdin.write("go\n")
            child.stdin.flush()
            child.stdout.readline()
    finally:
        child.kill()
        child.wait()


def child_that_has_ended(meter: Meter) -> None:
    """A child works and ends."""
    with meter:
        subprocess.run(_python(BUSY.format(seconds=0.3)), check=True)


def child_that_still_runs(meter: Meter) -> None:
    """A child has worked, says so, and goes on."""
    program = "input()\n" + BUSY.format(seconds=0.3) + "\nprint('worked', flush=True)\n" + BUSY.format(seconds=60)
    _told_to_work(meter, program)


def grandchild_whose_parent_ended_first(meter: Meter) -> None:
    """A child starts another one and does not wait for it; what both write to ends with the last of them."""
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BUSY.format(seconds=0.3)!r}])"
    with meter:
        subprocess.run(_python(program), check=True, stdout=subprocess.PIPE)


def worker_that_nobody_waits_for(meter: Meter) -> None:
    """A child whose own child has worked long before: that ends unseen, as Spark's Python workers do, then it works."""
    busy = BUSY.format(seconds=0.3)
    worker = f"{BUSY.format(seconds=1)}\nprint('worked', flush=True)\nimport sys; sys.stdin.read()"
    program = (
        "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"worker = subprocess.Popen([sys.executable, '-c', {worker!r}], stdin=subprocess.PIPE)\n"
        f"input(); worker.stdin.close(); worker.wait()\n{busy}\nprint('worked', flush=True); input()"
    )
    _told_to_work(meter, program, says_first=True)


def own_work(meter: Meter) -> None:
    """No child at all."""
    with meter:
        exec(BUSY.format(seconds=0.3))  # noqa: S102  the text above


def two_that_hold_memory(meter: Meter) -> None:
    """Two children hold 80 MB each at the same time."""
    hold = "import time; held = b'x' * (80 * 2**20); time.sleep(3)"
    with meter:
        for child in [subprocess.Popen(_python(hold)) for _ in range(2)]:
            child.wait()


def child_that_sleeps(meter: Meter) -> None:
    """A child does nothing."""
    with meter:
        subprocess.run(_python("import time; time.sleep(0.6)"), check=True)


if __name__ == "__main__":
    played = Meter(with_self=sys.argv[2] == "with")
    globals()[sys.argv[1]](played)
    print(json.dumps(asdict(played.usage)))
