"""The steps of the end-to-end test on the local AWS, and what must hold after each."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.aws_local.stage import Stage, wait_until
from tests.aws_local.stage_books import StageBooks
from tests.aws_local.stage_story import FULL, STANDARDIZED_ONLY, TOPICS, StageStory, rows_of
from tests.e2e.cli import LEAN_OPS

_ZONES: Final = {FULL: ("standardized", "curated"), STANDARDIZED_ONLY: ("standardized",)}
_PIPELINES: Final = {"standardized": "standardization", "curated": "curated"}
_SOURCES: Final = {"standardized": "raw", "curated": "standardized"}
# Seconds on a free machine; this is for one that is busy with something else.
_PATIENCE_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Play:
    """A story on a stage; `moment` in its methods is how many waves were sent, and how many of each topic processed."""

    stage: Stage
    story: StageStory
    folder: Path

    @property
    def books(self) -> StageBooks:
        return StageBooks(self.stage)

    def send(self, wave: int) -> None:
        """A wave to the queues; returns when all of it is in RAW or among the dead letters."""
        for topic in TOPICS:
            self.stage.send(topic, self.story.bodies(topic, wave))
        expected = {
            topic: {name: rows[name] for name in ("raw", "dlq_errors")}
            for topic, rows in rows_of(self.story.fates(wave + 1, {})).items()
        }

        def arrived() -> dict[str, dict[str, int]]:
            rows = self.books.rows(TOPICS)
            return {topic: {name: rows[topic][name] for name in ("raw", "dlq_errors")} for topic in TOPICS}

        wait_until(lambda: self.stage.waiting() == 0, _PATIENCE_SECONDS, self.stage.said)
        wait_until(lambda: arrived() == expected, _PATIENCE_SECONDS, lambda: f"{expected}, but {arrived()}")

    # what must hold

    def check_tables(self, sent: int, processed: Mapping[str, int]) -> None:
        """Every table has exactly the rows that the oracle tells of, and every message its fate."""
        fates = self.story.fates(sent, processed)
        assert self.books.rows(TOPICS) == rows_of(fates)
        file = self.folder / f"fates-{sent}-{'-'.join(map(str, processed.values()))}.jsonl"
        file.write_text("".join(f"{json.dumps(fate)}\n" for fate in fates), encoding="utf-8")
        told = self.lean_ops("verify", "--fates", str(file), "--complete")
        assert (told["matches"], told["differences"], told["unknown"]) == (True, 0, 0), told
        assert told["lines"] == len(fates)

    def check_checkpoints(self, heads: Mapping[tuple[str, str], str]) -> None:
        """Each hop has read to these snapshots: by its table's own commits, by DynamoDB, and by the ledger."""
        for (topic, zone), head in heads.items():
            assert self.books.read_until(zone, topic) == head, (topic, zone)
            assert self.checkpoint(topic, zone) == head, (topic, zone)
            assert self.batches(topic, zone)[-1]["to_snapshot"] == head, (topic, zone)

    def check_ledger(self, sent: int, processed: Mapping[str, int]) -> None:
        """All batches balance, each begins where the one before ended, and their sums are the tables' rows."""
        rows = rows_of(self.story.fates(sent, processed))
        duplicates = Counter(fate["topic"] for fate in self.story.fates(sent, processed) if fate["fate"] == "duplicate")
        for topic, zones in _ZONES.items():
            for zone in zones:
                batches = self.batches(topic, zone)
                assert all(batch["balanced"] for batch in batches)
                begins = [batch["from_snapshot"] for batch in batches]
                assert begins == [None, *(batch["to_snapshot"] for batch in batches[:-1])], (topic, zone)
                errors = rows[topic]["parse_errors" if zone == "standardized" else "errors"]
                sums = {name: sum(batch[name] for batch in batches) for name in ("inserted", "errors")}
                assert sums == {"inserted": rows[topic][zone], "errors": errors}, (topic, zone)
            taken = sum(batch["records_in"] for batch in self.batches(topic, "standardized"))
            assert taken == rows[topic]["standardized"] + rows[topic]["parse_errors"] + duplicates[topic]
            assert sum(batch["duplicates"] for batch in self.batches(topic, "standardized")) == duplicates[topic]

    def batches(self, topic: str, zone: str) -> list[dict[str, Any]]:
        """The ledger's lines of a hop."""
        return [line for line in self.books.ledger(topic) if (line["zone"], line["kind"]) == (zone, "BATCH")]

    def checkpoint(self, topic: str, zone: str) -> str:
        """How far a hop has read, by DynamoDB."""
        return self.books.checkpoints()[f"{_PIPELINES[zone]}_{topic}"]

    def heads(self, topics: Mapping[str, str]) -> dict[tuple[str, str], str]:
        """Where hops must have read to: the newest snapshots of what they read, for these topics' zones."""
        return {(topic, zone): self.books.head(_SOURCES[zone], topic) for topic, zone in topics.items()}

    def history(self) -> Counter[tuple[str, str, str]]:
        """How often each topic's hop ended how."""
        found = self.books.query("SELECT topic_name, zone, status FROM ops.job_run_history")
        return Counter((row["topic_name"], row["zone"], row["status"]) for row in found)

    def lean_ops(self, *arguments: str) -> Any:
        """A command of the product on this environment; its document."""
        command = [str(LEAN_OPS), "--profile", "aws", *arguments, "--json"]
        environ = {**os.environ, **self.stage.environ()}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environ, check=False)
        assert done.returncode in (0, 1), f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    # what goes wrong

    @contextmanager
    def unreachable_file(self, topic: str) -> Iterator[None]:
        """A file of RAW that nobody has read yet is not there, until the end of the block."""
        lake = self.stage.lake()
        table = lake.load(lake.names.raw(topic))
        read = int(self.checkpoint(topic, "standardized"))
        known = {task.file.file_path for task in table.scan(snapshot_id=read).plan_files()}
        new = next(task.file.file_path for task in table.scan().plan_files() if task.file.file_path not in known)
        bucket, _, key = new.removeprefix("s3://").partition("/")
        s3 = self.stage.client("s3")
        content = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        s3.delete_object(Bucket=bucket, Key=key)
        try:
            yield
        finally:
            s3.put_object(Bucket=bucket, Key=key, Body=content)
