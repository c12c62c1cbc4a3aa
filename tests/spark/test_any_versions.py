"""New, repeated, corrected, late and broken messages in any order and any split into batches: both zones and their
books end as a small oracle says."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.driver import TopicDriver, at, run_topics

from lean_ops.ledger.books import RunStatus
from lean_ops.model.batch import Counts

pytestmark = pytest.mark.spark

Message = dict[str, Any]
SCHEMA = {"v": {"type": "INT", "min": 0}, "at": {"type": "TIMESTAMP"}, "who": {"cde": True}}
ROUNDS = 3


class Oracle:
    """The rules in a few lines: a message's first copy decides; of a key's good versions the newest stays."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, Any]] = set()
        self.curated: dict[str, tuple[Any, ...]] = {}
        self.errors: set[str] = set()

    def take(self, batch: list[Message]) -> tuple[Counts, Counts]:
        copies = sorted(batch, key=lambda row: (row["ingestion_ts"], row["json_payload"]))
        firsts = {row["message_id"]: row for row in reversed(copies) if row["message_id"] not in self.seen}
        self.seen |= firsts.keys()
        rows = [row for row in firsts.values() if row["json_payload"].startswith("{")]
        parsed = [(row, json.loads(row["json_payload"])) for row in rows]
        good = [(row, p) for row, p in parsed if row["idempotency_key"] and p.get("who") and str(p["v"]).isdecimal()]
        self.errors |= {row["message_id"] for row in rows} - {row["message_id"] for row, _ in good}
        before, winners = dict(self.curated), set()
        for row, p in good:
            time = row["publish_time"]
            version = (p.get("at") or time.isoformat(), time, row["ingestion_ts"], row["message_id"], p["v"])
            if version > self.curated.get(row["idempotency_key"], ("",)):
                self.curated[row["idempotency_key"]] = version
                winners.add(row["idempotency_key"])
        new = len(self.curated.keys() - before.keys())
        standardized = Counts(len(batch), len(rows), 0, len(batch) - len(firsts), 0, len(firsts) - len(rows))
        lost = len(good) - len(winners)
        return standardized, Counts(len(rows), new, len(winners) - new, 0, lost, len(rows) - len(good))


def any_messages(chosen: random.Random) -> list[Message]:
    """Messages about few keys, so that all that can happen to a key does; some sent again, some of that changed."""
    sent: list[Message] = []
    for number in range(chosen.randrange(20, 90)):
        day = chosen.choice([-90, -1, 0, 0.25, 0.5, 1, 2])
        payload: Any = {"v": chosen.choice([number, number, number, -1, "x", "1.5"])}
        payload |= chosen.choice([{"who": "w"}] * 6 + [{}, {"who": " "}, {"who": None}])
        payload |= chosen.choice([{}, {"at": at(chosen.choice([-3, 0, 0, 1])).isoformat()}])
        payload["who"] = (payload.get("who") or "").strip() or None
        sent.append(
            {
                "message_id": f"m{number}",
                "publish_time": at(day),
                "ingestion_ts": chosen.randrange(4),
                "idempotency_key": chosen.choice([f"k{chosen.randrange(8)}"] * 15 + [None, ""]),
                "json_payload": chosen.choice([json.dumps(payload)] * 9 + ["broken", "", "[]"]),
            }
        )
    again = [{**row, "ingestion_ts": chosen.randrange(4)} for row in chosen.choices(sent, k=len(sent) // 3)]
    messages = sent + again
    chosen.shuffle(messages)
    return messages


def any_split(chosen: random.Random, messages: list[Message]) -> list[list[Message]]:
    cuts = sorted(chosen.choices(range(len(messages) + 1), k=ROUNDS - 1))
    return [messages[start:end] for start, end in zip([0, *cuts], [*cuts, len(messages)], strict=True)]


def test_any_messages_in_any_split_end_as_the_oracle_says(new_topic: Callable[[], TopicDriver]) -> None:
    cases = []
    gate = new_topic().gate
    for seed in range(8):
        chosen = random.Random(seed)  # noqa: S311  the same messages every time
        topic = new_topic()
        topic.gate = gate
        partitioning = chosen.choice([[], ["bucket(3, idempotency_key)"]])
        topic.use_schema(SCHEMA, version_column="at", partitioning=partitioning)
        cases.append((topic, any_split(chosen, any_messages(chosen)), Oracle()))

    for number in range(ROUNDS):
        expected = {}
        for topic, batches, oracle in cases:
            if batches[number]:
                topic.put(*batches[number])
                expected[topic.name] = oracle.take(batches[number])
        outcomes = run_topics(cases[0][0].services, gate, list(expected))
        for name, (standardized, curated) in expected.items():
            outcome = outcomes[name]
            assert (outcome.status, outcome.reason) == (RunStatus.SUCCEEDED, None)
            assert [batch.counts for batch in outcome.batches] == [standardized, curated], name

    for topic, _, oracle in cases:
        found = {
            key: (row["publish_time"], row["ingestion_ts"], row["message_id"], row["v"])
            for key, row in topic.curated().items()
        }
        assert found == {key: version[1:] for key, version in oracle.curated.items()}
        assert {row["message_id"] for row in topic.shared("errors")} == oracle.errors
        assert len(topic.shared("errors")) == len(oracle.errors)
        for zone, rows in (("standardized", len(topic.standardized())), ("curated", len(found))):
            books = [row for row in topic.shared("reconciliation_log") if row["zone"] == zone]
            assert sum(row["inserted"] for row in books) == rows
            assert all(row["balanced"] for row in books)
    assert sum(len(oracle.curated) for _, _, oracle in cases) > 40
