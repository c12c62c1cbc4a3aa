"""The three state machines with small functions and jobs, which keep their books in a folder. One test after another.

A topic's data is a file that goes from `raw` by `standardized` to `curated`; a file in `broken` makes the jobs fail for
its topic, one in `standardized_only` ends its way early, one in `shut` shuts its gate.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tests.aws_local.state_machines import FUNCTIONS, JOBS, MACHINES, hastened, render
from tests.integration.aws.cloud_scene import Deployed, wait_until

Document = dict[str, Any]
OVER: Final = ("SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT")
_FOLDERS: Final = ("raw", "standardized", "curated", "broken", "standardized_only", "shut", "once", "wait")
_SHARED: Final = """
import json, os, pathlib, time

def has(kind, topic):
    return (HOME / kind / topic).is_file()

def note(kind, what):
    with (HOME / kind).open("a") as file:
        file.write(json.dumps(what) + "\\n")
"""
_FUNCTION: Final = """
class TransientError(Exception): ...
class TerminalError(Exception): ...

def handler(event, context):
    note("calls", {"function": NAME, "event": event})
    for kind in (TransientError, TerminalError):
        try:
            (HOME / "once" / f"{NAME}.{kind.__name__}").unlink()
        except FileNotFoundError:
            continue
        raise kind("as it was told to")
    return ANSWERS[NAME](event)

def fetch_active_topics(event):
    groups = json.loads((HOME / "groups").read_text())
    return {"groups": [{"topics": group} for group in groups], "topics": sum(map(len, groups)), "shut": 0}

def check_schema(event):
    open_topics = [topic for topic in event["topics"] if not has("shut", topic)]
    standardize = [topic for topic in open_topics if has("raw", topic)]
    curate = [topic for topic in open_topics if has("standardized", topic) and not has("standardized_only", topic)]
    return {
        "topics": [], "open": open_topics, "shut": [topic for topic in event["topics"] if has("shut", topic)],
        "standardize": standardize, "curate": curate, "gate_open": bool(open_topics),
        "has_work": bool(standardize or curate), "curated_ready": bool(curate),
    }

def ensure_table(event):
    return {"ready": event["topics"], "failed": [], "shared": []}

def health(event):
    balanced = not (HOME / "unbalanced").is_file()
    return {"ok": False, "parts": [], "repaired": [], "books": {"balanced": balanced, "unchecked": 0, "variances": []}}

ANSWERS = {f.__name__: f for f in (fetch_active_topics, check_schema, ensure_table, health)}
"""
_JOB: Final = """
import sys

given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
topics = json.loads(given["--topics"])
begun, failed = time.time(), []
while (HOME / "wait" / NAME).is_file():
    time.sleep(0.1)
if SECONDS.is_file():
    time.sleep(float(SECONDS.read_text()))
for topic in topics:
    if has("broken", topic):
        failed.append(topic)
    elif FROM:
        (HOME / FROM / topic).replace(HOME / TO / topic)
given.pop("--JOB_RUN_ID")
note("runs", {"job": NAME, "topics": topics, "given": given, "span": [begun, time.time()]})
if failed:
    sys.exit(f"failed: {', '.join(failed)}")
"""
_WAYS: Final = {"standardized": ("raw", "standardized"), "curated": ("standardized", "curated")}


@dataclass
class Machines:
    """The machines; `home` is where functions and jobs keep their books."""

    deployed: Deployed
    home: Path
    concurrency: int
    arns: dict[str, str] = field(default_factory=dict)

    def make(self) -> None:
        """Functions, jobs, the alerts' topic with a queue that sees them, and the machines."""
        values: dict[str, str | int] = {"alert_topic_arn": self._alert_topic(), "map_concurrency": self.concurrency}
        for name in FUNCTIONS:
            self.deployed.function(name, {"index.py": self._code(name) + _FUNCTION})
            values[f"{name}_arn"] = f"{self._arn('lambda')}:function:{self.deployed.name}-{name}"
        for name in JOBS:
            source, target = _WAYS.get(name, ("", ""))
            code = f"FROM, TO, SECONDS = {source!r}, {target!r}, HOME / 'seconds'\n"
            values[f"{name}_job"] = self.deployed.job(name, self._code(name) + code + _JOB, most_runs=50)
        for name in MACHINES:
            arn = f"{self._arn('states')}:stateMachine:{self.deployed.name}-{name}"
            definition = hastened(render(name, {**values, "state_machine_arn": arn}))
            made = self.states.create_state_machine(
                name=f"{self.deployed.name}-{name}", definition=definition, roleArn=self.deployed.role
            )
            assert made["stateMachineArn"] == arn
            self.arns[name] = arn

    def clear(self) -> None:
        """Nothing is known any more of what was before."""
        shutil.rmtree(self.home, ignore_errors=True)
        for folder in _FOLDERS:
            (self.home / folder).mkdir(parents=True)
        self.alerts()

    def has(self, kind: str, *topics: str) -> None:
        """Put topics' files somewhere."""
        for topic in topics:
            (self.home / kind / topic).touch()

    def found(self, kind: str) -> list[str]:
        """The topics whose files are somewhere."""
        return sorted(file.name for file in (self.home / kind).iterdir())

    def grouped(self, *groups: Sequence[str]) -> None:
        """What is active."""
        (self.home / "groups").write_text(json.dumps(groups))

    # executions

    @cached_property
    def states(self) -> Any:
        return self.deployed.cloud.client("stepfunctions")

    def start(self, machine: str, given: Document | None = None) -> str:
        """An execution's ARN."""
        arn = self.arns[machine]
        return str(self.states.start_execution(stateMachineArn=arn, input=json.dumps(given or {}))["executionArn"])

    def ended(self, execution: str) -> Document:
        """An execution that is over."""

        def look() -> Document:
            found: Document = self.states.describe_execution(executionArn=execution)
            return found

        wait_until(lambda: look()["status"] in OVER)
        return look()

    def execute(self, machine: str, given: Document | None = None) -> Document:
        """Start a machine and wait for its end."""
        return self.ended(self.start(machine, given))

    def passed(self, execution: Document) -> list[str]:
        """The states that an execution entered; those of groups are not told."""
        events = self.states.get_execution_history(executionArn=execution["executionArn"])["events"]
        return [event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event]

    # what became of it

    def calls(self, function: str) -> list[Any]:
        """The events that a function was called with."""
        return [call["event"] for call in self._noted("calls") if call["function"] == function]

    def runs(self, job: str) -> list[Document]:
        """What runs of a job noted."""
        return [run for run in self._noted("runs") if run["job"] == job]

    def alerts(self) -> list[Document]:
        """The alerts that somebody who subscribed has seen, and that were not told here before."""
        found = []
        while messages := self._sqs.receive_message(QueueUrl=self._queue, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                found.append(json.loads(message["Body"]))
                self._sqs.delete_message(QueueUrl=self._queue, ReceiptHandle=message["ReceiptHandle"])
        return found

    def map_counts(self, execution: Document) -> Document:
        """How the groups of a Distributed Map ended."""
        (run,) = self.states.list_map_runs(executionArn=execution["executionArn"])["mapRuns"]
        counts: Document = self.states.describe_map_run(mapRunArn=run["mapRunArn"])["itemCounts"]
        return {name: counts[name] for name in ("total", "succeeded", "failed")}

    def _noted(self, kind: str) -> list[Document]:
        file = self.home / kind
        return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []

    def _code(self, name: str) -> str:
        return f"{_SHARED}\nHOME, NAME = pathlib.Path({str(self.home)!r}), {name!r}\n"

    def _arn(self, service: str) -> str:
        account = self.deployed.role.split(":")[4]
        return f"arn:aws:{service}:{self.states.meta.region_name}:{account}"

    @cached_property
    def _sqs(self) -> Any:
        return self.deployed.cloud.client("sqs")

    @cached_property
    def _queue(self) -> str:
        return str(self._sqs.create_queue(QueueName=f"{self.deployed.name}-alerts")["QueueUrl"])

    def _alert_topic(self) -> str:
        sns = self.deployed.cloud.client("sns")
        arn = str(sns.create_topic(Name=f"{self.deployed.name}-alerts")["TopicArn"])
        queue = f"{self._arn('sqs')}:{self.deployed.name}-alerts"
        assert self._queue
        sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue)
        return arn
