"""Stage, balance, publish: a batch is written on a branch of its own and main moves to it in one commit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from lean_ops.lake.direct_commit import commit_directly
from lean_ops.lake.ranges import spark_name
from lean_ops.lake.snapshots import BATCH_ID_PROPERTY, TO_SNAPSHOT_PROPERTY, history_of
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.snapshots import Snapshot
    from lean_ops.model.batch import Batch, Counts
    from lean_ops.model.tables import TableName

_BRANCH_PREFIX: Final = "lean_ops_stage_"
_ATTEMPTS: Final = 20


class MainMovedError(TransientError):
    """Somebody else published meanwhile, so this batch can't."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A branch that starts where main stood."""

    name: TableName
    branch: str
    base: int

    @property
    def spark_table(self) -> str:
        """The branch as Spark writes and reads it."""
        return f"{spark_name(self.name)}.`branch_{self.branch}`"


def commit_properties(batch: Batch) -> dict[str, str]:
    """What every commit of a batch to a zone table carries: the checkpoint travels with the data."""
    return {BATCH_ID_PROPERTY: batch.batch_id, TO_SNAPSHOT_PROPERTY: str(batch.to_snapshot)}


@dataclass(frozen=True, slots=True)
class Change:
    """More that a commit asks for and does."""

    requirements: tuple[TableRequirement, ...] = ()
    updates: tuple[TableUpdate, ...] = ()


def open_stage(lake: Lake, name: TableName, batch: Batch) -> Stage:
    """A fresh branch for the batch; branches that crashed runs left behind go in the same commit."""
    return open_branch(lake, name, batch.batch_id, lambda _: Change())


def open_branch(lake: Lake, name: TableName, purpose: str, more: Callable[[Table], Change]) -> Stage:
    """A fresh branch of main, made with whatever `more` has to say of the table; leftovers go in the same commit."""
    from pyiceberg.exceptions import CommitFailedException

    last: Exception | None = None
    for _ in range(_ATTEMPTS):
        table = lake.load(name)
        head = table.current_snapshot()
        if head is None:
            raise TransientError("the table has no snapshot to branch from", where=str(name))
        stage, change = Stage(name, _BRANCH_PREFIX + purpose, head.snapshot_id), more(table)
        leftovers = [ref for ref in table.refs() if ref.startswith(_BRANCH_PREFIX) and ref != stage.branch]
        updates = (*map(_remove_ref, leftovers), _set_ref(stage.branch, stage.base), *change.updates)
        try:
            commit_directly(table, (_ref_is("main", stage.base), *change.requirements), updates)
        except CommitFailedException as error:  # somebody committed between the look and the commit
            last = error
        else:
            return stage
    raise TransientError(f"{_ATTEMPTS} commits in a row lost", where=str(name), found=str(last))


def move_branch(lake: Lake, name: TableName, branch: str, to: int) -> None:
    """Let a branch that is there point at another snapshot; no commit if it does already."""
    from pyiceberg.exceptions import CommitFailedException

    last: Exception | None = None
    for _ in range(_ATTEMPTS):
        table = lake.load(name)
        ref = table.refs().get(branch)
        if ref is None:
            raise _gone(name, branch)
        if ref.snapshot_id == to:
            return
        try:
            commit_directly(table, (_ref_is(branch, ref.snapshot_id),), (_set_ref(branch, to),))
        except CommitFailedException as error:
            last = error
    raise TransientError(f"{_ATTEMPTS} commits in a row lost", where=str(name), found=str(last))


def _gone(name: TableName, branch: str) -> MainMovedError:
    return MainMovedError(
        "the branch is gone: somebody else has taken over",
        where=f"{name}, branch {branch}",
        remedy="Nothing was published; do the same again.",
    )


def append_nothing(lake: Lake, stage: Stage, batch: Batch) -> None:
    """The commit of a batch without rows: the checkpoint moves all the same."""
    table = lake.load(stage.name)
    nothing = table.schema().as_arrow().empty_table()
    table.append(nothing, snapshot_properties=commit_properties(batch), branch=stage.branch)


@dataclass(frozen=True, slots=True)
class Staged:
    """A batch on its branch, balanced and ready to be published; the properties go with that commit."""

    stage: Stage
    head: int
    counts: Counts
    last_ingestion_ts: int | None
    table_properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StagedRows:
    """What a branch has added to main: how many rows, up to which of its snapshots."""

    head: int
    rows: int


def count_staged(lake: Lake, stage: Stage) -> StagedRows:
    """What the branch holds now, by its commits' own summaries; MainMovedError if the branch is gone."""
    snapshots = staged_snapshots(lake, stage)
    head = snapshots[0].snapshot_id if snapshots else stage.base
    return StagedRows(head, sum(snapshot.count("added-records") for snapshot in snapshots))


def staged_snapshots(lake: Lake, stage: Stage) -> tuple[Snapshot, ...]:
    """The branch's own snapshots, newest first; MainMovedError if the branch is gone."""
    history = history_of(lake.load(stage.name))
    if stage.branch not in history.refs:
        raise _moved(stage, "the branch is gone: another runner has taken over")
    chain = history.ancestors(history.refs[stage.branch])
    return tuple(takewhile(lambda snapshot: snapshot.snapshot_id != stage.base, chain))


def publish(lake: Lake, stage: Stage, head: int, properties: Mapping[str, str], more: Change | None = None) -> None:
    """Move main to the branch's `head`, set table properties and drop the branch, all in one commit with `more`.

    Refused with MainMovedError unless main is where the branch began and the branch is where it was counted: a
    runner that lost its lease can't publish, and neither can what it still writes be published by its successor.
    """
    from pyiceberg.exceptions import CommitFailedException

    last: Exception | None = None
    for _ in range(_ATTEMPTS):
        table = lake.load(stage.name)
        _refuse_if_moved(table, stage, head)
        try:
            _move_main(table, stage, head, properties, more or Change())
        except CommitFailedException as error:  # a commit to another branch or the schema came between
            last = error
        else:
            return
    raise TransientError(f"{_ATTEMPTS} commits in a row lost", where=str(stage.name), found=str(last))


def _refuse_if_moved(table: Table, stage: Stage, head: int) -> None:
    main, refs = table.current_snapshot(), table.refs()
    if main is None or main.snapshot_id != stage.base:
        raise _moved(stage, f"main is at snapshot {main.snapshot_id if main else None}, not at {stage.base}")
    if stage.branch not in refs or refs[stage.branch].snapshot_id != head or head == stage.base:
        raise _moved(stage, f"the branch is not at the snapshot {head} that was counted")


def _moved(stage: Stage, found: str) -> MainMovedError:
    return MainMovedError(
        "somebody else has written meanwhile",
        where=str(stage.name),
        found=found,
        remedy="Nothing was published; the next run continues from what is there.",
    )


def _move_main(table: Table, stage: Stage, head: int, properties: Mapping[str, str], more: Change) -> None:
    from pyiceberg.table.update import SetPropertiesUpdate

    updates: list[TableUpdate] = [_set_ref("main", head), _remove_ref(stage.branch), *more.updates]
    if properties:
        updates.append(SetPropertiesUpdate(updates=dict(properties)))
    requirements = (_ref_is("main", stage.base), _ref_is(stage.branch, head), *more.requirements)
    commit_directly(table, requirements, tuple(updates))


def _set_ref(ref: str, snapshot_id: int) -> TableUpdate:
    from pyiceberg.table.update import SetSnapshotRefUpdate

    return SetSnapshotRefUpdate.model_validate({"ref-name": ref, "type": "branch", "snapshot-id": snapshot_id})


def _remove_ref(ref: str) -> TableUpdate:
    from pyiceberg.table.update import RemoveSnapshotRefUpdate

    return RemoveSnapshotRefUpdate.model_validate({"ref-name": ref})


def _ref_is(ref: str, snapshot_id: int) -> TableRequirement:
    from pyiceberg.table.update import AssertRefSnapshotId

    return AssertRefSnapshotId.model_validate({"ref": ref, "snapshot-id": snapshot_id})
