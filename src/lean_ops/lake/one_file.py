"""A little table written anew without Spark: its rows as they are, in one file, on the branch of a move.

For so few rows Spark takes several times as long to plan the statement as it takes to copy them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from lean_ops.lake.append import without_history, write_files
from lean_ops.lake.damage import naming_damage
from lean_ops.lake.once import manifest_files
from lean_ops.lake.replacement import reading_manifests_once
from lean_ops.lake.snapshots import count_in_head
from lean_ops.model.curated_layout import ROW_ORDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.layout import LayoutMove

LITTLE_BYTES: Final = 8 * 1024 * 1024
_WRITTEN_FORMAT: Final = 2  # pyiceberg writes no manifests of format 3
# Many topics are at work at a time, and each such table may need some tens of MB of memory.
_ONE_AT_A_TIME: Final = threading.Lock()


def is_little(table: Table) -> bool:
    """Whether a table has no partitions and so few bytes that its rows can be held in memory."""
    in_one_piece = table.spec().is_unpartitioned() and table.format_version == _WRITTEN_FORMAT
    return in_one_piece and 0 < count_in_head(table, "total-files-size") <= LITTLE_BYTES


def write_in_one_file(lake: Lake, move: LayoutMove, properties: Mapping[str, str]) -> None:
    """Everything that main has in place of everything on the branch; one commit with these properties."""
    table = lake.load(move.stage.name)
    with _ONE_AT_A_TIME, naming_damage(lambda: [table]):
        # In the columns of now: those of a snapshot would lose one that came since, or was given another name. If main
        # has moved meanwhile, these are not the branch's rows, but then nobody can switch to it any more.
        rows = table.scan().to_arrow().sort_by(ROW_ORDER)
        _replace_all(table, move.stage.branch, write_files(table, rows), properties)


def _replace_all(table: Table, branch: str, added: Sequence[DataFile], properties: Mapping[str, str]) -> None:
    files = [file for _, file in manifest_files(table, branch)]
    with without_history(table, branch).transaction() as transaction:
        update = transaction.update_snapshot(dict(properties), branch)
        with reading_manifests_once(update.overwrite()) as snapshot:
            for file in files:
                snapshot.delete_data_file(file)
            for file in added:
                snapshot.append_data_file(file)
