"""Commits that stand on a look at the table: made only if nobody has committed since, else the caller looks again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from lean_ops.lake.append import wait_after_loss, without_history
from lean_ops.lake.damage import naming_damage
from lean_ops.lake.manifest_tiers import merging_by_tiers
from lean_ops.lake.replacement import reading_manifests_once
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.model.tables import TableName

_Result = TypeVar("_Result")

_ROUNDS: Final = 20


def until_unmoved(lake: Lake, name: TableName, attempt: Callable[[Table], _Result | None]) -> _Result:
    """What an attempt on the newest table comes to; one that finds the table moved returns None and is made again."""
    for number in range(_ROUNDS):
        result = attempt(lake.load(name))
        if result is not None:
            return result
        wait_after_loss(number)
    raise TransientError(
        f"{_ROUNDS} commits in a row lost against other writers",
        where=str(name),
        remedy="Nothing was written; do the same again.",
    )


def commit_if_unmoved(table: Table, added: Sequence[DataFile], removed: Sequence[DataFile] = ()) -> bool:
    """One snapshot of main that adds and removes files; False, and nothing stays, if main is not as it was seen."""
    from pyiceberg.exceptions import CommitFailedException

    try:
        with naming_damage(lambda: [table]):
            _commit(_tried_once(table), added, removed)
    except CommitFailedException:
        _delete(table, added)
        return False
    return True


def replace_files(table: Table, added: Sequence[DataFile], removed: Sequence[DataFile]) -> bool:
    """One snapshot of main that has files with the same rows in others' place, whoever else commits meanwhile.

    False, and nothing stays, if one of the others is gone: who took it away may have changed its rows.
    """
    from pyiceberg.exceptions import CommitFailedException, ValidationException

    for number in range(_ROUNDS):
        try:
            with naming_damage(lambda: [table]):
                _commit(_tried_once(table), added, removed)
        except ValidationException:
            break
        except CommitFailedException:
            wait_after_loss(number)
            table.refresh()
        else:
            return True
    _delete(table, added)
    return False


def _delete(table: Table, files: Sequence[DataFile]) -> None:
    for file in files:
        with suppress(FileNotFoundError):
            table.io.delete(file.file_path)


def _commit(table: Table, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
    with table.transaction() as transaction:
        update = transaction.update_snapshot()
        with (
            reading_manifests_once(update.overwrite())
            if removed
            else merging_by_tiers(update.merge_append()) as snapshot
        ):
            for file in removed:
                snapshot.delete_data_file(file)
            for file in added:
                snapshot.append_data_file(file)


def _tried_once(table: Table) -> Table:
    """The same table, on which pyiceberg does not try again by itself: that would be without a new look."""
    from pyiceberg.table import Table, TableProperties

    table = without_history(table)
    properties = {**table.properties, TableProperties.COMMIT_NUM_RETRIES: "0"}
    metadata = table.metadata.model_copy(update={"properties": properties})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
