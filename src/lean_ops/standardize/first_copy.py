"""First copy wins: which rows of a batch are new messages, decided on ids without moving payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MESSAGE: Final = ("message_id", "publish_time")
_FILE: Final = "_row_file"
_POSITION: Final = "_row_position"


def with_row_address(raw: DataFrame) -> DataFrame:
    """RAW rows with the file and position that tell two equal rows apart."""
    return raw.select("*", F.col("_file").alias(_FILE), F.col("_pos").alias(_POSITION))


def first_copies(raw: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """The first copy of each message that no earlier batch has seen.

    `raw` has row addresses; `earlier` holds the ids (MESSAGE) of messages that already have a fate. Inside the
    batch the lowest (ingestion_ts, payload text) is first. Only the ids travel; the few messages with several
    copies are then looked at whole, and a small list of them is sent to the rows.
    """
    ids = raw.select(*MESSAGE)
    repeated = ids.groupBy(*MESSAGE).agg(F.count(F.lit(1)).alias("_copies")).where("_copies > 1").select(*MESSAGE)
    kept = raw.join(F.broadcast(_winners(raw, repeated)), on=list(MESSAGE), how="left").where(
        F.col("_winner").isNull()
        | ((F.col("_winner._row_file") == F.col(_FILE)) & (F.col("_winner._row_position") == F.col(_POSITION)))
    )
    if earlier is not None:
        seen = earlier.select(*MESSAGE).join(ids, on=list(MESSAGE), how="left_semi")
        kept = kept.join(F.broadcast(seen), on=list(MESSAGE), how="left_anti")
    return kept.drop("_winner", _FILE, _POSITION)


def _winners(raw: DataFrame, repeated: DataFrame) -> DataFrame:
    """The first copy's address for each message that has several."""
    copies = raw.join(F.broadcast(repeated), on=list(MESSAGE), how="left_semi")
    first = F.min(F.struct("ingestion_ts", "json_payload", _FILE, _POSITION))
    return (
        copies.groupBy(*MESSAGE)
        .agg(first.alias("_first"))
        .select(*MESSAGE, F.struct(F.col(f"_first.{_FILE}"), F.col(f"_first.{_POSITION}")).alias("_winner"))
    )
