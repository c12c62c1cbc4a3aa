"""A home of the product inside this process, wired as `lean-ops run` wires it: ledger, checkpoint and all."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.data import Events, write_bodies
from lean_ops.entrypoints.logs import log_into
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.suite import Setting
    from lean_ops.model.batch import Counts, Zone

MASTER: Final = "local[2]"


class BenchmarkError(Exception):
    """The product did not do what a benchmark measures; its numbers would mean nothing."""


@dataclass(frozen=True, slots=True)
class Home:
    """What a benchmark does with a home."""

    services: Services

    def submit(self, topic: str, schema: bytes) -> None:
        """Open a topic's gate."""
        self.services.submissions.submit(topic, schema, submitted_by="bench", now=self.services.clock())

    def ingest(self, topic: str, file: Path) -> int:
        """Bring a file of bodies into RAW; the rows that landed."""
        return self.services.intake(topic, topic).take(topic, [str(file)]).raw

    def run(self, topic: str, zone: Zone | None = None) -> dict[Zone, Counts]:
        """What `lean-ops run TOPIC` does, or its hop into one zone alone; the books of each batch, by zone."""
        plan = self.services.planner.plan([topic])
        if zone is not None:
            plan = plan.only(zone)
        outcomes = list(self.services.new_run().execute(plan))
        failed = [outcome for outcome in outcomes if outcome.status != "SUCCEEDED"]
        if failed or not outcomes:
            raise BenchmarkError(f"{topic}: {failed[0].reason if failed else 'nothing to do'}")
        return {batch.zone: batch.counts for outcome in outcomes for batch in outcome.batches}


@contextmanager
def open_home(folder: Path, **settings: Any) -> Iterator[Home]:
    """A home in a folder, made if there is none; Spark ends with the block."""
    given = {"home": folder, "spark_master": MASTER, **settings}
    services = Services(load_settings(given, environ={}))
    services.lake.ensure_shared()
    log_into(services.settings.logs_dir)  # or they would go to stdout
    try:
        yield Home(services)
    finally:
        services.close()


def bodies(setting: Setting, count: int, first: int = 0) -> Path:
    """A file of so many events, made once for all benchmarks of a run."""
    folder = setting.neighbour("data")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"events-{setting.seed}-{first}-{count}.jsonl"
    if not file.exists():
        setting.say(f"making {count:,} events")
        part = file.with_suffix(".part")
        write_bodies(Events(count, setting.seed, first), part).rename(file)
    return file
