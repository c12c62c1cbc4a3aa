"""What the meter sees of children that work, hold memory, end, or lose their parent."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.measure import Meter, Process, _parse, cpu_seconds

BUSY = "import time; end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass"


def measured(program: str) -> Meter:
    with Meter(with_self=False) as meter:
        subprocess.run([sys.executable, "-c", program], check=True)
    return meter


def test_a_child_that_has_ended_is_counted() -> None:
    assert 0.28 <= measured(BUSY.format(seconds=0.3)).usage.cpu_seconds < 5


def test_a_child_that_still_runs_is_counted() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()\n" + BUSY.format(seconds=60)], stdin=-1
    )
    try:
        with Meter(with_self=False) as meter:
            child.stdin.close()
            time.sleep(0.6)
        assert meter.usage.cpu_seconds > 0.1
    finally:
        child.kill()
        child.wait()


def test_a_grandchild_whose_parent_ended_first_is_counted() -> None:
    busy = BUSY.format(seconds=0.3)
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {busy!r}])"
    with Meter(with_self=False) as meter:
        subprocess.run([sys.executable, "-c", program], check=True)
        time.sleep(1)
    assert meter.usage.cpu_seconds >= 0.28


def test_own_work_counts_only_when_asked_for() -> None:
    with Meter(with_self=True) as with_own:
        exec(BUSY.format(seconds=0.3))  # noqa: S102  the text above
    with Meter(with_self=False) as without:
        exec(BUSY.format(seconds=0.3))  # noqa: S102  the text above
    assert with_own.usage.cpu_seconds >= 0.28
    assert without.usage.cpu_seconds < 0.28


def test_the_peak_is_that_of_the_children_together() -> None:
    hold = "import time; held = b'x' * (80 * 2**20); time.sleep(0.8)"
    with Meter(with_self=False) as meter:
        children = [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(2)]
        for child in children:
            child.wait()
    assert 160 * 2**20 < meter.usage.peak_bytes < 400 * 2**20


def test_the_commands_of_the_tree_are_named() -> None:
    usage = measured("import time; time.sleep(0.6)").usage
    assert any(command.startswith("python") for command in usage.commands)
    assert not usage.started_java


def test_a_command_with_spaces_and_parentheses_is_read() -> None:
    numbers = "S 7 " + " ".join(["0"] * 9) + " 150 50 300 100 20 0 1 0 0 0 3 0"
    process = _parse(f"42 (a (b) c) {numbers}")
    assert (process.pid, process.parent, process.command) == (42, 7, "a (b) c")
    assert (process.own, process.waited) == (2.0, 4.0)


def test_times_of_ended_children_count_for_every_parent() -> None:
    tree = [Process(1, 0, "root", 5.0, 1.0, 0), Process(2, 1, "child", 2.0, 3.0, 0)]
    assert cpu_seconds(tree, with_root=True) == 11.0
    assert cpu_seconds(tree, with_root=False) == 6.0
