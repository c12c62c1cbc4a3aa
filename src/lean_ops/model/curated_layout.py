"""How a Curated table is laid out as it grows: no partitions while it is small, then buckets of its key."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from lean_ops.model.partitioning import PartitionField, Transform

LAYOUT_KEY: Final = "idempotency_key"
# Rows of one time stay together within a bucket, as they came: readers of a few days then skip the rest.
ROW_ORDER: Final = "publish_time"
_DELETES_PROPERTY: Final = "write.delete.granularity"
_OPEN_COST_PROPERTY: Final = "read.split.open-file-cost"
# A small table is read whole by every merge, so its deletes may lie in one file a batch, and all its files are one
# task's work: Iceberg would count each for 4 MB, and again for each of its deletes, and take a task for every few. In a
# large table each data file has a delete file of its own: whoever reads few files reads few deletes.
_READ_WHOLE_ROWS: Final = 200_000
# Every merge opens all files of such a table. The more rows it has, the more files it may have before it is worth while
# to write it anew.
_ROWS_PER_FILE: Final = 2_500
# Tables that began on the same day are not to be written anew in the same cycle.
_SPREAD: Final = 8


@dataclass(frozen=True, slots=True)
class LayoutRule:
    """A table gets buckets with `first_rows` rows: at least `fewest`, at most `most`, always four times as many.

    A bucket holds at most `rows_per_bucket` rows as long as `most` allows it. A small table has about `few_files`
    files, data and delete files together, before it is written anew as it is.
    """

    first_rows: int
    rows_per_bucket: int
    fewest: int
    most: int
    few_files: int = 6

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of buckets that a table can be moved to."""
        steps = [self.fewest]
        while steps[-1] * 4 <= self.most:
            steps.append(steps[-1] * 4)
        return tuple(steps)

    def buckets(self, rows: int) -> int:
        """The buckets that a table of so many rows wants; 0: no partitions."""
        if rows < self.first_rows:
            return 0
        return next((step for step in self.steps if rows <= step * self.rows_per_bucket), self.steps[-1])

    def next_layout(self, rows: int, present: int) -> int | None:
        """The buckets that a table with `present` ones has to be moved to; None if it may stay. Never fewer."""
        wanted = self.buckets(rows)
        return wanted if wanted > present else None

    def has_many_files(self, table: str, rows: int, files: int) -> bool:
        """Whether a table of so many rows had better have them in one file; of large ones maintenance takes care."""
        few = self.few_files + zlib.crc32(table.encode()) % _SPREAD + rows // _ROWS_PER_FILE
        return rows < _READ_WHOLE_ROWS and files > few


# Buckets cost: every batch writes a file into each, and delete files. At 4 million rows, the most that was measured
# with them, they gave nothing back to a merge (ADR 0020); where they begin is a choice beyond that.
# A move writes the whole table anew. With four times the buckets at each step, all moves of a table's life together
# write about a third more rows than it has.
# A merge adds two files, and each makes later merges about 6 ms longer; to write a small table anew takes about as long
# as a dozen of that, by estimate. So about four batches between two times are the least work.
CURATED_RULE: Final = LayoutRule(first_rows=50_000_000, rows_per_bucket=4_000_000, fewest=16, most=256)


def by_key(buckets: int) -> tuple[PartitionField, ...]:
    """The partitioning of a table with so many buckets of its key; 0: none."""
    return (PartitionField(Transform.BUCKET, LAYOUT_KEY, buckets),) if buckets else ()


def layout_in_words(buckets: int) -> str:
    """A layout for a person."""
    return ", ".join(map(str, by_key(buckets))) or "no partitions"


def layout_properties(rows: int) -> dict[str, str]:
    """How the next batch into a table of so many rows reads it, and lays out its delete files."""
    if rows < _READ_WHOLE_ROWS:
        return {_DELETES_PROPERTY: "partition", _OPEN_COST_PROPERTY: str(16 * 1024)}
    return {_DELETES_PROPERTY: "file", _OPEN_COST_PROPERTY: str(4 * 1024 * 1024)}
