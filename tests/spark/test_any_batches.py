"""Messages in any order, split into batches in any way: Standardized equals a small oracle, and the books balance."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.reference.payload import Refusal, parse_payload
from tests.spark.driver import TopicDriver, at, run_topics

from lean_ops.model.batch import Counts

pytestmark = pytest.mark.spark

PAYLOADS = ['{"v":1}', '{"v":2,"w":{"x":"y"}}', '{"V":"big"}', "{broken", "", None, "[1]", '{"v":{"deep":1.0}}']
Batch = list[dict[str, Any]]


def any_batches(seed: int) -> list[Batch]:
    """A few batches of messages with many copies: in a batch, across batches, on several days."""
    chosen = random.Random(seed)  # noqa: S311  the same batches every time
    return [
        [
            {
                "message_id": f"m{chosen.randrange(25)}",
                "publish_time": at(chosen.choice([-40, 0, 0, 1])),
                "ingestion_ts": chosen.randrange(4),
                "json_payload": chosen.choice(PAYLOADS),
            }
            for _ in range(chosen.randrange(1, 40))
        ]
        for _ in range(3)
    ]


class Oracle:
    """The rule in a few lines: the first copy of a message decides, for good."""

    def __init__(self) -> None:
        self.standardized: dict[tuple[str, Any], str] = {}
        self.refused: dict[tuple[str, Any], str | None] = {}

    def take(self, batch: Batch) -> Counts:
        firsts: dict[tuple[str, Any], tuple[int, str]] = {}
        for row in batch:
            message = (row["message_id"], row["publish_time"])
            if message not in self.standardized and message not in self.refused:
                copy = (row["ingestion_ts"], row["json_payload"] is not None, row["json_payload"] or "")
                firsts[message] = min(firsts.get(message, copy), copy)
        good, bad = 0, 0
        for message, (_, has_payload, text) in firsts.items():
            payload = text if has_payload else None
            if isinstance(parse_payload(None if payload is None else payload.encode()), Refusal):
                self.refused[message], bad = payload, bad + 1
            else:
                self.standardized[message], good = payload, good + 1
        return Counts(records_in=len(batch), inserted=good, errors=bad, duplicates=len(batch) - good - bad)


@pytest.mark.parametrize(("small_rows", "seeds"), [(50_000, range(8)), (0, range(8, 12))], ids=["small", "large"])
def test_any_sequence_of_batches_ends_as_the_oracle_says(
    new_topic: Callable[[], TopicDriver], monkeypatch: pytest.MonkeyPatch, small_rows: int, seeds: range
) -> None:
    monkeypatch.setattr("lean_ops.standardize.write._SMALL_ROWS", small_rows)
    cases = [(new_topic(), any_batches(seed), Oracle()) for seed in seeds]
    for number in range(3):
        for topic, batches, _ in cases:
            topic.put(*batches[number])
        first = cases[0][0]
        outcomes = run_topics(first.services, first.gate, [topic.name for topic, _, _ in cases])
        for topic, batches, oracle in cases:
            assert outcomes[topic.name].batches[0].counts == oracle.take(batches[number])
    for topic, _, oracle in cases:
        rows = {(row["message_id"], row["publish_time"]) for row in topic.standardized()}
        assert rows == oracle.standardized.keys()
        assert len(topic.standardized()) == len(rows)
        refused = {(row["message_id"], row["publish_time"]): row["raw_payload"] for row in topic.shared("parse_errors")}
        assert refused == oracle.refused
        assert sum(row["inserted"] for row in topic.shared("reconciliation_log")) == len(rows)
        assert all(row["balanced"] for row in topic.shared("reconciliation_log"))
