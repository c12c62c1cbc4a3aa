"""DynamoDB Local: stands for DynamoDB."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.servers.jars import JarSupply
from tests.servers.java_server import start_java
from tests.servers.process import HOST
from tests.servers.server import Server, on_aws_endpoint

_MAIN: Final = "LoopbackDynamoDb"
SUPPLY: Final = JarSupply(
    "dynamodb",
    "software.amazon.dynamodb:DynamoDBLocal:3.3.1",
    # Only what it reports home with, and a client for programs; our main starts without them.
    without=tuple(
        f"software.amazon.awssdk:{artifact}"
        for artifact in ("cognitoidentity", "cognitoidentityprovider", "dynamodb-enhanced", "pinpoint")
    ),
    main=f"{_MAIN}.java",
)


def start_dynamodb(folder: Path, cache: Path) -> Server:
    """Tables in memory, the same for every region and key."""
    process = start_java(SUPPLY, _MAIN, ["-Xmx256m"], folder, cache)
    port = process.wait_for_words(rf"listening on {HOST}:(\d+)")[1]
    server = on_aws_endpoint(process, int(port), "AWS_ENDPOINT_URL_DYNAMODB")
    return server.after(lambda it: it.client("dynamodb").list_tables())
