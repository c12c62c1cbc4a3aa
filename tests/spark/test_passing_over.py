"""A merge into a large table passes over the rows that its batch can't concern; the result is the same."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from tests.spark.driver import TopicDriver, at

from lean_ops.curate import hop as curate_hop
from lean_ops.curate.judge import new_key_hashes
from lean_ops.curate.merge import can_pass_over
from lean_ops.model.batch import Counts
from lean_ops.wiring import Services

pytestmark = pytest.mark.spark

ODD_KEYS = ["k", "K", "k ", "ключ", "😀", "a'b\"c`d\\e", "x" * 5000, "line\nbreak", "nul\0l"]


def message(message_id: str, value: int, key: str, day: float = 0, ingested: int = 100) -> dict[str, Any]:
    place = {"idempotency_key": key, "publish_time": at(day), "ingestion_ts": ingested}
    return {"message_id": message_id, "json_payload": f'{{"v":"{value}"}}', **place}


@pytest.mark.parametrize("partitioning", [[], ["bucket(4, idempotency_key)"]], ids=["plain", "buckets"])
def test_every_key_of_the_batch_is_found_whatever_it_looks_like(
    topic: TopicDriver, partitioning: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.use_schema({"v": {"type": "INT"}}, partitioning=partitioning)
    topic.put(*(message(f"a{number}", number, key) for number, key in enumerate([*ODD_KEYS, "other", "tie"])))
    assert topic.run() is not None

    monkeypatch.setattr(curate_hop, "can_pass_over", lambda *_: True)
    topic.put(
        *(message(f"b{number}", 100 + number, key, day=1) for number, key in enumerate(ODD_KEYS)),
        message("late", 0, "other", day=-1),
        message("a0-later", 7, "tie", ingested=101),
        *(message(f"c{number}", number, f"new {number}") for number in range(50)),
    )
    outcome = topic.run()
    assert outcome is not None
    updated = len(ODD_KEYS) + 1
    assert outcome.batches[-1].counts == Counts(updated + 51, inserted=50, updated=updated, superseded=1)
    expected = {key: 100 + number for number, key in enumerate(ODD_KEYS)} | {"other": len(ODD_KEYS), "tie": 7}
    assert {key: row["v"] for key, row in topic.curated().items()} == expected | {f"new {n}": n for n in range(50)}


def test_a_batch_whose_rows_are_all_refused_passes_over_everything(
    topic: TopicDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.use_schema({"v": {"type": "INT"}})
    topic.put(message("a", 1, "k"))
    assert topic.run() is not None
    monkeypatch.setattr(curate_hop, "can_pass_over", lambda *_: True)
    topic.put({**message("b", 2, "k", day=1), "json_payload": '{"v":"x"}'}, message("c", 3, "k2", day=1))
    assert topic.run() is not None
    assert {key: row["v"] for key, row in topic.curated().items()} == {"k": 1, "k2": 3}


@pytest.mark.parametrize("keys", [0, 1, 2, 3, 1000, 30_000])
def test_the_filter_knows_all_its_keys_and_takes_few_others_for_them(services: Services, keys: int) -> None:
    spark = services.sessions.mine()
    hashes = new_key_hashes(spark)
    seen = spark.range(keys).selectExpr("xxhash64(concat('k', id)) AS h").toArrow().column(0).to_pylist()
    array = spark.sparkContext._gateway.new_array(spark._jvm.long, keys)
    for place, value in enumerate(seen):
        array[place] = value
    hashes.add(array)
    among = hashes.about()
    text = spark._jvm.org.apache.spark.unsafe.types.UTF8String.fromString
    assert all(among.invoke(text(f"k{number}")) for number in range(0, keys, max(1, keys // 300)))
    others = [uuid.UUID(int=number * 7919).hex for number in range(2000)]
    assert sum(among.invoke(text(other)) for other in others) <= 20


def test_a_look_at_the_keys_is_taken_where_it_pays() -> None:
    assert can_pass_over(30_000, 1_000_000)
    assert not can_pass_over(200, 100_000)  # a small table is read at once
    assert not can_pass_over(500_000, 1_000_000)  # most of the table may be concerned
    assert not can_pass_over(20_000_000, 10**9)  # the keys would not fit
