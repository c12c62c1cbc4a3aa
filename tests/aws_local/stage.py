"""The local AWS with everything on it: SeaweedFS for S3, the cloud for the rest, and our root module applied to both.

One launcher for `make aws-local` and for the end-to-end test. The variables of this process lead to it while it runs.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.aws_local.cloud_server import start_cloud
from tests.aws_local.stage_build import built
from tests.aws_local.stage_root import LABEL, StageRoot
from tests.integration.infra.terraform import terraform_binary
from tests.servers.process import HOST
from tests.servers.seaweed import start_seaweed
from tests.servers.server import REGION, Server
from tests.servers.supply import cache_dir

from lean_ops.lake.catalog import Lake
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

BUCKETS: Final = {"iceberg_bucket": "lean-ops-local-iceberg", "schema_bucket": "lean-ops-local-schemas"}
OVER: Final = ("SUCCEEDED", "FAILED", "ABORTED", "TIMED_OUT")
_LOOK_AGAIN_SECONDS: Final = 0.5
# Firehose gathers for 300 s and the dead letters' mapping for 30 s, where nobody watches.
_LONGEST_WAIT: Final = "2"


@dataclass
class Stage:
    """The running environment; `outputs` are Terraform's."""

    folder: Path
    seaweed: Server
    cloud: Server
    root: StageRoot
    outputs: dict[str, Any] = field(default_factory=dict)
    _clients: dict[str, Any] = field(default_factory=dict)

    def environ(self) -> dict[str, str]:
        """What leads clients of AWS, `lean-ops` and Terraform here."""
        settings = self.root.settings(self.outputs) if self.outputs else {}
        return {
            **self.cloud.environ(),
            **self.seaweed.environ(),
            **settings,
            "LEAN_OPS_HOME": str(self.folder / "home"),
        }

    def client(self, service: str) -> Any:
        """A boto3 client of a service, the same each time."""
        if service not in self._clients:
            server = self.seaweed if service == "s3" else self.cloud
            self._clients[service] = server.client(service)
        return self._clients[service]

    def lake(self) -> Lake:
        """The tables as they are now."""
        return Services(load_settings({"profile": "aws", "home": self.folder / "home"}, self.environ())).lake

    def said(self) -> str:
        """The cloud's own log."""
        log = self.folder / "cloud" / "what-happened.log"
        return log.read_text(encoding="utf-8") if log.is_file() else ""

    # what comes in

    def send(self, topic: str, bodies: Sequence[str]) -> None:
        """Bodies to a topic's queue, in their order."""
        url, sqs = self.outputs["queue_urls"][topic], self.client("sqs")
        for start in range(0, len(bodies), 10):
            entries = [{"Id": str(at), "MessageBody": body} for at, body in enumerate(bodies[start : start + 10])]
            refused = sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")
            assert not refused, refused

    def waiting(self) -> int:
        """Messages in all queues, the dead letters' among them, visible or not."""
        counted = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        sqs, total = self.client("sqs"), 0
        for url in (*self.outputs["queue_urls"].values(), self.outputs["dlq_url"]):
            found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(counted))["Attributes"]
            total += sum(int(found[name]) for name in counted)
        return total

    # machines

    def execute(self, machine: str, given: Mapping[str, Any] | None = None, seconds: float = 900) -> dict[str, Any]:
        """Start a state machine and wait for its end; the execution as Step Functions shows it."""
        states = self.client("stepfunctions")
        arn = self.outputs["state_machine_arns"][machine]
        execution = states.start_execution(stateMachineArn=arn, input=json.dumps(given or {}))["executionArn"]

        def look() -> dict[str, Any]:
            shown: dict[str, Any] = states.describe_execution(executionArn=execution)
            return shown

        wait_until(lambda: look()["status"] in OVER, seconds, lambda: f"the end of {machine}\n{self.said()[-3000:]}")
        return look()

    def groups(self, execution: Mapping[str, Any]) -> dict[str, int]:
        """How the groups of an execution ended."""
        states = self.client("stepfunctions")
        (run,) = states.list_map_runs(executionArn=execution["executionArn"])["mapRuns"]
        counts: dict[str, int] = states.describe_map_run(mapRunArn=run["mapRunArn"])["itemCounts"]
        return {name: counts[name] for name in ("total", "succeeded", "failed")}


@contextmanager
def on_stage(
    folder: Path, topics: Sequence[str], say: Callable[[str], None], variables: Mapping[str, Any] | None = None
) -> Iterator[Stage]:
    """Everything, applied and ready; nothing of it runs any more afterwards, and the variables are as before."""
    terraform_binary()  # nobody should wait for servers to hear that it is missing
    before = dict(os.environ)
    with _servers(folder, say) as (seaweed, cloud):
        root = StageRoot.make(folder / "root", built(say), {**_variables(topics), **(variables or {})})
        stage = Stage(folder, seaweed, cloud, root)
        try:
            os.environ.update(stage.environ())
            for bucket in BUCKETS.values():
                stage.client("s3").create_bucket(Bucket=bucket)
            stage.root.upload()
            say("terraform apply of infra/; it takes a minute or two")
            stage.outputs = root.apply()
            os.environ.update(stage.environ())
            yield stage
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def _servers(folder: Path, say: Callable[[str], None]) -> Iterator[tuple[Server, Server]]:
    say("starting SeaweedFS (S3) and the cloud (everything else)")
    places = {name: folder / name for name in ("seaweed", "cloud", "home")}
    for place in places.values():
        place.mkdir(parents=True)
    with _held_port() as port:  # chosen before: each of the two must know where the other is
        seaweed = start_seaweed(places["seaweed"], cache_dir(), kms_url=f"http://{HOST}:{port}")
        try:
            options = ["--deliver", "--longest-wait", _LONGEST_WAIT, "--port", str(port)]
            cloud = start_cloud(places["cloud"], [seaweed], options)
            try:
                yield seaweed, cloud
            finally:
                cloud.stop()
        finally:
            seaweed.stop()


@contextmanager
def _held_port() -> Iterator[int]:
    """A port that nobody else is given; a server that reuses addresses may bind it, too, for this one never listens."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOST, 0))
        yield held.getsockname()[1]


def _variables(topics: Sequence[str]) -> dict[str, Any]:
    return {
        "environment": LABEL,
        "region": REGION,
        "topics": list(topics),
        **BUCKETS,
        "database_prefix": f"{LABEL}_",
        "deletion_protection": False,
        "manage_schema_bucket_notification": False,  # SeaweedFS knows no notifications; the cloud looks for itself
        "raise_message_size": shutil.which("aws") is not None,
    }


def wait_until(holds: Callable[[], object], seconds: float, what: Callable[[], str]) -> None:
    """Return when it holds, or fail with what was waited for."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what()}"
        time.sleep(_LOOK_AGAIN_SECONDS)
