"""moto as a server on loopback, on a port that the system chooses: `python moto_main.py`."""

from __future__ import annotations

import threading

from moto.server import ThreadedMotoServer

if __name__ == "__main__":
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    print("listening on {}:{}".format(*server.get_host_and_port()), flush=True)
    threading.Event().wait()
