"""The bridge's own HTTP port: `/metrics` for Prometheus, `/healthz` and `/readyz` for whoever runs the container."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prometheus_client import CollectorRegistry

    Answer = tuple[int, str, bytes]

_TEXT: Final = "text/plain; charset=utf-8"
_REQUEST_SECONDS: Final = 10


@contextmanager
def serving(
    host: str, port: int, registry: CollectorRegistry, checks: Mapping[str, Callable[[], bool]]
) -> Iterator[int]:
    """Answer requests for the time of the block; the port. A check's path answers 200 if it holds, else 503."""
    try:
        server = _Server((host, port), _Handler)
    except OSError as error:
        raise WrongUseError("can't listen there", where=f"{host}:{port}", found=str(error)) from error
    server.answer = lambda path: _answer(path, registry, checks)
    thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _answer(path: str, registry: CollectorRegistry, checks: Mapping[str, Callable[[], bool]]) -> Answer:
    if path == "/metrics":
        return 200, CONTENT_TYPE_LATEST, generate_latest(registry)
    if path in checks:
        return (200, _TEXT, b"ok\n") if checks[path]() else (503, _TEXT, b"not now\n")
    return 404, _TEXT, b"/metrics, /healthz or /readyz\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    answer: Callable[[str], Answer]


class _Handler(BaseHTTPRequestHandler):
    timeout = _REQUEST_SECONDS
    server_version = "lean-ops-bridge"
    sys_version = ""

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)  # noqa: S101  made by `serving`
        status, kind, content = self.server.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Probes come every few seconds and say nothing new."""
