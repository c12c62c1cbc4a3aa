"""Ctrl-C that stops ingestion between two reads, never inside a commit."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

    from lean_ops.ingest.lines import Read


class StopSignal:
    """While it is open, Ctrl-C is let through only where the program waits for input; the second one always."""

    def __init__(self) -> None:
        self._asked = False
        self._waiting = False
        self._previous: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # the only one that gets signals
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        insists, self._asked = self._asked, True
        if self._waiting or insists:
            raise KeyboardInterrupt

    def waiting(self, read: Read) -> bytes | None:
        """The next bytes, or KeyboardInterrupt if Ctrl-C was or is pressed."""
        self._waiting = True
        try:
            if self._asked:
                raise KeyboardInterrupt
            return read()
        finally:
            self._waiting = False
