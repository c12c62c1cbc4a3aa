"""A request to stop (Ctrl-C, SIGTERM, a terminal that goes away), let through only where it does no harm."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

    from lean_ops.ingest.lines import Read

_SPOKEN: Final = {
    signal.SIGINT: "Ctrl-C",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP (its terminal went away)",
}
# Shells and `timeout` signal a process and its group, so one request may come twice.
_ONE_REQUEST_SECONDS: Final = 1.0


class StopSignal:
    """While it is open, a request to stop is a KeyboardInterrupt where the program waits, or `anywhere`.

    A second request, by a person who does not want to wait, ends the process at once: like any crash it leaves
    nothing that the next command does not finish. One that is opened inside another leaves all to that one.
    """

    def __init__(self, *, anywhere: bool = False) -> None:
        self._anywhere = anywhere
        self._asked: str | None = None
        self._asked_at = 0.0
        self._waiting = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()  # the only one that gets signals
        if is_main and not isinstance(getattr(signal.getsignal(signal.SIGTERM), "__self__", None), StopSignal):
            for number in _SPOKEN:
                if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` and `&` mean it
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._asked is not None:
            if time.monotonic() - self._asked_at > _ONE_REQUEST_SECONDS and number != signal.SIGHUP:
                _leave_at_once()
            return
        self._asked, self._asked_at = _SPOKEN[signal.Signals(number)], time.monotonic()
        if self._waiting or self._anywhere:
            raise KeyboardInterrupt(self._asked)

    def waiting(self, read: Read) -> bytes | None:
        """The next bytes, or KeyboardInterrupt if a stop was or is asked for."""
        self._waiting = True
        try:
            if self._asked is not None:
                raise KeyboardInterrupt(self._asked)
            return read()
        finally:
            self._waiting = False


def _leave_at_once() -> NoReturn:
    with suppress(OSError, ValueError):  # there may be no terminal any more
        sys.stderr.write("left at once, as asked for twice; the next command finishes what was begun\n")
        sys.stderr.flush()
    os._exit(1)
