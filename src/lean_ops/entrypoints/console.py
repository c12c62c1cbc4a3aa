"""What a command shows: tables and lines for a person, one JSON document for a machine."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


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
        table = Table(title=escape(title), title_justify="left", header_style="bold")
        for name in names:
            table.add_column(escape(name), overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row.get(name)) for name in names))
        self._result.print(table) if rows else self._result.print(f"{escape(title)}: nothing")


def _plain_console(file: TextIO) -> RichConsole:
    """A console that changes no text: no colours for numbers, no pictures for `:words:`, no line breaks of its own."""
    return RichConsole(file=file, highlight=False, soft_wrap=True, emoji=False)


def _cell(value: Any) -> str:
    if value is None:
        return "[dim]-[/dim]"
    return escape(_plain(value) if isinstance(value, datetime | date) else str(value))


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)
