"""Which files of a shared table are a topic's: each manifest is read once, for all topics together.

A run of hundreds of topics asks a shared table about each of them. Planning a scan for each would read all its
manifests hundreds of times, and they have a line for every file that any topic ever wrote.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from lean_ops.lake.damage import naming_damage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table

_TIME_COLUMN: Final = "publish_time"
_NO_COLUMN: Final = -1


class TopicFile(NamedTuple):
    """A data file of one topic: its rows, and the publish times (microseconds) that bound them, if they are known."""

    path: str
    rows: int
    first: int | None
    last: int | None

    def may_hold(self, start: int, end: int) -> bool:
        """Whether a row's time may lie in a half-open interval."""
        return (self.first is None or self.first < end) and (self.last is None or self.last >= start)

    def may_hold_any(self, times: Sequence[int]) -> bool:
        """Whether a row may have one of these times, which are sorted."""
        place = 0 if self.first is None else bisect_left(times, self.first)
        return place < len(times) and (self.last is None or times[place] <= self.last)


_ByTopic = dict[str, list[TopicFile]]


class TopicFiles:
    """The files of one shared table, as far as its manifests were read; safe to share between threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._read: dict[str, _ByTopic] = {}

    def of_topic(self, table: Table, topic: str) -> list[TopicFile]:
        """The files that hold the topic's rows in the table's newest snapshot."""
        return [file for by_topic in self._manifests(table) for file in by_topic.get(topic, ())]

    def of_all(self, table: Table) -> list[TopicFile]:
        """All files of the table's newest snapshot."""
        return [file for by_topic in self._manifests(table) for files in by_topic.values() for file in files]

    def _manifests(self, table: Table) -> Sequence[Mapping[str, list[TopicFile]]]:
        with naming_damage(lambda: [table]):
            return self._current(table)

    def _current(self, table: Table) -> Sequence[Mapping[str, list[TopicFile]]]:
        from lean_ops.lake.file_plan import manifests_with_files

        snapshot = table.current_snapshot()
        wanted = {manifest.manifest_path: manifest for manifest in manifests_with_files(snapshot, table.io)}
        with self._guard:  # one thread reads, the others find it read
            self._read = {
                path: self._read.get(path) or _files_by_topic(table, manifest) for path, manifest in wanted.items()
            }
            return list(self._read.values())


def _files_by_topic(table: Table, manifest: ManifestFile) -> _ByTopic:
    """The files of a manifest; all shared tables are partitioned by topic first."""
    fields = {field.name: field.field_id for field in table.schema().fields}
    found: _ByTopic = defaultdict(list)
    for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
        file = entry.data_file
        found[str(file.partition[0])].append(topic_file(file, fields.get(_TIME_COLUMN, _NO_COLUMN)))
    return dict(found)


def topic_file(file: DataFile, time_id: int) -> TopicFile:
    """A file's rows and bounds; `time_id` is the column with its publish times."""
    bounds = ((each or {}).get(time_id) for each in (file.lower_bounds, file.upper_bounds))
    first, last = (None if bound is None else int.from_bytes(bound, "little", signed=True) for bound in bounds)
    return TopicFile(file.file_path, file.record_count, first, last)
