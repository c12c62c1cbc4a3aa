from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest

from lean_ops.bridge.http_server import serving
from lean_ops.bridge.metrics import Metrics
from lean_ops.model.errors import WrongUseError


def ask(port: int, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def test_metrics_and_checks_are_answered_as_they_are_now() -> None:
    metrics, healthy = Metrics(), [True]
    metrics.sent.labels("events").inc(3)
    with serving("127.0.0.1", 0, metrics.registry, {"/healthz": lambda: healthy[0]}) as port:
        status, kind, text = ask(port, "/metrics")
        assert status == 200
        assert kind.startswith("text/plain; version=")
        assert 'lean_ops_bridge_sent_total{topic="events"} 3.0' in text
        assert ask(port, "/healthz?now")[0] == 200
        healthy[0] = False
        assert ask(port, "/healthz")[0] == 503
        assert ask(port, "/../etc/passwd")[0] == 404
    with pytest.raises(OSError, match="refused"):
        ask(port, "/healthz")


def test_one_who_connects_and_says_nothing_keeps_nobody_waiting() -> None:
    checks = {"/healthz": lambda: True}
    with serving("127.0.0.1", 0, Metrics().registry, checks) as port, socket.create_connection(("127.0.0.1", port)):
        assert ask(port, "/healthz")[0] == 200


def test_a_port_that_is_taken_is_told_in_words() -> None:
    checks = {"/healthz": lambda: True}
    with serving("127.0.0.1", 0, Metrics().registry, checks) as port:
        again = serving("127.0.0.1", port, Metrics().registry, checks)
        with pytest.raises(WrongUseError, match=f"127.0.0.1:{port}"):
            again.__enter__()
