"""A table's buckets as the catalog has them, and the two commits between which a table is moved to other ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog import transform_of
from lean_ops.lake.staging import Change, open_branch, publish
from lean_ops.model.curated_layout import LAYOUT_KEY, by_key

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table import Table

    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.staging import Stage
    from lean_ops.model.tables import TableName

TRIES_PROPERTY: Final = "lean-ops.layout-tries"
_PURPOSE: Final = "layout"


@dataclass(frozen=True, slots=True)
class LayoutMove:
    """A branch on which a table is written anew, and the partition specs to leave and to go to."""

    stage: Stage
    buckets: int
    old_spec: int
    new_spec: int


def buckets_of(table: Table) -> int | None:
    """How many buckets of the key a table has, 0 if it has no partitions; None if it is laid out in another way."""
    return _buckets(table, table.spec())


def _buckets(table: Table, spec: PartitionSpec) -> int | None:
    from pyiceberg.transforms import BucketTransform

    if spec.is_unpartitioned():
        return 0
    first, *more = spec.fields
    is_key = table.schema().find_column_name(first.source_id) == LAYOUT_KEY
    return first.transform.num_buckets if isinstance(first.transform, BucketTransform) and is_key and not more else None


def begin_move(lake: Lake, name: TableName, buckets: int, tries: str) -> LayoutMove:
    """A branch to write on and a partition spec to write by, which no other writer uses yet; `tries` is kept."""
    stage = open_branch(lake, name, f"{_PURPOSE}_{buckets}", lambda table: _beginning(table, buckets, tries))
    table = lake.load(name)
    new_spec = next(spec_id for spec_id, spec in table.specs().items() if _buckets(table, spec) == buckets)
    return LayoutMove(stage, buckets, table.spec().spec_id, new_spec)


def _beginning(table: Table, buckets: int, tries: str) -> Change:
    from pyiceberg.table.update import AddPartitionSpecUpdate, AssertLastAssignedPartitionId, SetPropertiesUpdate

    noted = SetPropertiesUpdate(updates={TRIES_PROPERTY: tries})
    if any(_buckets(table, spec) == buckets for spec in table.specs().values()):
        return Change(updates=(noted,))
    last = table.metadata.last_partition_id
    unchanged = AssertLastAssignedPartitionId.model_validate({"last-assigned-partition-id": last})
    return Change((unchanged,), (AddPartitionSpecUpdate(spec=_new_spec(table, buckets)), noted))


def _new_spec(table: Table, buckets: int) -> PartitionSpec:
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec

    last = table.metadata.last_partition_id or PARTITION_FIELD_ID_START - 1
    fields = (
        PartitionField(
            source_id=table.schema().find_field(partition.column).field_id,
            field_id=last + place,
            transform=transform_of(partition),
            name=partition.name,
        )
        for place, partition in enumerate(by_key(buckets), start=1)
    )
    return PartitionSpec(*fields, spec_id=max(table.specs()) + 1)


def finish_move(lake: Lake, move: LayoutMove, head: int) -> None:
    """In one commit main becomes what was written anew, later batches get its layout, and the branch goes.

    Refused if anybody has published or changed the layout meanwhile: nothing is changed then.
    """
    from pyiceberg.table.update import AssertDefaultSpecId, RemovePropertiesUpdate, SetDefaultSpecUpdate

    unchanged = AssertDefaultSpecId.model_validate({"default-spec-id": move.old_spec})
    changed = SetDefaultSpecUpdate.model_validate({"spec-id": move.new_spec})
    done = RemovePropertiesUpdate(removals=[TRIES_PROPERTY])
    publish(lake, move.stage, head, {}, Change((unchanged,), (changed, done)))
