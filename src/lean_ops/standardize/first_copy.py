"""First copy wins: which rows of a batch are new messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from lean_ops.model.tables import RAW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MESSAGE: Final = ("message_id", "publish_time")
_FILE: Final = "_row_file"
_POSITION: Final = "_row_position"
_ROW: Final = tuple(column.name for column in RAW.columns)
# What makes one copy the first: the lowest of these; the rest of the row only makes the choice repeatable.
_ORDER: Final = ("ingestion_ts", "json_payload")


def with_row_address(raw: DataFrame) -> DataFrame:
    """RAW rows with the file and position that tell two equal rows apart."""
    return raw.select("*", F.col("_file").alias(_FILE), F.col("_pos").alias(_POSITION))


def first_copies(raw: DataFrame, earlier: DataFrame | None, small: bool) -> DataFrame:
    """The first copy of each message that no earlier batch has seen, as RAW rows.

    `raw` has row addresses; `earlier` holds the ids (MESSAGE) of messages that already have a fate. Inside the
    batch the lowest (ingestion_ts, payload text) is first. What is `small` is moved whole, in as few jobs as can
    be; of the rest only ids travel, and the payloads of the few messages that have several copies.
    """
    kept = _by_moving_rows(raw) if small else _by_moving_ids(raw)
    if earlier is not None:
        seen = earlier if small else earlier.join(raw.select(*MESSAGE), on=list(MESSAGE), how="left_semi")
        kept = kept.join(F.broadcast(seen), on=list(MESSAGE), how="left_anti")
    return kept.select(*_ROW)


def _by_moving_rows(raw: DataFrame) -> DataFrame:
    """One shuffle of everything: the least row of each message."""
    rest = [name for name in _ROW if name not in {*_ORDER, *MESSAGE}]
    least = F.min(F.struct(*_ORDER, *rest)).alias("_first")
    return raw.groupBy(*MESSAGE).agg(least).select(*MESSAGE, "_first.*")


def _by_moving_ids(raw: DataFrame) -> DataFrame:
    """A shuffle of ids finds the messages with several copies; a small list of their winners goes to the rows."""
    copies = raw.groupBy(*MESSAGE).agg(F.count(F.lit(1)).alias("_copies"))
    winners = _winners(raw, copies.where("_copies > 1").select(*MESSAGE))
    return raw.join(F.broadcast(winners), on=list(MESSAGE), how="left").where(
        F.col("_winner").isNull()
        | ((F.col(f"_winner.{_FILE}") == F.col(_FILE)) & (F.col(f"_winner.{_POSITION}") == F.col(_POSITION)))
    )


def _winners(raw: DataFrame, repeated: DataFrame) -> DataFrame:
    """The first copy's address for each message that has several."""
    copies = raw.join(F.broadcast(repeated), on=list(MESSAGE), how="left_semi")
    rest = [name for name in _ROW if name not in {*_ORDER, *MESSAGE}]
    first = F.min(F.struct(*_ORDER, *rest, _FILE, _POSITION)).alias("_first")
    winner = F.struct(F.col(f"_first.{_FILE}"), F.col(f"_first.{_POSITION}")).alias("_winner")
    return copies.groupBy(*MESSAGE).agg(first).select(*MESSAGE, winner)
