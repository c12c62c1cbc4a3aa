"""moto: stands for the AWS services that have no server of their own here."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path

from tests.servers.process import HOST, start
from tests.servers.server import Server, on_aws_endpoint


def start_moto(folder: Path, _cache: Path) -> Server:
    """Every service that moto knows; the variable of a service with a server of its own goes before this one."""
    process = start("moto", [sys.executable, "-I", str(Path(__file__).with_name("moto_main.py"))], folder)
    port = process.wait_for_words(rf"listening on {HOST}:(\d+)")[1]
    return on_aws_endpoint(process, int(port), "AWS_ENDPOINT_URL").after(_ask)


def _ask(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/moto-api/data.json", timeout=30) as answer:  # noqa: S310  our own server
        answer.read()
