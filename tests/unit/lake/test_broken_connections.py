"""A Java that is gone leaves no traceback of pyspark's own server on the screen."""

from __future__ import annotations

import socket
import socketserver
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from lean_ops.lake.java_process import log_broken_connections


class Breaks(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        raise EOFError


def test_a_broken_connection_of_sparks_counters_is_logged_and_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), Breaks) as server, capture_logs() as logged:
        session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_accumulatorServer=server))
        log_broken_connections(session)
        with socket.create_connection(server.server_address, timeout=10):
            server.handle_request()

    assert [(line["event"], line["reason"]) for line in logged] == [("connection to Spark broken", "EOFError()")]
    assert capfd.readouterr() == ("", "")
