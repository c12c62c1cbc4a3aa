"""Both ways of finding first copies, the one that moves rows and the one that moves ids, choose the same rows."""

from __future__ import annotations

from typing import Any

import pytest
from tests.spark.driver import TopicDriver
from tests.spark.test_any_batches import any_batches

from lean_ops.lake.snapshots import history_of
from lean_ops.model.batch import Batch, Zone
from lean_ops.standardize.first_copy import first_copies, may_be_copies
from lean_ops.standardize.source import range_files, read_raw

pytestmark = pytest.mark.spark


def test_moving_rows_and_moving_ids_find_the_same_first_copies(topic: TopicDriver) -> None:
    rows = [row for seed in range(4) for batch in any_batches(seed) for row in batch]
    topic.put(*rows[: len(rows) // 2])
    topic.put(*rows[len(rows) // 2 :])
    lake, spark = topic.services.lake, topic.services.sessions.mine()
    head = history_of(lake.load(lake.names.raw(topic.name))).head
    assert head is not None
    batch = Batch(topic.name, Zone.STANDARDIZED, None, head, "1.0.0")
    raw = read_raw(spark, lake, batch, range_files(lake, batch))
    earlier = raw.select("message_id", "publish_time").where("message_id < 'm15'")

    def chosen(small: bool, seen: Any) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in first_copies(raw, seen, small).collect()), key=repr)

    others = earlier.selectExpr("concat('x', message_id) AS message_id", "publish_time")
    for records in (len(rows), 10**9):
        likely = may_be_copies(earlier.unionAll(others), raw, records).distinct()
        assert sorted(map(tuple, likely.collect())) == sorted(map(tuple, earlier.distinct().collect()))

    without, with_earlier = chosen(True, None), chosen(True, earlier)
    assert chosen(False, None) == without
    assert chosen(False, earlier) == with_earlier
    messages = {(row["message_id"], row["publish_time"]) for row in rows}
    assert len(without) == len(messages)
    assert len(with_earlier) == sum(message_id >= "m15" for message_id, _ in messages)
    assert 0 < len(with_earlier) < len(without)
