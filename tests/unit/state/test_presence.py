from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lean_ops.state.presence import Presence

OTHER_PROCESS = """
import sys
from pathlib import Path
from lean_ops.state.presence import Presence
presence = Presence(Path(sys.argv[1]))
print(presence.announce(), flush=True)
for order in sys.stdin:
    if order == "leave\\n":
        presence.leave()
        print("left", flush=True)
"""
Started = tuple[subprocess.Popen[str], str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "runners"


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[], Started]]:
    """Starts other processes that have announced themselves; those still alive at the end are ended."""
    processes: list[subprocess.Popen[str]] = []

    def start_one() -> Started:
        process = subprocess.Popen(
            [sys.executable, "-c", OTHER_PROCESS, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout
        return process, process.stdout.readline().strip()

    yield start_one
    for process in processes:
        process.kill()
        process.communicate(timeout=30)


def lock_files(folder: Path) -> int:
    return len(list(folder.iterdir()))


def test_a_process_is_alive_until_it_is_killed(folder: Path, start: Callable[[], Started]) -> None:
    presence = Presence(folder)
    process, owner = start()
    assert owner.split("/")[:2] == [socket.gethostname(), str(process.pid)]
    assert [presence.is_gone(owner) for _ in range(3)] == [False] * 3
    process.kill()
    process.wait(30)
    assert presence.is_gone(owner)
    assert presence.is_gone(owner)
    assert lock_files(folder) == 0


def test_only_the_killed_one_of_two_processes_is_gone(folder: Path, start: Callable[[], Started]) -> None:
    presence = Presence(folder)
    (first, first_owner), (_, second_owner) = start(), start()
    first.kill()
    first.wait(30)
    assert [presence.is_gone(first_owner), presence.is_gone(second_owner)] == [True, False]


def test_a_process_that_took_its_leave_is_gone_though_it_runs_on(folder: Path, start: Callable[[], Started]) -> None:
    process, owner = start()
    assert process.stdin
    assert process.stdout
    process.stdin.write("leave\n")
    process.stdin.flush()
    assert process.stdout.readline() == "left\n"
    assert process.poll() is None
    assert Presence(folder).is_gone(owner)


def test_everybody_who_asks_at_once_hears_that_a_killed_process_is_gone(
    folder: Path, start: Callable[[], Started]
) -> None:
    process, owner = start()
    process.kill()
    process.wait(30)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: Presence(folder).is_gone(owner), range(64)))


def test_this_process_is_not_gone_for_itself(folder: Path) -> None:
    presence = Presence(folder)
    owner = presence.announce()
    assert not presence.is_gone(owner)
    assert not Presence(folder).is_gone(owner)
    presence.leave()
    assert presence.is_gone(owner)


def test_announcing_twice_keeps_one_name_and_leaving_twice_is_harmless(folder: Path) -> None:
    presence = Presence(folder)
    assert presence.announce() == presence.announce()
    assert lock_files(folder) == 1
    presence.leave()
    presence.leave()
    assert lock_files(folder) == 0
    owner = presence.announce()
    assert not presence.is_gone(owner)
    presence.leave()


def test_two_presences_of_one_process_have_different_names(folder: Path) -> None:
    first, second = Presence(folder), Presence(folder)
    names = {first.announce(), second.announce()}
    assert len(names) == 2
    first.leave()
    assert not second.is_gone(second.announce())
    second.leave()


@pytest.mark.parametrize("host", ["another-host", "", f"{socket.gethostname()}x", f"x{socket.gethostname()}"])
def test_an_owner_on_another_host_never_counts_as_gone(folder: Path, host: str) -> None:
    assert not Presence(folder).is_gone(f"{host}/1/abc")


def test_nothing_is_written_before_a_process_announces_itself(folder: Path) -> None:
    presence = Presence(folder)
    assert presence.is_gone(f"{socket.gethostname()}/1/abc")
    presence.leave()
    assert not folder.exists()
