"""Appending rows to a table from Python: files are written once, their commit is tried until it wins."""

from __future__ import annotations

import functools
import itertools
import random
import time
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.damage import naming_damage
from lean_ops.lake.manifest_tiers import merging_by_tiers
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.partitioning import PartitionField, PartitionKey
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

# On top of pyiceberg's own four retries in each, which give up when many write to one table at once.
_ROUNDS: Final = 10
_MOST_RUNS: Final = 256
_MANY_BYTES: Final = 4 * 1024 * 1024


def write_files(table: Table, rows: pa.Table) -> list[DataFile]:
    """The rows, in the table's own columns, as data files that no snapshot has yet."""
    from pyiceberg.utils.concurrent import ExecutorFactory

    from lean_ops.lake.data_file import DataFileWriter

    if not rows.num_rows:
        return []
    writer, parts = DataFileWriter(table), _parts(table, rows)
    if rows.nbytes < _MANY_BYTES:  # for little, threads only get in each other's way
        return list(itertools.starmap(writer.write, parts))
    return list(ExecutorFactory.get_or_create().map(lambda part: writer.write(*part), parts))


def _parts(table: Table, rows: pa.Table) -> Iterator[tuple[PartitionKey | None, pa.Table]]:
    """The rows of each file."""
    import pyarrow as pa
    from pyiceberg.io.pyarrow import bin_pack_arrow_table
    from pyiceberg.table import TableProperties

    default_size = TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT
    target_size = int(table.properties.get(TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, default_size))
    for key, of_partition in _partitions(table, rows):
        for batches in bin_pack_arrow_table(of_partition, target_size):
            yield key, pa.Table.from_batches(batches)


def _partitions(table: Table, rows: pa.Table) -> Iterator[tuple[PartitionKey | None, pa.Table]]:
    """The rows by partition, in their order; pyiceberg would copy all of them twice."""
    from pyiceberg.partitioning import PartitionFieldValue, PartitionKey

    schema, spec = table.schema(), table.spec()
    if not spec.fields:
        yield None, rows
        return
    columns = [_transformed(schema, field, rows) for field in spec.fields]
    for values, part in _by_value(columns, rows):
        parts = [PartitionFieldValue(*each) for each in zip(spec.fields, values, strict=True)]
        yield PartitionKey(parts, spec, schema), part


def _transformed(schema: Schema, field: PartitionField, rows: pa.Table) -> pa.Array:
    """A partition field's value in each row."""
    source = schema.find_field(field.source_id)
    return field.transform.pyarrow_transform(source.field_type)(rows.column(source.name)).combine_chunks()


def _by_value(columns: Sequence[pa.Array], rows: pa.Table) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """The rows by what the columns have for them.

    Messages come about as they were published, so that a value's rows stand in few runs: those are cut out, and no
    row is copied. Where they are mixed, each value's rows are picked.
    """
    import pyarrow as pa

    ends = _ends_of_runs(columns)
    if len(ends) > _MOST_RUNS:
        for values in _distinct(columns):
            yield values, rows.filter(_where(columns, values))
        return
    runs: dict[tuple[Any, ...], list[pa.Table]] = {}
    for start, end in itertools.pairwise([0, *ends]):
        values = tuple(column[start].as_py() for column in columns)
        runs.setdefault(values, []).append(rows.slice(start, end - start))
    for values, parts in runs.items():
        yield values, pa.concat_tables(parts)


def _ends_of_runs(columns: Sequence[pa.Array]) -> list[int]:
    """Where a row begins that differs from the one before it, and where the last one ends."""
    import pyarrow.compute as pc

    return sorted({end for column in columns for end in pc.run_end_encode(column).run_ends.to_pylist()})


def _distinct(columns: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
    """Each combination of values once."""
    import pyarrow as pa

    names = [str(position) for position in range(len(columns))]
    combinations = pa.table(list(columns), names).group_by(names).aggregate([])
    return list(zip(*(combinations.column(name).to_pylist() for name in names), strict=True))


def _where(columns: Sequence[pa.Array], values: Sequence[Any]) -> pa.Array:
    """In which rows the columns have these values."""
    import pyarrow.compute as pc

    is_equal = (
        pc.is_null(column) if value is None else pc.equal(column, value)
        for column, value in zip(columns, values, strict=True)
    )
    return functools.reduce(pc.and_kleene, is_equal)


def append_files(table: Table, files: Sequence[DataFile], summary: Mapping[str, str]) -> int:
    """Append files (or nothing) in one snapshot of main; the snapshot's id. TransientError if nothing was written."""
    from pyiceberg.exceptions import CommitFailedException

    for attempt in range(_ROUNDS):
        try:
            with naming_damage(lambda: [table]):
                return _commit(table, files, summary)
        except CommitFailedException:
            wait_after_loss(attempt)
            table.refresh()
    raise TransientError(
        f"{_ROUNDS} rounds of commits in a row lost against other writers",
        where=".".join(table.name()),
        remedy="Nothing was written; do the same again.",
    )


def wait_after_loss(attempt: int) -> None:
    """Wait before the next try of a commit that lost: others commit meanwhile, and not all at the same moment."""
    time.sleep(random.uniform(0, min(2.0, 0.05 * 2**attempt)))  # noqa: S311  jitter, no secret


def _commit(table: Table, files: Sequence[DataFile], summary: Mapping[str, str]) -> int:
    with without_history(table).transaction() as transaction:
        merging = transaction.update_snapshot(snapshot_properties=dict(summary)).merge_append()
        with merging_by_tiers(merging) as append:  # must end before its transaction
            for file in files:
                append.append_data_file(file)
    return int(append.snapshot_id)


def without_history(table: Table, branch: str = "main") -> Table:
    """The same table as if the branch's newest snapshot were its first, and there were no other branch.

    A transaction copies all metadata it is given a dozen times, so appends would get slower with every snapshot
    that a table keeps. The commit itself is checked against and applied to the whole metadata by the catalog.
    """
    from pyiceberg.table import Table

    newest = table.snapshot_by_name(branch)
    refs = {name: ref for name, ref in table.metadata.refs.items() if name == branch}
    only_newest = {"snapshots": [newest] if newest else [], "snapshot_log": [], "refs": refs}
    metadata = table.metadata.model_copy(update=only_newest)
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
