"""A small AWS on loopback: queues, tables, buckets and databases of one deployment, and functions that use them.

The lake is what the aws profile has: the Glue catalog (moto, made strict about versions) with its files in SeaweedFS.
That is the path which the functions take on AWS, with commits that exclude each other.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tests.aws_local.faults import Faults
from tests.aws_local.function import Function
from tests.aws_local.poller import Poller, SeenMessages
from tests.servers.server import ACCESS_KEY, ACCOUNT, REGION, SECRET_KEY, Server

from lean_ops.aws.environment import Deployment
from lean_ops.lake.catalog import Lake
from lean_ops.settings import load_settings
from lean_ops.state.dynamodb_tables import DynamoTables, create_tables
from lean_ops.wiring import Services

PROJECT: Final = "lean-ops"
STREAM: Final = "raw"
_RECEIVES: Final = "5"
# Of the person's environment nothing reaches a function that could change what it does.
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ")


@dataclass
class LocalAws:
    """One deployment. Its names are its own, so that several can be on the same servers."""

    elasticmq: Server
    dynamodb: Server
    seaweed: Server
    glue: Server
    folder: Path
    faults: Faults
    deployment: Deployment = field(default_factory=lambda: Deployment(PROJECT, f"e{uuid.uuid4().hex[:8]}"))
    functions: list[Function] = field(default_factory=list)
    pollers: list[Poller] = field(default_factory=list)

    def make(self) -> None:
        """What Terraform does, except for the topics' queues."""
        create_tables(self.dynamodb.client("dynamodb"), DynamoTables.of(PROJECT, self.deployment.environment))
        self.s3.create_bucket(Bucket=self.bucket)
        glue = self.glue.client("glue")
        for database in self.services.settings.names.databases:
            glue.create_database(DatabaseInput={"Name": database})
        self.lake.ensure_shared()

    def close(self) -> None:
        """Nothing that was started is there any more when this returns."""
        for poller in self.pollers:
            poller.stop()
        for function in self.functions:
            function.close()
        for poller in self.pollers:
            poller.join()

    # clients

    @property
    def bucket(self) -> str:
        """Archive, warehouse and error output."""
        return f"{self.deployment.name}-data"

    @cached_property
    def s3(self) -> Any:
        return self.seaweed.client("s3")

    @cached_property
    def sqs(self) -> Any:
        """One client for all pollers."""
        import boto3
        from botocore.config import Config

        limits = Config(connect_timeout=10, read_timeout=60, retries={"total_max_attempts": 5}, max_pool_connections=64)
        session: Any = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
        return session.client("sqs", endpoint_url=self.elasticmq.url, config=limits)

    @cached_property
    def services(self) -> Services:
        """The product as it is wired on AWS, in this process; its clients are led by `os.environ`."""
        return Services(load_settings({"profile": "aws"}, self.told()))

    @property
    def lake(self) -> Lake:
        return self.services.lake

    def servers_environ(self) -> dict[str, str]:
        """What leads clients to the servers."""
        servers: Sequence[Server] = (self.glue, self.seaweed, self.dynamodb, self.elasticmq)
        return {name: value for server in servers for name, value in server.environ().items()}

    def told(self) -> dict[str, str]:
        """What every part is told of the deployment."""
        return {
            "LEAN_OPS_PROJECT": PROJECT,
            "LEAN_OPS_ENVIRONMENT": self.deployment.environment,
            "LEAN_OPS_DATABASE_PREFIX": f"{self.deployment.environment}_",
            "LEAN_OPS_WAREHOUSE": f"s3://{self.bucket}/warehouse",
            "LEAN_OPS_ARCHIVE_BUCKET": self.bucket,
            "LEAN_OPS_SCHEMA_BUCKET": self.bucket,
            "LEAN_OPS_DELIVERY_STREAM": STREAM,
        }

    # functions and queues

    def function(self, name: str, at_a_time: int, seconds: float, more: Mapping[str, str] | None = None) -> Function:
        """A function of the product by its name."""
        kept = {key: os.environ[key] for key in _KEPT if key in os.environ}
        environ = {**kept, **self.servers_environ(), **self.told(), **(more or {})}
        module, log = f"lean_ops.entrypoints.lambdas.{name}", self.folder / f"{name}.log"
        function = Function(module, environ, log, self.faults, at_a_time, seconds)
        self.functions.append(function)
        return function

    def make_queue(self, name: str, visibility_seconds: int, dead_letters: str | None = None) -> tuple[str, str]:
        """A queue's address and ARN; after five receives its messages go to the dead letters."""
        attributes = {"VisibilityTimeout": str(visibility_seconds)}
        if dead_letters:
            redrive = {"deadLetterTargetArn": dead_letters, "maxReceiveCount": _RECEIVES}
            attributes["RedrivePolicy"] = json.dumps(redrive)
        url = str(self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])
        return url, f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"

    def poll(self, queue: tuple[str, str], function: Function, seen: SeenMessages, **more: Any) -> Poller:
        """Begin to bring a queue's messages to a function."""
        poller = Poller(self.sqs, *queue, function, self.faults, seen, **more)
        self.pollers.append(poller)
        poller.start()
        return poller

    def waiting(self, url: str) -> int:
        """How many messages a queue has, visible or not."""
        counted = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(counted))["Attributes"]
        return sum(int(found[name]) for name in counted)
