"""What RAW, `dlq_errors` and the archive hold at the end, compared with what came in."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.e2e.ingestion_stage import Stage
from tests.e2e.ingestion_story import ALL_TOPICS, RAW, Published

from lean_ops.ingest.archive_file import read_body
from lean_ops.lake.catalog import Lake
from lean_ops.wiring import Services


@dataclass
class Books:
    """Read once, by a reader of its own."""

    stage: Stage

    @cached_property
    def _lake(self) -> Lake:
        from lean_ops.settings import load_settings

        return Services(load_settings({"profile": "aws"}, self.stage.aws.told())).lake

    @cached_property
    def raw(self) -> dict[str, list[dict[str, Any]]]:
        """RAW's rows by message id."""
        found: dict[str, list[dict[str, Any]]] = {}
        for topic in ALL_TOPICS:
            for row in self._lake.load(self._lake.names.raw(topic)).scan().to_arrow().to_pylist():
                assert row["topic_name"] == topic
                found.setdefault(row["message_id"], []).append(row)
        return found

    @cached_property
    def letters(self) -> list[dict[str, Any]]:
        """All rows of `dlq_errors`."""
        rows: list[dict[str, Any]] = self._lake.load(self._lake.names.dlq_errors).scan().to_arrow().to_pylist()
        return rows

    def letters_written(self) -> int:
        """How many rows `dlq_errors` has, without reading them."""
        snapshot = self._lake.load(self._lake.names.dlq_errors).current_snapshot()
        return int(snapshot.summary["total-records"] or 0) if snapshot and snapshot.summary else 0

    # the checks

    def check_raw(self) -> None:
        """Every good message at least once, unchanged, and nobody else."""
        good = {message_id: one for message_id, one in self.stage.published.items() if one.fate == RAW}
        assert not good.keys() - self.raw.keys(), _some("lost", good.keys() - self.raw.keys())
        assert not self.raw.keys() - good.keys(), _some("unknown in RAW", self.raw.keys() - good.keys())
        for message_id, one in good.items():
            for row in self.raw[message_id]:
                assert row["topic_name"] == one.topic, message_id
                assert row["json_payload"] == one.payload(), f"{message_id}, {one.kind}"
                assert row["idempotency_key"] == one.key, message_id

    def check_letters(self) -> None:
        """One row for each refused queue message with its reason, and none for anybody else."""
        assert Counter(map(self.what_it_is, self.letters)) == self.expected_letters()
        paths = [row["archive_path"] for row in self.letters]
        assert len(set(paths)) == len(paths)

    def what_it_is(self, row: dict[str, Any]) -> tuple[str, str, str]:
        """The refused thing's id, topic and error type: the Pub/Sub message's id, or the queue message's own."""
        archive_id = row["archive_path"].rpartition("/")[2].removesuffix(".json")
        known = archive_id if archive_id in self.stage.sent else row["message_id"]
        return known, row["topic_name"], row["error_type"]

    def expected_letters(self) -> Counter[tuple[str, str, str]]:
        """How many rows there must be of what; the bridge, once killed, sends a message to its queue again."""
        copies = self.stage.seen.copies()
        expected = Counter({(sqs_id, one.topic, one.fate): 1 for sqs_id, one in self.stage.sent.items()})
        for message_id, one in self.stage.published.items():
            if one.fate != RAW:
                expected[message_id, one.topic, one.fate] = copies.get(message_id, 1)
        return expected

    def check_archive(self) -> None:
        """Every dead letter's file holds the whole body."""
        with ThreadPoolExecutor(8) as readers:
            list(readers.map(self._check_file, self.letters))

    def _check_file(self, row: dict[str, Any]) -> None:
        file = self.stage.aws.s3.get_object(Bucket=self.stage.aws.bucket, Key=row["archive_path"])["Body"].read()
        facts, pieces = read_body(io.BytesIO(file), row["archive_path"])
        body = b"".join(pieces).decode()
        known, topic, error_type = self.what_it_is(row)
        assert (facts["topic_name"], facts["error_type"]) == (topic, error_type)
        assert row["archive_path"].startswith(f"dlq-archive/{topic}/")
        if known in self.stage.sent:
            assert body == self.stage.sent[known].body
        else:
            _check_body(body, known, self.stage.published[known])

    # the report

    def summary(self) -> str:
        """What there was, in a small table."""
        kinds = Counter(one.kind for one in self.stage.published.values())
        kinds.update(one.kind for one in self.stage.sent.values())
        seen, letters = self.stage.seen, self.stage.letters_seen
        copies = sum(len(rows) - 1 for rows in self.raw.values())
        bridged = sum(count - 1 for one, count in seen.copies().items() if one in self.stage.published)
        facts = {
            "messages in RAW": len(self.raw),
            "copies in RAW": copies,
            "rows of dlq_errors": len(self.letters),
            "messages that the bridge sent twice": bridged,
            "queue messages delivered again": seen.receives.total() - len(seen.receives),
            "dead letters delivered again": letters.receives.total() - len(letters.receives),
            "dead letters sent twice": len(letters.receives) - len(self.letters),
        }
        groups = (("came in", kinds), ("happened", self.stage.faults.counts), ("in the end", facts))
        return "\n".join(_shown(name, group) for name, group in groups)


def _shown(name: str, group: Mapping[str, int]) -> str:
    return "\n".join([f"-- {name}", *(f"{count:>9,}  {what}" for what, count in sorted(group.items()))])


def _check_body(body: str, message_id: str, one: Published) -> None:
    if one.kind == "binary":
        value = json.loads(body)
        assert (value["message_id"], base64.b64decode(value["payload_base64"])) == (message_id, one.data)
    else:
        assert body.startswith(f'{{"message_id":"{message_id}",')
        assert body.endswith(f'"payload":{one.data.decode()}}}')


def _some(what: str, ids: set[str]) -> str:
    return f"{len(ids)} {what}, such as {sorted(ids)[:5]}"
