"""What is wrong with a schema file: one problem per place, all of them at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lean_ops.model.errors import TerminalError
from lean_ops.model.json_path import format_json_path

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Problem:
    """One place in the file, what is wrong there, what was found and what is allowed."""

    keys: tuple[str | int, ...]
    message: str
    found: str | None = None
    expected: str | None = None

    @property
    def path(self) -> str:
        """The place as a JSON path."""
        return format_json_path(self.keys)

    def under(self, *keys: str | int) -> Problem:
        """The same problem, seen from further outside."""
        return replace(self, keys=(*keys, *self.keys))

    def to_dict(self) -> dict[str, str | None]:
        """Plain data for `error.json` and machines."""
        return {"path": self.path, "found": self.found, "expected": self.expected, "message": self.message}

    def __str__(self) -> str:
        parts = [f"{self.path}: {self.message}"]
        parts += [f"found {self.found}"] if self.found is not None else []
        parts += [f"expected {self.expected}"] if self.expected is not None else []
        return "; ".join(parts)


class SchemaError(TerminalError):
    """A schema that can't be used, with every reason why."""

    def __init__(self, where: str, problems: Iterable[Problem], *, remedy: str | None = None) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(f"{count} problem{'' if count == 1 else 's'}", where=where, remedy=remedy)

    def _sentence(self) -> str:
        lines = [f"{self.where}: {self.what}", *(f"  {problem}" for problem in self.problems)]
        return "\n".join([*lines, self.remedy] if self.remedy else lines)

    @property
    def summary(self) -> str:
        """One line for a registry item."""
        more = len(self.problems) - 1
        return f"{self.problems[0]}{f' (and {more} more)' if more else ''}"
