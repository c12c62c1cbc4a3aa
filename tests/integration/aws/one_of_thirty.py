"""One of thirty jobs that end at the same time: `python one_of_thirty.py NUMBER GO_FILE` appends its books.

It says "ready" and waits for the file, so that all begin at once.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from lean_ops.settings import load_settings
from lean_ops.wiring import Services

NOW = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
PATIENCE_SECONDS = 300
TABLES = ("reconciliation_log", "job_run_history")


def main(number: str, go: Path) -> None:
    services = Services(load_settings({"profile": "aws"}))
    topic, names = f"topic_{number}", services.settings.names
    services.lake.load(names.parse_errors)  # all that a job has loaded long before
    print("ready", flush=True)
    deadline = time.monotonic() + PATIENCE_SECONDS  # whoever would make it may be gone
    while not go.exists():
        assert time.monotonic() < deadline, "nobody gave the sign"
        time.sleep(0.01)
    for batch in range(2):
        batch_id = f"{number}-{batch}"
        for table in TABLES:
            services.shared.append_rows(names.ops(table), [{"topic_name": topic, "batch_id": batch_id}])
        error = {"topic_name": topic, "batch_id": batch_id, "message_id": batch_id, "processed_ts": NOW}
        services.shared.append_rows(names.parse_errors, [error])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
