"""What metadata files of a catalog elsewhere say; each is fetched once, because it never changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from lean_ops.lake.catalog_file import history_of_content

if TYPE_CHECKING:
    from collections.abc import Callable

    from lean_ops.lake.snapshots import History, Outline

_KEPT_BYTES: Final = 32 * 1024 * 1024  # of the files; as objects they take several times that


class _Known(NamedTuple):
    """A history and the size of the file that it was read off."""

    size: int
    history: History


class MetadataReader:
    """Histories by location; `read` fetches a file. Safe to share between threads."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, _Known] = OrderedDict()

    def outline(self, table: str, location: str) -> Outline:
        """A table's outline; TerminalError if its metadata file is missing or can't be understood."""
        return self.history(table, location).outline()

    def keep(self) -> None:
        """Nothing: what was read stays in memory."""

    def history(self, table: str, location: str) -> History:
        """The history in a metadata file."""
        with self._guard:
            known = self._kept.get(location)
        if known is not None:
            return known.history
        content = self._read(location)
        history = history_of_content(table, location, content)
        self._remember(location, _Known(len(content), history))
        return history

    def _remember(self, location: str, known: _Known) -> None:
        """Keep it, in the place of the oldest ones if there is too much."""
        with self._guard:
            self._kept[location] = known
            size = sum(each.size for each in self._kept.values())
            while size > _KEPT_BYTES and len(self._kept) > 1:
                size -= self._kept.popitem(last=False)[1].size
