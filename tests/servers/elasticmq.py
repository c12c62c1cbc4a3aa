"""ElasticMQ: stands for SQS."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.servers.jars import JarSupply
from tests.servers.java_server import start_java
from tests.servers.process import HOST
from tests.servers.server import ACCOUNT, REGION, Server, on_aws_endpoint

SUPPLY: Final = JarSupply("elasticmq", "org.elasticmq:elasticmq-server_2.13:1.7.1")
_OPTIONS: Final = (
    "-Xmx256m",  # it keeps every message in memory
    "-Drest-sqs.bind-port=0",
    f"-Drest-sqs.bind-hostname={HOST}",
    "-Dgenerate-node-address=true",
    "-Drest-sqs.sqs-limits=strict",
    f"-Daws.region={REGION}",
    f"-Daws.accountId={ACCOUNT}",
)


def start_elasticmq(folder: Path, cache: Path) -> Server:
    """Queues in memory, with the limits of SQS."""
    process = start_java(SUPPLY, "org.elasticmq.server.Main", _OPTIONS, folder, cache)
    port = process.wait_for_words(rf"Started SQS rest server, bind address {HOST}:(\d+),")[1]
    server = on_aws_endpoint(process, int(port), "AWS_ENDPOINT_URL_SQS")
    return server.after(lambda it: it.client("sqs").list_queues())
