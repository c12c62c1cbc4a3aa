"""The one error root. Whether a fault passes by itself is decided where the error is made."""

from __future__ import annotations

from typing import ClassVar


class LeanOpsError(Exception):
    """A fault that is told to a person: where it is, what was found, what was expected, what to do.

    `alert_kind` is the kind of alert that it raises when it ends a batch.
    """

    alert_kind: ClassVar[str] = "JOB_FAILED"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.found = found
        self.expected = expected
        self.remedy = remedy
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        parts = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.found is not None:
            parts.append(f"found {self.found}")
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        sentence = "; ".join(parts)
        return f"{sentence}. {self.remedy}" if self.remedy else sentence


class TransientError(LeanOpsError):
    """The same call may succeed later: a lock, a throttle, a lost race."""


class TerminalError(LeanOpsError):
    """The same call will fail again until somebody changes something."""


class WrongUseError(TerminalError):
    """The caller asked for something that can't be: wrong argument, setting or name."""
