"""Refused rows on their way from a Spark job to an error table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from lean_ops.model.batch import Batch
    from lean_ops.model.tables import TableShape


def completed(rows: pa.Table, shape: TableShape, batch: Batch, now: datetime) -> pa.Table:
    """The rows as their error table has them: with the batch, the time, and a replay yet to come.

    They bring `publish_time` as microseconds since 1970, which no time zone can bend on the way.
    """
    import pyarrow as pa

    moment = pa.timestamp("us", "UTC")
    publish_time = rows.column("publish_time").cast(pa.int64()).cast(moment)
    rows = rows.set_column(rows.schema.get_field_index("publish_time"), "publish_time", publish_time)
    processed = pa.scalar(round(now.timestamp() * 1_000_000), pa.int64()).cast(moment)
    for name, value in (
        ("processed_ts", processed),
        ("batch_id", pa.scalar(batch.batch_id)),
        ("replay_status", pa.scalar("NEW")),
        ("replay_id", pa.scalar(None, pa.string())),
    ):
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows.select([column.name for column in shape.columns])
