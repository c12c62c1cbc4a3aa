"""A rebuild that is killed once it stands at a named step: python killed_rebuild.py HOME TOPIC STEP."""

from __future__ import annotations

import os
import signal
import sys

from tests.quick_java import QUICK_JAVA

from lean_ops.entrypoints.logs import log_into
from lean_ops.settings import load_settings
from lean_ops.wiring import Services


def main(home: str, topic: str, wanted: str) -> int:
    services = Services(load_settings({"home": home, "spark_java_options": QUICK_JAVA}))
    log_into(services.settings.logs_dir)

    def on_step(step: str) -> None:
        if step == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    outcome = services.rebuilder(on_step).rebuild(topic, lambda _: True)
    services.close()
    print(outcome, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
