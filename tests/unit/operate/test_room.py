from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lean_ops.model.batch import Batch, Zone
from lean_ops.model.registry import Gate
from lean_ops.operate.plan import HopPlan, PlannedBatch, TopicPlan
from lean_ops.operate.room import SMALL_PER_WORKER, Room, is_small

OPEN = Gate(open=True, reason="", schema_version="1.0.0", declared=())


def topic(records: int, merged_into: int = 0) -> TopicPlan:
    batch = Batch("t", Zone.STANDARDIZED, "1.0.0", None, 1)
    hops = (HopPlan(Zone.STANDARDIZED, (PlannedBatch(batch, records, False),)), HopPlan(Zone.CURATED, follows=True))
    return TopicPlan("t", OPEN, hops, merged_into=merged_into)


class Crowd:
    """Topics that come in and stay until they are let go."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._inside: list[TopicPlan] = []
        self._changed = threading.Condition()
        self._leave = threading.Event()
        self.most = 0

    def visit(self, plan: TopicPlan) -> None:
        with self._room.of(plan):
            with self._changed:
                self._inside.append(plan)
                self.most = max(self.most, len(self._inside))
                self._changed.notify_all()
            assert self._leave.wait(30)
            with self._changed:
                self._inside.remove(plan)

    def has(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self._inside) == count, 30)

    def go(self) -> None:
        self._leave.set()


@pytest.mark.parametrize(
    ("records", "merged_into", "expected"),
    [(0, 0, True), (10_000, 200_000, True), (10_001, 0, False), (1, 200_001, False)],
)
def test_a_topic_is_small_by_its_records_and_by_its_table(records: int, merged_into: int, expected: bool) -> None:
    assert is_small(topic(records, merged_into)) is expected


@pytest.mark.parametrize(
    ("workers", "records", "expected"),
    [(4, 1, 4 * SMALL_PER_WORKER), (4, 50_000, 4), (2, 50_000, 2), (1, 1, 1), (1, 50_000, 1)],
)
def test_few_large_topics_or_many_small_ones_are_at_work(workers: int, records: int, expected: int) -> None:
    room = Room(workers)
    crowd, plans = Crowd(room), [topic(records) for _ in range(2 * expected)]
    with ThreadPoolExecutor(len(plans)) as pool:
        visits = [pool.submit(crowd.visit, plan) for plan in plans]
        try:
            assert crowd.has(expected)
        finally:
            crowd.go()
        for visit in visits:
            visit.result(30)
    assert crowd.most == expected


def test_a_topic_that_fails_leaves_its_room_to_others() -> None:
    room = Room(1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed"), room.of(topic(1)):
            raise RuntimeError("failed")
