"""Requests to stop: when they are let through, and what a second one does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lean_ops.ingest import stop as stop_module
from lean_ops.ingest.stop import StopSignal

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ask(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@contextmanager
def handled_by(number: signal.Signals, handler: object) -> Iterator[None]:
    before = signal.signal(number, handler)  # type: ignore[arg-type]
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_request_is_kept_until_the_program_waits_for_input(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopSignal() as stop:
        ask(number)  # as inside a commit: nothing happens
        with pytest.raises(KeyboardInterrupt, match=r"Ctrl-C|SIGTERM|SIGHUP \(its terminal went away\)"):
            stop.waiting(lambda: b"never read")
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", NUMBERS)
def test_a_request_interrupts_the_wait_or_anything_if_it_may(number: signal.Signals) -> None:
    with StopSignal() as stop, pytest.raises(KeyboardInterrupt):
        stop.waiting(lambda: ask(number))
    with StopSignal(anywhere=True), pytest.raises(KeyboardInterrupt):
        ask(number)


def test_one_request_that_is_told_twice_is_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_module, "_ONE_REQUEST_SECONDS", 600.0)  # however long this process is kept waiting
    with StopSignal(anywhere=True):
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            ask(signal.SIGTERM)
        ask(signal.SIGTERM)
        ask(signal.SIGINT)


def test_signals_that_were_ignored_stay_ignored() -> None:
    with handled_by(signal.SIGHUP, signal.SIG_IGN), StopSignal(anywhere=True):
        ask(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_one_inside_another_leaves_all_to_that_one() -> None:
    with StopSignal(), StopSignal(anywhere=True) as inner:
        ask(signal.SIGTERM)
        assert inner.waiting(lambda: b"x") == b"x"


def test_a_second_request_ends_the_process_at_once() -> None:
    program = """
import os, signal, time
from lean_ops.ingest.stop import StopSignal
with StopSignal():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(1.1)
    os.kill(os.getpid(), signal.SIGHUP)  # a terminal that goes away as well is no second request
    print("still here", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (1, b"still here\n")
    assert b"left at once, as asked for twice" in done.stderr
