"""What a soak has done and found, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.soak.actors import Actor


@dataclass
class Tally:
    """Counts of one soak. `stood` has the steps at which kills fell: a run has several batches open at once."""

    rounds: int = 0
    runs: int = 0
    runs_finished: int = 0
    runs_ended: Counter[str] = field(default_factory=Counter)
    stood: Counter[str] = field(default_factory=Counter)
    ingests: int = 0
    ingests_ended: Counter[str] = field(default_factory=Counter)
    files_sent_again: int = 0
    bodies_sent: int = 0
    bodies_redelivered: int = 0
    asides: int = 0
    pauses: int = 0
    schemas_submitted: int = 0
    resumed_after_failures: int = 0
    comparisons: int = 0
    messages_compared: int = 0
    messages_at_the_end: int = 0
    differences: int = 0
    recounts: int = 0
    failures: list[str] = field(default_factory=list)

    def count_run(self, run: Actor) -> None:
        """A run that has ended."""
        self.runs += 1
        if run.was_hit:
            self.runs_ended[str(run.end)] += 1
            self.stood.update(run.stood)
        else:
            self.runs_finished += 1

    def count_file(self, is_again: bool) -> None:
        """A file that is sent."""
        self.ingests += 1
        self.files_sent_again += is_again

    def count_ingest(self, actor: Actor) -> None:
        """An ingestion that has ended; a signal that came too late changed nothing."""
        if actor.was_hit and actor.process.code != 0:
            self.ingests_ended[str(actor.end)] += 1

    def count_comparison(self, result: dict[str, Any]) -> None:
        """What `verify` says."""
        self.comparisons += 1
        self.messages_at_the_end = result.get("messages", 0)
        self.messages_compared += self.messages_at_the_end
        self.differences += result.get("differences", 0) + len(result.get("problems", ()))
        self.bodies_redelivered = result.get("redelivered", 0)

    @property
    def runs_killed(self) -> int:
        """How many runs were made to end."""
        return self.runs_ended.total()
