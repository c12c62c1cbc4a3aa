"""A small AWS on loopback whose functions, jobs and state machines really run: `python cloud_main.py --folder FOLDER`.

Around moto: Lambda (cloud_functions), Glue jobs (cloud_jobs), Step Functions (cloud_machines) and a Glue catalog that
is strict about versions. With `--deliver` what AWS would bring from one service to another is brought, too: queues to
functions (cloud_mappings), streams to tables (cloud_streams), events to the targets of rules (cloud_events).
`--endpoint s3=http://…` leads functions and jobs to a server of its own for a service. It ends with all that it has
started on SIGTERM or SIGINT, and when the process that started it goes away.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Final

from moto.server import ThreadedMotoServer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.aws_local import cloud_machines, cloud_repairs
from tests.aws_local.cloud_events import Events
from tests.aws_local.cloud_functions import Functions
from tests.aws_local.cloud_jobs import Jobs
from tests.aws_local.cloud_mappings import Mappings
from tests.aws_local.cloud_place import Place
from tests.aws_local.cloud_streams import Streams
from tests.aws_local.strict_glue import make_strict

_HOST: Final = "127.0.0.1"
_LOOK_AGAIN_SECONDS: Final = 0.5


def main(arguments: list[str]) -> int:
    """Serve until told to end, or until whoever started this is gone."""
    asked = _parser().parse_args(arguments)
    starter, over = os.getppid(), threading.Event()
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: over.set())
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(_HOST, port=asked.port, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    os.environ["MOTO_PORT"] = str(port)  # where moto's own state machines find services
    asked.folder.mkdir(parents=True, exist_ok=True)
    place = Place(f"http://{_HOST}:{port}", asked.folder.resolve(), dict(asked.endpoint))
    functions = Functions(place, asked.calls_at_a_time)
    jobs = Jobs(place, asked.jobs_at_a_time, asked.minute_seconds)
    make_strict()
    cloud_repairs.install()
    functions.install()
    jobs.install()
    cloud_machines.install()
    movers = _movers(place, jobs, asked.longest_wait) if asked.deliver else []
    print(f"listening on {_HOST}:{port}", flush=True)
    while not over.wait(_LOOK_AGAIN_SECONDS) and os.getppid() == starter:
        pass
    functions.close()
    jobs.close()
    for mover in movers:
        mover.close()
    return 0


def _movers(place: Place, jobs: Jobs, longest_wait: float) -> list[Mappings | Streams | Events]:
    """What brings things from one service to another, at work."""
    streams, mappings, events = Streams(place, longest_wait), Mappings(place, longest_wait), Events(place)
    streams.install()
    mappings.begin()
    events.begin()
    jobs.on_end = partial(events.tell, "aws.glue", "Glue Job State Change")
    return [mappings, streams, events]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A small AWS on loopback.")
    parser.add_argument("--folder", type=Path, required=True, help="for logs, unpacked functions and job runs")
    parser.add_argument("--port", type=int, default=0, help="the system chooses one if it is not named")
    parser.add_argument("--endpoint", type=_endpoint, action="append", default=[], metavar="SERVICE=URL")
    parser.add_argument("--calls-at-a-time", type=int, default=4, help="of one function; others wait")
    parser.add_argument("--jobs-at-a-time", type=int, default=2, help="of all jobs; others wait in STARTING")
    parser.add_argument("--minute-seconds", type=float, default=60, help="a minute of a job's timeout, for tests")
    parser.add_argument("--deliver", action="store_true", help="queues, streams and rules bring on what they are given")
    parser.add_argument("--longest-wait", type=float, default=3600, metavar="SECONDS", help="to fill a batch or buffer")
    return parser


def _endpoint(text: str) -> tuple[str, str]:
    service, _, url = text.partition("=")
    if not url:
        raise argparse.ArgumentTypeError("expected SERVICE=URL, such as s3=http://127.0.0.1:8333")
    return f"AWS_ENDPOINT_URL_{service.upper()}", url


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
