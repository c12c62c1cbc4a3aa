"""What the meter sees of children that work, hold memory, end, or lose their parent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Meter, Process, Usage, _parse, cpu_seconds
from tests.unit.benchmarks import meter_scenes

ROOT = Path(__file__).parents[3]


def measured(scene: Callable[[Meter], None], *, with_self: bool = False) -> Usage:
    """What the meter saw of a scene, in a process that has no other children."""
    command = [sys.executable, "-m", "tests.unit.benchmarks.meter_scenes", scene.__name__]
    done = subprocess.run(
        [*command, "with" if with_self else "without"], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    told = json.loads(done.stdout)
    return Usage(**{**told, "commands": tuple(told["commands"])})


def test_a_child_that_has_ended_is_counted() -> None:
    assert 0.28 <= measured(meter_scenes.child_that_has_ended).cpu_seconds < 5


def test_a_child_that_still_runs_is_counted() -> None:
    assert measured(meter_scenes.child_that_still_runs).cpu_seconds >= 0.28


def test_a_grandchild_whose_parent_ended_first_is_counted() -> None:
    assert measured(meter_scenes.grandchild_whose_parent_ended_first).cpu_seconds >= 0.28


def test_own_work_counts_only_when_asked_for() -> None:
    assert measured(meter_scenes.own_work, with_self=True).cpu_seconds >= 0.28
    assert measured(meter_scenes.own_work).cpu_seconds < 0.28


def test_the_peak_is_that_of_the_children_together() -> None:
    assert 160 * 2**20 < measured(meter_scenes.two_that_hold_memory).peak_bytes < 400 * 2**20


def test_the_commands_of_the_tree_are_named() -> None:
    usage = measured(meter_scenes.child_that_sleeps)
    assert any(command.startswith("python") for command in usage.commands)
    assert not usage.started_java


def test_a_command_with_spaces_and_parentheses_is_read() -> None:
    numbers = "S 7 " + " ".join(["0"] * 9) + " 150 50 300 100 20 0 1 0 0 0 3 0"
    process = _parse(f"42 (a (b) c) {numbers}")
    assert (process.pid, process.parent, process.command) == (42, 7, "a (b) c")
    assert (process.own, process.waited) == (2.0, 4.0)


def process(pid: int, parent: int, own: float, waited: float = 0.0) -> Process:
    return Process(pid, parent, "x", own, waited, 0)


ROOT_BEFORE = process(1, 0, 5.0, 1.0)


def test_what_was_used_before_does_not_count_and_what_a_child_used_that_came_and_went_does() -> None:
    before = [ROOT_BEFORE, process(2, 1, 2.0, 3.0)]
    after = [process(1, 0, 6.0, 1.0), process(2, 1, 2.5, 7.0), process(3, 2, 0.25, 0.5)]
    assert cpu_seconds(before, after, with_root=True) == 1.0 + 0.5 + 4.0 + 0.75
    assert cpu_seconds(before, after, with_root=False) == 0.5 + 4.0 + 0.75


def test_one_that_ended_and_was_waited_for_counts_with_what_it_used_since() -> None:
    before = [ROOT_BEFORE, process(2, 1, 2.0, 0.5)]
    assert cpu_seconds(before, [process(1, 0, 5.0, 1.0 + 6.0)], with_root=True) == 6.0 - 2.5


def test_one_that_ended_and_nobody_waited_for_takes_nothing_away() -> None:
    before = [ROOT_BEFORE, process(2, 1, 1.0), process(3, 2, 100.0)]
    after = [process(1, 0, 5.0, 1.0), process(2, 1, 4.0)]
    assert cpu_seconds(before, after, with_root=False) == 3.0


def test_of_two_generations_that_ended_the_times_come_to_the_one_that_is_left() -> None:
    before = [ROOT_BEFORE, process(2, 1, 1.0), process(3, 2, 2.0)]
    assert cpu_seconds(before, [process(1, 0, 5.0, 1.0 + 3.5)], with_root=True) == 0.5


def test_workers_that_end_meanwhile_unwaited_for_leave_the_others_work_in_sight() -> None:
    assert measured(meter_scenes.worker_that_nobody_waits_for).cpu_seconds >= 0.28
