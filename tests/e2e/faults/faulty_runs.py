"""One topic run after the other, each with a fault of the whole home, which is mended before the next.

python faulty_runs.py HOME TOPIC=FAULT…

A fault is `full:ZONE:STEP` (the disk is full from that step on), `cut:DATABASE.TABLE` (the metadata file of a shared
table loses its end) or `dropped:DATABASE.TABLE`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.faults.namespace import fill
from tests.quick_java import QUICK_JAVA

from lean_ops.entrypoints.logs import log_into
from lean_ops.lake.local_files import local_path
from lean_ops.model.batch import Batch
from lean_ops.operate.batch import Listener, no_step
from lean_ops.settings import load_settings
from lean_ops.wiring import Services


def main(home: str, *faults: str) -> None:
    services = Services(load_settings({"home": home, "spark_java_options": QUICK_JAVA}))
    log_into(services.settings.logs_dir)
    said = {topic: run(services, topic, fault) for topic, fault in (one.split("=", 1) for one in faults)}
    services.close()
    print(json.dumps(said))


def run(services: Services, topic: str, fault: str) -> list[str | None]:
    """The topic's outcome while the fault lasts."""
    plan = services.planner.plan([topic])
    with _fault(services, *fault.split(":", 1)) as on_step:
        [outcome] = services.new_run(on_step).execute(plan)
    return [outcome.status, outcome.reason]


@contextmanager
def _fault(services: Services, kind: str, what: str) -> Iterator[Listener]:
    if kind == "full":
        with _full_from(services.settings.home.parent, what) as on_step:
            yield on_step
        return
    catalog, identifier = services.lake.catalog, tuple(what.split("."))
    location = catalog.load_table(identifier).metadata_location
    content = local_path(location).read_bytes()
    if kind == "cut":
        local_path(location).write_bytes(content[: len(content) // 2])
    else:
        catalog.drop_table(identifier)
    yield no_step
    if kind == "cut":
        local_path(location).write_bytes(content)
    else:
        catalog.register_table(identifier, location)


@contextmanager
def _full_from(disk: Path, at: str) -> Iterator[Listener]:
    def on_step(batch: Batch, step: str) -> None:
        if f"{batch.zone}:{step}" == at:
            fill(disk, leave=0)

    yield on_step
    (disk / "filler").unlink()  # an error if the step never came


if __name__ == "__main__":
    main(*sys.argv[1:])
