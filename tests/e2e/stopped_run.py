"""A run that stops once each of its topics stands at a named step: killed there, or waiting until a file appears.

python stopped_run.py HOME kill|FILE TOPIC=ZONE:STEP…
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from tests.quick_java import QUICK_JAVA

from lean_ops.entrypoints.logs import log_into
from lean_ops.model.batch import Batch
from lean_ops.settings import load_settings
from lean_ops.wiring import Services


class Stops:
    """Where each topic has to stop; the last one to get there ends the waiting."""

    def __init__(self, how: str, steps: dict[str, str]) -> None:
        self.how = how
        self.steps = steps
        self.standing = threading.Barrier(len(steps))

    def on_step(self, batch: Batch, step: str) -> None:
        if self.steps.get(batch.topic) != f"{batch.zone}:{step}":
            return
        if self.standing.wait(timeout=400) == 0:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            print("standing", flush=True)
        gone_on = threading.Event()
        while not Path(self.how).exists():
            gone_on.wait(0.05)


def main(home: str, how: str, *stops: str) -> int:
    steps = dict(stop.split("=", 1) for stop in stops)
    flags = {"home": home, "spark_java_options": QUICK_JAVA, "workers": str(len(steps))}
    services = Services(load_settings(flags))
    log_into(services.settings.logs_dir)
    run = services.new_run(Stops(how, steps).on_step)
    outcomes = list(run.execute(services.planner.plan(list(steps))))
    services.close()
    print(*((outcome.status, outcome.reason) for outcome in outcomes), flush=True)
    return 0 if all(outcome.status == "SUCCEEDED" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
