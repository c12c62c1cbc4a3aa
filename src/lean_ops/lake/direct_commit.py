"""Changes of a table that are no transaction of pyiceberg's: branches, properties, snapshots that are forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate


def commit_directly(table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]) -> None:
    """Change a table, all of it or nothing; CommitFailedException if what is required does not hold.

    `table` is as it was seen, and is the changed one afterwards.
    """
    # The catalog's own call leaves every earlier metadata file where it is; two in three commits of a batch came by
    # that way. This one deletes what the table's log of them no longer names, as its property says.
    table._do_commit(updates, requirements)  # noqa: SLF001  what a transaction ends with
