"""A try of a deployed environment: messages in at the queue, the state machine started, the ledger shown."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .aws import waited_for
from .finding import DeployError
from .processes import run, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_IN_A_CALL: Final = 10
MOST_BYTES_IN_A_CALL: Final = 900_000
_ROUNDS: Final = 5
_PAUSE_SECONDS: Final = 5.0
_LONGEST_RUN_SECONDS: Final = 3600
_COMMAND_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Clients:
    """The services that a try talks to."""

    sqs: Any
    functions: Any
    machines: Any


@dataclass(frozen=True, slots=True)
class Trial:
    """A topic of an environment, as Terraform's outputs describe it."""

    topic: str
    outputs: Mapping[str, Any]
    clients: Clients

    @property
    def queue_url(self) -> str:
        """The topic's queue."""
        urls: Mapping[str, str] = self.outputs["queue_urls"]
        if self.topic not in urls:
            raise DeployError(
                f"{self.topic} has no queue; topics: {', '.join(sorted(urls))}. Add it to `topics`, then `make apply`."
            )
        return urls[self.topic]

    def waiting(self) -> int:
        """Records that wait in RAW behind an open gate; DeployError if the gate is shut or something is wrong."""
        answer = self._checked()
        line = answer["topics"][0]
        if self.topic in answer["shut"]:
            raise DeployError(f"the gate of {self.topic} is shut: {line['reason']}. `make schemas` opens it.")
        problems = [line[hop]["problem"] for hop in ("standardized", "curated") if line[hop]["problem"]]
        if problems:
            raise DeployError(f"{self.topic}: {'; '.join(problems)}")
        return int(line["standardized"]["records"])

    def _checked(self) -> dict[str, Any]:
        name = self.outputs["function_names"]["check_schema"]
        answer = self.clients.functions.invoke(FunctionName=name, Payload=json.dumps({"topics": [self.topic]}).encode())
        told = json.loads(answer["Payload"].read())
        if answer.get("FunctionError"):
            raise DeployError(f"{name} failed: {json.dumps(told)[:1000]}")
        checked: dict[str, Any] = told
        return checked

    # the messages

    def send(self, bodies: Sequence[str]) -> None:
        """Every body to the queue; DeployError if some are refused again and again."""
        waiting = list(bodies)
        for _ in range(_ROUNDS):
            waiting = [body for batch in batches(waiting) for body in self._refused(batch)]
            if not waiting:
                return
        raise DeployError(
            f"the queue took all but {len(waiting)} of {len(bodies)} messages; send the rest by another try"
        )

    def _refused(self, batch: Sequence[str]) -> list[str]:
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(batch)]
        answer = self.clients.sqs.send_message_batch(QueueUrl=self.queue_url, Entries=entries)
        faults = [fault for fault in answer.get("Failed", []) if fault.get("SenderFault")]
        if faults:
            raise DeployError(f"the queue refuses a message: {faults[0].get('Message')}")
        return [batch[int(fault["Id"])] for fault in answer.get("Failed", [])]

    def landed(self, expected: int, seconds: float) -> int:
        """Wait until so many records wait in RAW, or a run has begun to take them; how many wait then.

        Firehose keeps messages for up to five minutes before it writes them.
        """
        most = 0

        def look() -> int | None:
            nonlocal most
            there = self.waiting()
            taken, most = there < most, max(there, most)
            return there if there >= expected or taken else None

        return waited_for(f"messages of {self.topic} to land in RAW", look, seconds, _PAUSE_SECONDS)

    # the run

    def run_master(self) -> str:
        """Start the state machine and wait for its end; how it ended. DeployError if it failed."""
        arn = self.outputs["state_machine_arns"]["master"]
        started = self.clients.machines.start_execution(stateMachineArn=arn, name=f"try-{uuid.uuid4()}", input="{}")
        execution = started["executionArn"]
        look = partial(self._ended, execution)
        ended = waited_for(f"the end of {execution}", look, _LONGEST_RUN_SECONDS, _PAUSE_SECONDS)
        if ended["status"] != "SUCCEEDED":
            raise DeployError(f"{execution} {ended['status']}: {ended.get('error')}: {ended.get('cause')}")
        return self._groups(execution)

    def _ended(self, execution: str) -> dict[str, Any] | None:
        shown: dict[str, Any] = self.clients.machines.describe_execution(executionArn=execution)
        return None if shown["status"] == "RUNNING" else shown

    def _groups(self, execution: str) -> str:
        """The groups are executions of their own, whose failures the run tolerates."""
        runs = self.clients.machines.list_map_runs(executionArn=execution)["mapRuns"]
        if not runs:
            return "another run was at work, or no topic has an open gate: this one did nothing"
        counts = self.clients.machines.describe_map_run(mapRunArn=runs[0]["mapRunArn"])["itemCounts"]
        if counts["failed"]:
            raise DeployError(f"{counts['failed']} of {counts['total']} groups failed; the alert topic was told why")
        return f"{counts['succeeded']} of {counts['total']} groups succeeded"


def batches(bodies: Sequence[str]) -> Iterator[list[str]]:
    """Bodies in their order, as many in each batch as one call takes."""
    from lean_ops.aws.sending import cut

    sizes = [len(body.encode()) for body in bodies]
    for positions in cut(range(len(bodies)), sizes, MOST_IN_A_CALL, MOST_BYTES_IN_A_CALL):
        yield [bodies[position] for position in positions]


def generated(topic: str, messages: int, seed: int) -> list[str]:
    """Queue bodies as `lean-ops generate` makes them; another seed makes other messages."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-n", str(messages), "--seed", str(seed), "--output", folder, "--yes"]
        environ = {key: value for key, value in os.environ.items() if not key.startswith("LEAN_OPS_")}
        said([*_lean_ops(), "--home", folder, "generate", topic, *options], environ, _COMMAND_SECONDS)
        return (Path(folder) / f"{topic}.jsonl").read_text(encoding="utf-8").splitlines()


def settings(outputs: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    """The variables by which `lean-ops` finds a deployed environment."""
    told = {
        "profile": "aws",
        "project": values["project_name"],
        "environment": values["environment"],
        "region": values["region"],
        "database_prefix": values.get("database_prefix"),
        "warehouse": outputs["warehouse"],
        "schema_bucket": outputs["schema_bucket"],
        "archive_bucket": outputs["iceberg_bucket"],
        "delivery_stream": outputs["stream_name"],
        "alert_topic_arn": outputs["alert_topic_arn"],
        "pii_key_secret_arn": values.get("pii_key_secret_arn"),
    }
    return {f"LEAN_OPS_{key.upper()}": str(value) for key, value in told.items() if value}


def reconcile(topic: str, variables: Mapping[str, str]) -> None:
    """Show the topic's books; DeployError if they do not balance."""
    run([*_lean_ops(), "--profile", "aws", "reconcile", topic], {**os.environ, **variables}, _COMMAND_SECONDS)


def _lean_ops() -> list[str]:
    return [sys.executable, "-m", "lean_ops"]
