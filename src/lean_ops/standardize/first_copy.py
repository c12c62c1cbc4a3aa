"""First copy wins: which rows of a batch are new messages."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from lean_ops.lake.kernel import java_class, named
from lean_ops.model.tables import RAW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lean_ops.standardize.flatten import Report

MESSAGE: Final = ("message_id", "publish_time")
_FILE: Final = "_row_file"
_POSITION: Final = "_row_position"
_HASH: Final = "_message_hash"
_TURN: Final = "_file_turn"
# So many hashes fit in every task's memory; more of them are sorted on disk.
_HANDED_OUT: Final = 4_000_000
_ROW: Final = tuple(column.name for column in RAW.columns)
ROW: Final = ", ".join(_ROW)
# What makes one copy the first: the lowest of these; the rest of the row only makes the choice repeatable.
_ORDER: Final = ("ingestion_ts", "json_payload")
COPY_ORDER: Final = (*_ORDER, *(name for name in _ROW if name not in {*_ORDER, *MESSAGE}))
_COPY: Final = ", ".join(COPY_ORDER)

Address = tuple[str, int]


def with_row_address(source: str) -> str:
    """SQL that selects RAW rows with the file and position that tell two equal rows apart."""
    return f"SELECT {ROW}, _file AS {_FILE}, _pos AS {_POSITION} FROM {source}"  # noqa: S608  our own names


def first_copies(
    raw: DataFrame,
    earlier: DataFrame | None,
    observed: DataFrame | None = None,
    turns: Mapping[str, int] | None = None,
) -> DataFrame:
    """The first copy of each message that no earlier batch has seen, as RAW rows.

    `raw` has row addresses; `earlier` holds the ids (MESSAGE) of messages that already have a fate. Inside the
    batch the lowest (ingestion_ts, payload text) is first. Only ids travel, and the payloads of the few messages that
    have several copies. `observed` is `raw` as it is to be read where each row passes exactly once. A copy in a file of
    an earlier turn goes before all of later ones.
    """
    rows = raw if observed is None else observed
    return _by_moving_ids(raw, earlier, rows, turns or {}).select(*_ROW)


@contextmanager
def passing(spark: SparkSession, left_out: Iterable[Address], report: Report | None = None) -> Iterator[str]:
    """A condition on RAW rows for statements in the block: all but those at these addresses meet it.

    Every row that is asked about is counted, if there is a report.
    """
    positions: dict[str, list[str]] = {}
    for file, position in left_out:
        positions.setdefault(file, []).append(str(position))
    text = json.dumps({"files": list(positions.items())}, ensure_ascii=False)
    report_sum = report.sum if report is not None else None
    with named(spark, java_class(spark, "flatten.Seen")(report_sum, text)) as name:
        yield f"{name}(ingestion_ts, _file, _pos)"


def may_be_copies(messages: DataFrame, raw: DataFrame, records: int) -> DataFrame:
    """Those of the messages that the batch of so many records may hold, and hardly any others: hashes are compared."""
    in_batch = raw.selectExpr(f"{_hash()} AS {_HASH}")
    in_batch = F.broadcast(in_batch) if records <= _HANDED_OUT else in_batch
    return messages.join(in_batch, F.expr(_hash()) == F.col(_HASH), "left_semi")


def _hash() -> str:
    return f"xxhash64({', '.join(MESSAGE)})"


def _by_moving_ids(raw: DataFrame, earlier: DataFrame | None, rows: DataFrame, turns: Mapping[str, int]) -> DataFrame:
    """A shuffle of hashes finds the messages with several copies; a small list of their winners goes to the rows."""
    copies = raw.groupBy(F.expr(_hash()).alias(_HASH)).agg(F.expr("count(*) AS _copies"))
    winners = _winners(raw, copies.where("_copies > 1").select(_HASH), turns)
    kept = rows.join(F.broadcast(winners), on=list(MESSAGE), how="left").where(
        f"_winner IS NULL OR (_winner.{_FILE} = {_FILE} AND _winner.{_POSITION} = {_POSITION})"
    )
    if earlier is not None:
        kept = kept.join(F.broadcast(earlier), on=list(MESSAGE), how="left_anti")
    return kept


def _winners(raw: DataFrame, repeated: DataFrame, turns: Mapping[str, int]) -> DataFrame:
    """The first copy's address for each message whose hash was seen several times."""
    copies = raw.join(F.broadcast(repeated), F.expr(_hash()) == F.col(_HASH), "left_semi")
    turn = f"coalesce({_TURN}, -1), " if turns else ""
    if turns:
        of_files = raw.sparkSession.createDataFrame(list(turns.items()), f"{_FILE} string, {_TURN} int")
        copies = copies.join(F.broadcast(of_files), on=_FILE, how="left")
    first = F.expr(f"min(struct({turn}{_COPY}, {_FILE}, {_POSITION})) AS _first")
    winner = f"struct(_first.{_FILE}, _first.{_POSITION}) AS _winner"
    return copies.groupBy(*MESSAGE).agg(first).selectExpr(*MESSAGE, winner)
