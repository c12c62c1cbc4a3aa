"""What metadata files of a catalog elsewhere say; each is fetched once, because it never changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog_file import history_of_content

if TYPE_CHECKING:
    from collections.abc import Callable

    from lean_ops.lake.snapshots import History, Outline

_KEPT: Final = 300


class MetadataReader:
    """Histories by location; `read` fetches a file. Safe to share between threads."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, History] = OrderedDict()

    def outline(self, table: str, location: str) -> Outline:
        """A table's outline; TerminalError if its metadata file is missing or can't be understood."""
        return self.history(table, location).outline()

    def keep(self) -> None:
        """Nothing: what was read stays in memory."""

    def history(self, table: str, location: str) -> History:
        """The history in a metadata file."""
        with self._guard:
            known = self._kept.get(location)
        return known or self._remembered(location, history_of_content(table, location, self._read(location)))

    def _remembered(self, location: str, history: History) -> History:
        with self._guard:
            self._kept[location] = history
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return history
