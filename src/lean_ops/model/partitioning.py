"""What a table is partitioned by; a schema file writes it as `day(publish_time)` or `bucket(16, user_id)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lean_ops.model.data_type import Kind

MAX_BUCKETS: Final = 4096
MAX_WIDTH: Final = 2**31 - 1
ALLOWED_PARTITIONS: Final = (
    f"column, bucket(N, column) with 1 <= N <= {MAX_BUCKETS}, truncate(W, column) with 1 <= W <= {MAX_WIDTH},"
    " year(column), month(column), day(column) or hour(column)"
)
_COLUMN: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_IDENTITY: Final = re.compile(rf" *({_COLUMN}) *")
_TRANSFORMED: Final = re.compile(rf" *([a-z]+) *\( *(?:([0-9]{{1,10}}) *, *)?({_COLUMN}) *\) *")


class Transform(StrEnum):
    """Iceberg's ways from a value to its partition, by their Iceberg names."""

    IDENTITY = "identity"
    BUCKET = "bucket"
    TRUNCATE = "truncate"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"

    @property
    def kinds(self) -> frozenset[Kind]:
        """The types that it takes."""
        return _KINDS[self]

    @property
    def is_of_time(self) -> bool:
        """Iceberg takes one of these per column: a day says its month and year."""
        return self in (Transform.YEAR, Transform.MONTH, Transform.DAY, Transform.HOUR)


_DAYS: Final = frozenset({Kind.DATE, Kind.TIMESTAMP})
_KINDS: Final = {
    Transform.IDENTITY: frozenset(Kind) - {Kind.DOUBLE},
    Transform.BUCKET: frozenset(Kind) - {Kind.DOUBLE, Kind.BOOLEAN},
    Transform.TRUNCATE: frozenset({Kind.STRING, Kind.INT, Kind.BIGINT, Kind.DECIMAL}),
    Transform.YEAR: _DAYS,
    Transform.MONTH: _DAYS,
    Transform.DAY: _DAYS,
    Transform.HOUR: frozenset({Kind.TIMESTAMP}),
}
# identity(column) is written as the column alone: one spelling is enough.
_NAMED: Final = frozenset(Transform) - {Transform.IDENTITY}
# The greatest argument of the transforms that have one.
_ARGUMENTS: Final = {Transform.BUCKET: MAX_BUCKETS, Transform.TRUNCATE: MAX_WIDTH}


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a table's layout; `argument` is bucket's number or truncate's width."""

    transform: Transform
    column: str
    argument: int | None = None

    @property
    def name(self) -> str:
        """The partition field's own name in the table; another argument is another name, or it could not follow."""
        if self.transform is Transform.IDENTITY:
            return self.column
        return f"{self.column}_{self.transform}{'' if self.argument is None else f'_{self.argument}'}"

    @property
    def slot(self) -> tuple[str, str]:
        """What a layout has once: a transform of a column, whatever its argument, and one unit of a column's time."""
        return self.column, "time" if self.transform.is_of_time else self.transform.value

    def __str__(self) -> str:
        if self.transform is Transform.IDENTITY:
            return self.column
        return f"{self.transform}({'' if self.argument is None else f'{self.argument}, '}{self.column})"


def parse_partition(text: str) -> PartitionField:
    """The field that a schema file names; ValueError with what is allowed if there is none."""
    identity, transformed = _IDENTITY.fullmatch(text), _TRANSFORMED.fullmatch(text)
    if identity:
        return PartitionField(Transform.IDENTITY, identity[1])
    if transformed and transformed[1] in _NAMED:
        argument = None if transformed[2] is None else int(transformed[2])
        field = PartitionField(Transform(transformed[1]), transformed[3], argument)
        if _has_right_argument(field):
            return field
    raise ValueError(ALLOWED_PARTITIONS)


def _has_right_argument(field: PartitionField) -> bool:
    greatest = _ARGUMENTS.get(field.transform)
    if greatest is None or field.argument is None:
        return greatest is None and field.argument is None
    return 1 <= field.argument <= greatest
