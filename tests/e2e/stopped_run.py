"""A run of one topic that stops after a named step: killed, or waiting until a file appears.

python stopped_run.py HOME TOPIC STEP kill|FILE
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from tests.quick_java import QUICK_JAVA

from lean_ops.entrypoints.logs import log_into
from lean_ops.settings import load_settings
from lean_ops.wiring import Services


def main(home: str, topic: str, stop_after: str, how: str) -> int:
    services = Services(load_settings({"home": home, "spark_java_options": QUICK_JAVA}))
    log_into(services.settings.logs_dir)

    def on_step(step: str) -> None:
        if step != stop_after:
            return
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        print(step, flush=True)
        while not Path(how).exists():
            time.sleep(0.05)

    outcomes = list(services.new_run(on_step).execute(services.planner.plan([topic])))
    services.close()
    print(outcomes[0].status, outcomes[0].reason, flush=True)
    return 0 if outcomes[0].status == "SUCCEEDED" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
