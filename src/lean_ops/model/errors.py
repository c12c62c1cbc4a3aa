"""The one error root. Whether a fault passes by itself is decided where the error is made."""

from __future__ import annotations

import errno
from typing import ClassVar, Final

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


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


def of_the_system(error: OSError) -> LeanOpsError:
    """A disk or a file that does not do its part."""
    if error.errno in _NO_ROOM:
        return TransientError("the disk is full", found=str(error), remedy="Free some room and do the same again.")
    if error.errno in _NOT_ALLOWED:
        remedy = "Make the home a folder that you can write to."
        return TerminalError("a file can't be written", found=str(error), remedy=remedy)
    remedy = "`lean-ops doctor` looks at disk, home, catalog and state."
    return TerminalError("the system refused", found=str(error), remedy=remedy)
