"""Spark's Java as a process: gone, it leaves no traceback on the screen; if it does not end, it is killed."""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from lean_ops.lake.java_process import end_java, log_broken_connections
from lean_ops.model.errors import TransientError

SESSIONS = ((SparkSession, "_instantiatedSession"), (SparkSession, "_activeSession"))


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


def test_a_java_that_does_not_end_in_time_is_killed_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in ((SparkContext, "_jvm"), (SparkContext, "_active_spark_context"), *SESSIONS):
        monkeypatch.setattr(place, name, None)  # so that a Spark of other tests in this process is there afterwards
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    with subprocess.Popen(sleeps, stdin=subprocess.PIPE) as java:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java, shutdown=lambda: None))
        with pytest.raises(TransientError, match=rf"process {java.pid}: Spark's Java did not end and was killed"):
            end_java(0.1)
        assert java.returncode is not None
        assert SparkContext._gateway is None
