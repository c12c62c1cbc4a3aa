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
_HASH: Final = "_message_hash"
# So many hashes fit in every task's memory; more of them are sorted on disk.
_HANDED_OUT: Final = 4_000_000
_ROW: Final = tuple(column.name for column in RAW.columns)
# What makes one copy the first: the lowest of these; the rest of the row only makes the choice repeatable.
_ORDER: Final = ("ingestion_ts", "json_payload")
_COPY: Final = ", ".join((*_ORDER, *(name for name in _ROW if name not in {*_ORDER, *MESSAGE})))


def with_row_address(raw: DataFrame) -> DataFrame:
    """RAW rows with the file and position that tell two equal rows apart."""
    return raw.selectExpr("*", f"_file AS {_FILE}", f"_pos AS {_POSITION}")


def first_copies(
    raw: DataFrame, earlier: DataFrame | None, small: bool, observed: DataFrame | None = None
) -> DataFrame:
    """The first copy of each message that no earlier batch has seen, as RAW rows.

    `raw` has row addresses; `earlier` holds the ids (MESSAGE) of messages that already have a fate. Inside the
    batch the lowest (ingestion_ts, payload text) is first. What is `small` is read by one task in one job; of the
    rest only ids travel, and the payloads of the few messages that have several copies. `observed` is `raw` as it is
    to be read where each row passes exactly once.
    """
    rows = raw if observed is None else observed
    kept = _in_one_task(rows, earlier) if small else _by_moving_ids(raw, earlier, rows)
    return kept.select(*_ROW)


def may_be_copies(messages: DataFrame, raw: DataFrame, records: int) -> DataFrame:
    """Those of the messages that the batch of so many records may hold, and hardly any others: hashes are compared."""
    in_batch = raw.selectExpr(f"{_hash()} AS {_HASH}")
    in_batch = F.broadcast(in_batch) if records <= _HANDED_OUT else in_batch
    return messages.join(in_batch, F.expr(_hash()) == F.col(_HASH), "left_semi")


def _hash() -> str:
    return f"xxhash64({', '.join(MESSAGE)})"


def _in_one_task(raw: DataFrame, earlier: DataFrame | None) -> DataFrame:
    """The least row of each message that is in the batch alone; nothing is shuffled or broadcast."""
    copies = raw.selectExpr(*MESSAGE, f"struct({_COPY}) AS _copy")
    if earlier is not None:
        copies = copies.unionByName(earlier, allowMissingColumns=True)
    found = copies.coalesce(1).groupBy(*MESSAGE)
    least = found.agg(F.expr("min(_copy) AS _first"), F.expr("count(*) - count(_copy) AS _earlier"))
    return least.where("_earlier = 0").selectExpr(*MESSAGE, "_first.*")


def _by_moving_ids(raw: DataFrame, earlier: DataFrame | None, rows: DataFrame) -> DataFrame:
    """A shuffle of hashes finds the messages with several copies; a small list of their winners goes to the rows."""
    copies = raw.groupBy(F.expr(_hash()).alias(_HASH)).agg(F.expr("count(*) AS _copies"))
    winners = _winners(raw, copies.where("_copies > 1").select(_HASH))
    kept = rows.join(F.broadcast(winners), on=list(MESSAGE), how="left").where(
        f"_winner IS NULL OR (_winner.{_FILE} = {_FILE} AND _winner.{_POSITION} = {_POSITION})"
    )
    if earlier is not None:
        kept = kept.join(F.broadcast(earlier), on=list(MESSAGE), how="left_anti")
    return kept


def _winners(raw: DataFrame, repeated: DataFrame) -> DataFrame:
    """The first copy's address for each message whose hash was seen several times."""
    copies = raw.join(F.broadcast(repeated), F.expr(_hash()) == F.col(_HASH), "left_semi")
    first = F.expr(f"min(struct({_COPY}, {_FILE}, {_POSITION})) AS _first")
    winner = f"struct(_first.{_FILE}, _first.{_POSITION}) AS _winner"
    return copies.groupBy(*MESSAGE).agg(first).selectExpr(*MESSAGE, winner)
