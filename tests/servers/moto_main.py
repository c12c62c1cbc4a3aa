"""moto as a server on loopback, on a port that the system chooses: `python moto_main.py`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from moto.server import ThreadedMotoServer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.aws_local import cloud_repairs

if __name__ == "__main__":
    cloud_repairs.install()
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    print("listening on {}:{}".format(*server.get_host_and_port()), flush=True)
    threading.Event().wait()
