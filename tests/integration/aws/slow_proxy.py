"""A way to a server that can be told to hang: what is asked then gets no answer, and does not reach the server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class SlowProxy:
    """Passes bytes on, in both directions, as long as it is not told to hang."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._hangs = threading.Event()
        self._guard = threading.Lock()
        self._connections: list[socket.socket] = []
        self.hanging = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def hang(self) -> None:
        self._hangs.set()

    def close(self) -> None:
        self._listener.close()
        with self._guard:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                connection.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target, timeout=30)
            except OSError:
                return  # closed
            with self._guard:
                self._connections += [client, server]
            threading.Thread(target=self._pass_on, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(server, client, False), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_asking: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if is_asking and self._hangs.is_set():
                    with self._guard:
                        self.hanging += 1
                    return
                target.sendall(data)


@contextmanager
def slow_proxy(target: str) -> Iterator[SlowProxy]:
    proxy = SlowProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
