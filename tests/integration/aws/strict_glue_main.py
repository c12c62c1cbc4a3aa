"""moto with a Glue catalog that is strict about versions, on loopback: `python strict_glue_main.py`."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

from moto.server import ThreadedMotoServer

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.aws_local import cloud_repairs
from tests.aws_local.strict_glue import make_strict

if __name__ == "__main__":
    cloud_repairs.install()
    make_strict()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    print("listening on {}:{}".format(*server.get_host_and_port()), flush=True)
    threading.Event().wait()
