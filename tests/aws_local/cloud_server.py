"""Starts the local cloud for a test or a tour: a server like those of tests/servers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.servers.process import HOST, start
from tests.servers.server import Server, on_aws_endpoint

_MAIN: Final = Path(__file__).with_name("cloud_main.py")


def start_cloud(folder: Path, beside: Sequence[Server] = (), options: Sequence[str] = ()) -> Server:
    """The cloud, ready; functions and jobs are led to the servers beside it for what these stand for."""
    endpoints = [(name, url) for server in beside for name, url in server.endpoints.items()]
    prefix = "AWS_ENDPOINT_URL_"
    led = [
        part
        for name, url in endpoints
        if name.startswith(prefix)
        for part in ("--endpoint", f"{name.removeprefix(prefix).lower()}={url}")
    ]
    command = [sys.executable, "-I", str(_MAIN), "--folder", str(folder), *led, *options]
    process = start("cloud", command, folder)
    port = process.wait_for_words(rf"listening on {HOST}:(\d+)")[1]
    return on_aws_endpoint(process, int(port), "AWS_ENDPOINT_URL").after(
        lambda it: it.client("sts").get_caller_identity()
    )
