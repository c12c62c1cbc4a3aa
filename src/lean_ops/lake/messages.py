"""Which messages a table has: a message is its id and its publish time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from lean_ops.lake.damage import naming_damage

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

    # The id, and microseconds since 1970.
    Message = tuple[str, int]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def messages_in(table: Table, messages: Collection[Message]) -> set[Message]:
    """Those of the messages that the table has; only files of their days are read."""
    import pyarrow as pa

    if not messages:
        return set()
    with naming_damage(lambda: [table]):
        scan = table.scan(row_filter=_like(messages), selected_fields=("message_id", "publish_time"))
        rows = scan.to_arrow()
    times = rows.column("publish_time").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    return set(messages).intersection(zip(rows.column("message_id").to_pylist(), times, strict=True))


def _like(messages: Collection[Message]) -> BooleanExpression:
    from pyiceberg.expressions import And, GreaterThanOrEqual, In, LessThanOrEqual, Reference
    from pyiceberg.expressions.literals import literal

    times = [time for _, time in messages]
    first, last = (_EPOCH + timedelta(microseconds=time) for time in (min(times), max(times)))
    return And(
        GreaterThanOrEqual(term=Reference("publish_time"), value=literal(first)),
        LessThanOrEqual(term=Reference("publish_time"), value=literal(last)),
        In(term=Reference("message_id"), values={literal(message_id) for message_id, _ in messages}),
    )
