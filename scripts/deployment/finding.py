"""What was looked for before something is done, whether it is there, and what to do if it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class DeployError(Exception):
    """What went wrong or is missing, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is needed: what was found of it, and the remedy if that is not enough."""

    what: str
    found: str
    remedy: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing has to be done."""
        return self.remedy is None

    def __str__(self) -> str:
        line = f"{'ok' if self.ok else 'NO':>2}  {self.what}: {self.found}"
        return line if self.ok else f"{line}\n    {self.remedy}"


def shown(findings: Iterable[Finding]) -> bool:
    """Print all of them; whether all are good."""
    good = True
    for finding in findings:
        print(finding, flush=True)
        good = good and finding.ok
    return good


def require(findings: Iterable[Finding]) -> None:
    """Nothing is said of what is there; all that is missing is one DeployError."""
    missing = [finding for finding in findings if not finding.ok]
    if missing:
        raise DeployError("\n".join(str(finding) for finding in missing))
