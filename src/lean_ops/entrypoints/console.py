"""What a command shows: tables and lines for a person, one JSON document for a machine."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console as RichConsole
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_READABLE: Final = 24
_UNBOUNDED: Final = 100_000
_NOTHING: Final = "[dim]-[/dim]"


class Console:
    """With `--json` the result alone goes to stdout and everything else to stderr."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._result = _plain_console(sys.stdout)
        self._notice = _plain_console(sys.stderr if as_json else sys.stdout)
        self._fault = _plain_console(sys.stderr)

    @property
    def is_terminal(self) -> bool:
        """Whether a person watches."""
        return self._notice.is_terminal

    def say(self, text: str) -> None:
        """A line of progress or explanation; rich markup is allowed, so escape foreign text."""
        self._notice.print(text)

    def fault(self, text: str) -> None:
        """An error, always on stderr, printed as it is."""
        self._fault.print(f"[red]{escape(text)}[/red]")

    def document(self, data: Any) -> None:
        """The one JSON document of a `--json` call."""
        sys.stdout.write(json.dumps(data, default=_plain, ensure_ascii=False, indent=2) + "\n")

    def rows(self, title: str, rows: Sequence[Mapping[str, Any]], columns: Iterable[str] | None = None) -> None:
        """Rows as a table for a person, or as a list of objects for a machine."""
        if self.as_json:
            self.document([dict(row) for row in rows])
            return
        names = list(columns) if columns is not None else list(rows[0]) if rows else []
        cells = [[_cell(row.get(name)) for name in names] for row in rows]
        if not rows:
            self._result.print(f"{escape(title)}: nothing")
        elif self._fits(names, cells):
            self._result.print(_table(title, names, cells))
        else:
            self._records(title, names, cells)

    def _fits(self, names: list[str], cells: list[list[str]]) -> bool:
        """Whether the columns can stand beside each other without being cut into letters."""
        widths = (
            max(len(name), min(_READABLE, max(len(row[position]) for row in cells)))
            for position, name in enumerate(names)
        )
        return sum(width + 2 for width in widths) <= self._result.width

    def _records(self, title: str, names: list[str], cells: list[list[str]]) -> None:
        """Each row as lines of its own, for rows that are wider than the screen."""
        indent = max(map(len, names))
        for number, row in enumerate(cells, start=1):
            self._result.print(f"[bold]{escape(title)} {number}[/bold]")
            for name, cell in zip(names, row, strict=True):
                self._result.print(f"  {escape(name.ljust(indent))}  {cell or _NOTHING}")


def _table(title: str, names: list[str], cells: list[list[str]]) -> Table:
    table = Table(title=escape(title), title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(escape(name), overflow="fold")
    for row in cells:
        table.add_row(*(cell or _NOTHING for cell in row))
    return table


def _plain_console(file: TextIO) -> RichConsole:
    """A console that changes no text: no colours for numbers, no pictures for `:words:`, no line breaks of its own."""
    width = None if file.isatty() else _UNBOUNDED  # a file or pipe is as wide as it must be
    return RichConsole(file=file, highlight=False, soft_wrap=True, emoji=False, width=width)


def _cell(value: Any) -> str:
    """A value as a person reads it: times to the second, shares to a few digits; nothing for NULL."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)
