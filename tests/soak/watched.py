"""`lean-ops` as it is, but each step of each batch is written to a file as soon as it is done.

python -m tests.soak.watched STEPS_FILE ARGUMENTS…
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from lean_ops.entrypoints.start import main
from lean_ops.model.batch import Batch
from lean_ops.wiring import Services


def tell_steps(path: str) -> None:
    """From here on every run of this process writes its steps, one line and one write each."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    new_run = Services.new_run

    def on_step(batch: Batch, step: str) -> None:
        os.write(file, f"{time.time()}\t{batch.batch_id}\t{batch.topic}\t{batch.zone}\t{step}\n".encode())

    def watched_run(self: Services) -> Any:
        return new_run(self, on_step)

    Services.new_run = watched_run  # type: ignore[assignment,method-assign]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with Ctrl-C ignored
    tell_steps(sys.argv.pop(1))
    main()
