"""Appending rows to a table from Python: files are written once, their commit is tried until it wins."""

from __future__ import annotations

import random
import time
import uuid
from typing import TYPE_CHECKING, Final

from lean_ops.lake.damage import naming_damage
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

# On top of pyiceberg's own four retries in each, which give up when many write to one table at once.
_ROUNDS: Final = 10


def write_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """The rows as data files that no snapshot has yet."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    if not rows.num_rows:
        return []
    return list(_dataframe_to_data_files(table.metadata, rows, table.io, write_uuid=uuid.uuid4()))


def append_files(table: Table, files: Sequence[DataFile], summary: Mapping[str, str]) -> int:
    """Append files (or nothing) in one snapshot of main; the snapshot's id. TransientError if nothing was written."""
    from pyiceberg.exceptions import CommitFailedException

    for attempt in range(_ROUNDS):
        try:
            with naming_damage(lambda: [table]):
                return _commit(table, files, summary)
        except CommitFailedException:
            time.sleep(random.uniform(0, min(2.0, 0.05 * 2**attempt)))  # noqa: S311  jitter, no secret
            table.refresh()
    raise TransientError(
        f"{_ROUNDS} rounds of commits in a row lost against other writers",
        where=".".join(table.name()),
        remedy="Nothing was written; do the same again.",
    )


def _commit(table: Table, files: Sequence[DataFile], summary: Mapping[str, str]) -> int:
    with _without_history(table).transaction() as transaction:  # noqa: SIM117  the append must end before its transaction
        with transaction.update_snapshot(snapshot_properties=dict(summary)).merge_append() as append:
            for file in files:
                append.append_data_file(file)
    return int(append.snapshot_id)


def _without_history(table: Table) -> Table:
    """The same table as if main's newest snapshot were its first.

    A transaction copies all metadata it is given a dozen times, so appends would get slower with every snapshot
    that a table keeps. The commit itself is checked against and applied to the whole metadata by the catalog.
    """
    from pyiceberg.table import Table

    newest = table.current_snapshot()
    refs = {name: ref for name, ref in table.metadata.refs.items() if name == "main"}
    only_newest = {"snapshots": [newest] if newest else [], "snapshot_log": [], "refs": refs}
    metadata = table.metadata.model_copy(update=only_newest)
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
