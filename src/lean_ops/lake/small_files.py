"""Small files of a shared table put together: every batch of every topic leaves one, and every reader opens them all.

A reader pays about a third of a millisecond for a file, however few rows are in it. So what can be spared is gathered
by partition, once it is enough to be felt. Rows stay as they are; the files that had them are maintenance's to remove.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake import table_files
from lean_ops.lake.append import write_files
from lean_ops.lake.damage import naming_damage
from lean_ops.lake.duck import connection_to
from lean_ops.lake.guarded import replace_files
from lean_ops.lake.once import manifest_files
from lean_ops.lake.snapshots import count_in_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

# A third of a second of each query that reads the whole table.
ENOUGH_TO_SPARE: Final = 1000
# A file is taken along as long as it has few rows beside those that are gathered: so a row is written again a few times
# only, and a partition has few files, however many batches there were. Beyond so many bytes it is left to maintenance.
_TIMES_THE_SMALLER: Final = 4
_MOST_BYTES: Final = 4 * 1024 * 1024
_BYTES_AT_A_TIME: Final = 32 * 1024 * 1024
_GROUPS_AT_A_TIME: Final = 128


@dataclass(frozen=True, slots=True)
class Gathered:
    """Files and bytes of a table before small files were put together, and after."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


def gather_small_files(table: Table, enough: int = ENOUGH_TO_SPARE) -> Gathered | None:
    """Put small files together, partition by partition, in one commit; None if too few could be spared.

    None as well, and nothing stays, if another writer has changed one of the files meanwhile.
    """
    if count_in_head(table, "total-data-files") <= enough:
        return None
    with naming_damage(lambda: [table]):
        files = [file for _, file in manifest_files(table)]
        groups = [group for of in _by_partition(files) if (group := _worth_gathering(of))]
        if sum(len(group) - 1 for group in groups) < enough:
            return None
        added = _written_together(table, groups)
    removed = [file for group in groups for file in group]
    if not replace_files(table, added, removed):
        return None
    size, spared, more = (sum(file.file_size_in_bytes for file in some) for some in (files, removed, added))
    return Gathered(len(files), len(files) - len(removed) + len(added), size, size - spared + more)


def _by_partition(files: Iterable[DataFile]) -> Iterable[list[DataFile]]:
    partitions: defaultdict[tuple[int, tuple[Any, ...]], list[DataFile]] = defaultdict(list)
    for file in files:
        values = tuple(file.partition[place] for place in range(len(file.partition)))
        partitions[file.spec_id, values].append(file)
    return partitions.values()


def _worth_gathering(files: Sequence[DataFile]) -> list[DataFile]:
    """The files of a partition to put together, the smallest first; none if there is only one of them."""
    group: list[DataFile] = []
    rows = size = 0
    for file in sorted(files, key=lambda file: file.record_count):
        size += file.file_size_in_bytes
        if size > _MOST_BYTES or (group and file.record_count > _TIMES_THE_SMALLER * rows):
            break
        group.append(file)
        rows += file.record_count
    return group if len(group) > 1 else []


def _written_together(table: Table, groups: Sequence[Sequence[DataFile]]) -> list[DataFile]:
    """The rows of each group in a file of its own; some groups at a time, so that memory holds few rows."""
    schema, columns = table.schema().as_arrow(), table_files.duck_columns(table)
    added: list[DataFile] = []
    for some in _portions(groups):
        files = table_files.TableFiles(columns, tuple(_data_file(file.file_path) for group in some for file in group))
        with connection_to([files]) as connection:
            rows = connection.sql(files.select()).to_arrow_table()
        added += write_files(table, rows.combine_chunks().cast(schema))
    return added


def _portions(groups: Sequence[Sequence[DataFile]]) -> Iterator[list[Sequence[DataFile]]]:
    """The groups, as many at a time as memory should hold, and as pyiceberg finds the partitions of quickly."""
    portion: list[Sequence[DataFile]] = []
    size = 0
    for group in groups:
        portion.append(group)
        size += sum(file.file_size_in_bytes for file in group)
        if len(portion) == _GROUPS_AT_A_TIME or size >= _BYTES_AT_A_TIME:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _data_file(location: str) -> table_files.DataFile:
    return table_files.DataFile(table_files.path_of(location), location)
